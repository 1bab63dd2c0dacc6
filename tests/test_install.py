"""What is installed: the lock, pip's settings for uv, a torch that was not tested, a package of another project."""

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from course import ringside
from launch import load_hint
from launch.rank.patches import complaint
from tests.lean import not_as_locked

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("install", ROOT / "etc" / "install.py")
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)


def test_a_setting_of_the_environment_is_in_force_and_uv_gets_them_all(tmp_path):
    """Of find-links only folders that are there, and addresses: uv would fail where pip says a word and goes on."""
    listed = (
        f":env:.find-links='{tmp_path} /not/there https://x/links'\nglobal.find-links='/'\n"
        "global.index-url='https://x/simple'\nglobal.trusted-host='x'\nuser.no=1\n"
    )
    links = ["--find-links", str(tmp_path), "--find-links", "https://x/links"]
    options = install.options_for_uv(install.settings(listed))
    assert options[2:] == ["--index-url", "https://x/simple", *links, "--allow-insecure-host", "x"]


def test_no_index_holds_for_uv_too():
    assert "--no-index" in install.options_for_uv(install.settings("global.no-index='true'\n"))


def test_the_lock_names_what_is_not_as_locked():
    assert not_as_locked("# a comment\nnumpy==0.1\nno-such-package==1\n")[0].startswith("numpy ")
    assert len(not_as_locked("numpy==0.1\nno-such-package==1\n")) == 1


def test_the_lock_holds_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.partition("==")[0].lower() for line in (ROOT / "etc" / "lock.txt").read_text().splitlines()}
    needed = project["dependencies"] + project["optional-dependencies"]["jax"]
    assert {each.partition(">")[0].lower() for each in needed} <= named


@pytest.mark.parametrize("version, tested", [("2.8.0", 1), ("2.15.0+cpu", 1), ("2.7.1", 0), ("2.16.0", 0), ("3.0", 0)])
def test_a_torch_that_was_not_tested_is_named(version, tested):
    assert (complaint(version) == "") == bool(tested)
    assert tested or version in complaint(version)


def test_a_package_of_another_project_is_named(tmp_path):
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets" / "__init__.py").write_text("")
    code = f"import sys; sys.path.append({str(ROOT)!r}); import launch; launch.load_ipython_extension(None)"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert f"{tmp_path}/widgets/__init__.py has the name of Ringside's widgets and hides it" in run.stderr
    assert load_hint.shadowed() == ""


@pytest.mark.parametrize("cell", ["%load_ext launch", "%%ranks 2\n1"])
def test_a_module_launch_of_another_project_is_named(tmp_path, cell):
    """As a kernel whose folder holds one: what IPython's configuration loads knows it, since our launch is hidden."""
    (tmp_path / "launch.py").write_text("")
    config = ROOT / "etc" / "ipython" / "ipython_kernel_config.py"
    code = (
        "from IPython.core.interactiveshell import InteractiveShell as Shell\n"
        "from traitlets.config import PyFileConfigLoader\n"
        f"PyFileConfigLoader({config.name!r}, {str(config.parent)!r}).load_config()\n"
        "shell = Shell.instance()\nshell.extension_manager.load_extension('ringside_hint')\n"
        f"shell.run_cell({cell!r})\nshell.run_line_magic('load_ext', 'autoreload')"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert f"UsageError: {tmp_path}/launch.py has the name of Ringside's launch and hides it" in run.stdout + run.stderr
    assert not run.returncode


def test_a_missing_jax_gets_the_one_command():
    assert load_hint.hint_for(ModuleNotFoundError("No module named 'jax'", name="jax"), None) == load_hint.JAX


def test_lab_refuses_a_folder_whose_module_would_hide_ours(tmp_path, capsys):
    (tmp_path / "launch.py").write_text("")
    assert ringside.main(["lab", str(tmp_path)]) == 1
    assert "has a module launch, which hides Ringside's: rename it" in capsys.readouterr().err


def test_lab_opens_the_first_chapter_and_lets_jupyter_pass_what_four_ranks_print(tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr("os.execv", lambda program, arguments: started.extend(arguments))
    monkeypatch.chdir(tmp_path)  # puts back where `lab` goes
    ringside.main(["lab", str(tmp_path), "--ip=0.0.0.0"])
    rate = "--ZMQChannelsWebsocketConnection.iopub_data_rate_limit=1e9"
    assert {"--LabApp.default_url=/lab/tree/00_start_here.ipynb", rate, "--ip=0.0.0.0"} <= {*started}
    assert {"--log-level=WARN", "--LabApp.log_level=WARN"} <= {*started}  # only the address, warnings and errors
    ringside.main(["lab", str(tmp_path)])
    said = capsys.readouterr()
    assert "Your own copies" in said.err and said.err.count("\n") == 1 and said.out == ""  # of two starts


@pytest.mark.parametrize("command", [[], ["lab"], ["pages"], ["pack"], ["handed-in"]])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        ringside.main([*command, "--help"])
    assert ended.value.code == 0 and "usage: ringside" in capsys.readouterr().out


def test_jupyterlab_numbers_lines_by_a_setting_that_it_has():
    """Errors name lines. The setting's place and names are JupyterLab's own, read from its schema."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    (source,) = [s for s, to in wheel["shared-data"].items() if to.startswith("etc/jupyter/labconfig/default_setting_")]
    ((plugin, settings),) = json.loads((ROOT / source).read_text()).items()
    package, _, name = plugin.partition(":")
    schema = Path(sys.prefix, "share/jupyter/lab/schemas", package, f"{name}.json")
    properties = json.loads(schema.read_text())["properties"]
    assert all(value.keys() <= properties[key]["default"].keys() for key, value in settings.items())
    assert settings["codeCellConfig"]["lineNumbers"] is True
