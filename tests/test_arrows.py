"""Imports point one way: course -> launch -> widgets -> collectives; and a rank imports neither of the last two.

Read from the source with ast, so that lazy imports inside functions count too, and once from a live interpreter,
so that what a rank really loads is seen.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ["collectives", "widgets", "launch", "course"]
ALLOWED_OUTSIDE = {"collectives": {"numpy", "plotly"}}


@cache
def imports(source: Path) -> list[ast.Import | ast.ImportFrom]:
    """The import statements of the file, wherever they stand."""
    return [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_packages(source: Path) -> set[str]:
    """Top-level names that the file imports anywhere, relative imports resolved to its own package."""
    names = set()
    for node in imports(source):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        else:
            names.add(source.relative_to(ROOT).parts[0] if node.level else node.module.split(".")[0])
    return names


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_what_stands_below_it(package):
    above = set(ORDER[ORDER.index(package) + 1 :])
    for source in sorted((ROOT / package).rglob("*.py")):
        wrong = imported_packages(source) & above
        assert not wrong, f"{source.relative_to(ROOT)} imports {wrong}, which stand above {package}"


def test_collectives_needs_numpy_alone():
    for source in sorted((ROOT / "collectives").rglob("*.py")):
        foreign = imported_packages(source) - set(sys.stdlib_module_names) - {"collectives"}
        assert foreign <= ALLOWED_OUTSIDE["collectives"], f"{source.name} imports {foreign}"
    loaded = modules_after("import collectives")
    assert "numpy" in loaded and not loaded & {"plotly", "torch", "IPython", "pandas"}


def test_a_rank_loads_neither_widgets_nor_collectives():
    """Nor the course; nor more than a solution when it imports one of ours."""
    mine = "import launch.agent, launch.rank.main, launch.rank.perform, os, sys; os.environ['RANK'] = '0'"
    alone = "assert 'course' not in sys.modules"
    loaded = modules_after(f"{mine}; {alone}; import course.solutions.ring_all_reduce")
    assert {"launch", "torch"} <= loaded and not loaded & {"widgets", "collectives", "anywidget", "plotly", "jax"}


def test_only_what_a_student_runs_in_chapter_16_imports_jax():
    """It takes a second and starts threads, in a rank as in a notebook."""
    sources = [source for package in ORDER for source in (ROOT / package).rglob("*.py")]
    found = [source.relative_to(ROOT).as_posix() for source in sources if "jax" in imported_packages(source)]
    assert found == ["course/instead.py", "course/solutions/ring_sum.py"]


def test_what_runs_in_a_rank_imports_neither_either():
    for source in sorted([ROOT / "launch" / "agent.py", *(ROOT / "launch" / "rank").glob("*.py")]):
        assert not imported_packages(source) & {"widgets", "collectives", "course"}, source.name


# From its folder a reader knows which process runs a line; so no room reaches into another process.
ROOMS = {
    "shared": {"shared"},
    "backends": {"backends", "shared"},  # what is gloo's runs in a rank; the table, everywhere
    "hints": {"hints"},
    "doctor": {"doctor", "shared"},
    "replay": {"replay", "shared"},
    "machine": {"machine", "kernel", "backends", "shared"},  # it stands between the two
    "kernel": {"kernel", "backends", "shared", "doctor", "hints"},
    "agent": {"agent", "backends", "shared", "rank"},  # it becomes a rank
    "rank": {"rank", "backends", "shared", "hints"},
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_launch_imports_no_other_process(room):
    file = ROOT / "launch" / f"{room}.py"
    for source in [file] if file.exists() else sorted((ROOT / "launch" / room).rglob("*.py")):
        for node in imports(source):
            for module in imported_modules(node):
                if module.startswith("launch."):
                    assert module.split(".")[1] in ROOMS[room], f"{source.relative_to(ROOT)} imports {module}"


def test_an_inner_module_is_imported_in_its_own_room_alone():
    """`_stores.py` is rank's own: whoever looks for what a room offers passes over it."""
    for source in sorted(path for above in ORDER for path in (ROOT / above).rglob("*.py")):
        for node in imports(source):
            for name in imported_modules(node):
                *room, inner = name.split(".")
                if inner.startswith("_") and room and room[0] in ORDER and ROOT.joinpath(*room, f"{inner}.py").exists():
                    assert source.parent == ROOT.joinpath(*room), f"{source.relative_to(ROOT)} imports {name}"


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """What an import statement may name: of `from launch.rank import _stores` the module and what stands in it."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def test_the_notebook_imports_no_torch_to_load_the_extension_and_no_grammar_to_show_a_figure():
    loaded = modules_after("import launch, launch.magics, launch.ranks, widgets, collectives, course, nbformat")
    assert not loaded & {"torch", "lark"}


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after the statement."""
    code = f"{statement}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())
