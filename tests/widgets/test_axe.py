"""axe-core finds no violation on any widget, light or dark. It comes from the npm registry, and only in CI."""

import json
import os
import shutil
import subprocess
import tarfile
from types import SimpleNamespace

import pytest

from collectives import all_reduce
from widgets import Player, RankLog, Timeline

PACKAGE = "axe-core@4.10.3"


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core."""
    if os.environ.get("CI") != "true" or not shutil.which("npm"):
        pytest.skip(f"{PACKAGE} is fetched with npm in CI only (set CI=true)")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
    )
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def log():
    log = RankLog(ranks=3)
    log.write(0, "stdout", "\x1b[31mred\x1b[0m \x1b[32mgreen\x1b[0m \x1b[33myellow\x1b[0m\n")
    log.state(1, "failed", "ValueError")
    log.state(2, "waiting", "in recv")
    log._flush()
    return log


def timeline():
    times = {"start": 0.0, "issued": 0.1, "wait": 0.8, "end": 0.9, "finished": 0.9}
    call = SimpleNamespace(rank=0, op="all_reduce", peer=None, bytes=4096, line=3, code="dist.all_reduce(x)", **times)
    return Timeline(SimpleNamespace(events=[call]), chosen=0)


WIDGETS = {
    "player": (lambda: Player(all_reduce.ring(ranks=4), step=2), []),
    "player with help and one rank": (lambda: Player(all_reduce.naive(ranks=4), step=2), ["?", "ArrowDown"]),
    "player of 16": (lambda: Player(all_reduce.ring(ranks=16), step=9), []),
    "projected": (lambda: Player(all_reduce.ring(ranks=8), step=9), ["p"]),
    "log": (log, []),
    "timeline": (timeline, []),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", WIDGETS)
def test_axe_finds_nothing(axe, show, page, name, scheme):
    make, keys = WIDGETS[name]
    page.emulate_media(color_scheme=scheme)
    show(make())
    for key in keys:
        page.focus("input[type=range]")
        page.keyboard.press(key)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert not found, json.dumps([(violation["id"], violation["nodes"][0]["html"]) for violation in found], indent=1)
