"""`python etc/install.py [--wheels FOLDER] EXTRA ...` installs Ringside for this Python, with lock.txt's versions.

uv does it if it is on PATH or pip can get it, else pip does. pip's settings (index, find-links, no-index, trusted-host,
certificate) hold for both. One line says what happens; the installer speaks only when it fails.

Left out: which build of torch. pip and uv take 2.13.0+cpu before 2.13.0 where an index or a folder has it.
"""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "etc" / "lock.txt"
PIP = [sys.executable, "-m", "pip"]
TAKEN = {  # pip's settings that uv takes as options, and what it calls them
    "index-url": "--index-url",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}


def settings(listed: str) -> dict[str, str]:
    """What `pip config list` says. Of one setting in several places the last is in force: pip lists the environment
    first, which goes before all files."""
    found: dict[str, str] = {}
    lines = [line.partition("=") for line in listed.splitlines()]
    for name, _, value in sorted(lines, key=lambda line: line[0].startswith(":env:")):
        where, _, option = name.rpartition(".")
        if where in ("global", "install", ":env:"):
            found[option] = str(ast.literal_eval(value))
    return found


def options_for_uv(pips: dict[str, str]) -> list[str]:
    """The same settings as options of uv."""
    options = ["--index-strategy", "unsafe-best-match"]  # as pip does: the best version, whichever index has it
    for name, option in TAKEN.items():
        values = pips.get(name, "").split()
        if name == "find-links":  # pip passes over a folder that is not there, uv fails
            values = [value for value in values if "://" in value or Path(value).exists()]
        options += [part for value in values for part in (option, value)]
    return options + ["--no-index"] * (pips.get("no-index", "").lower() in ("1", "true", "yes", "on"))


def find_uv(wheels: list[str]) -> str | None:
    """uv: on PATH, here already, or by pip from where pip gets everything."""
    here = Path(sysconfig.get_path("scripts"), "uv")
    if (found := shutil.which("uv")) or here.exists():
        return found or str(here)
    got = subprocess.run([*PIP, "install", "--quiet", *wheels, "uv"], capture_output=True)
    return str(here) if got.returncode == 0 and here.exists() else None


def main(arguments: list[str]) -> int:
    wheels: list[str] = []
    if arguments[:1] == ["--wheels"]:
        wheels = ["--no-index", "--find-links", str(Path(arguments[1]).resolve())]
        arguments = arguments[2:]
    extras = f"[{','.join(arguments)}]" if arguments else ""
    what = ["--constraint", str(LOCK), "--editable", f"{ROOT}{extras}"]
    environment = {**os.environ}
    if uv := find_uv(wheels):
        listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout
        pips = settings(listed)
        if cert := pips.get("cert"):
            environment.setdefault("SSL_CERT_FILE", cert)
        given = wheels or options_for_uv(pips)
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable, *given, *what]
    else:
        command = [*PIP, "install", "--quiet", *wheels, *what]
    print(f"installing JupyterLab, torch and the rest with {'uv' if uv else 'pip'} ...", end=" ", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, env=environment)
    print("failed" if done.returncode else f"{time.monotonic() - began:.0f} s", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
