"""axe-core finds no violation on any widget, light or dark. It comes from the npm registry, and only in CI."""

from types import SimpleNamespace

import pytest

from collectives import all_reduce, pipeline, presets
from collectives.timed import Match, Timed
from tests.pictures.scenes import held, tokens
from widgets import (
    Butterfly,
    Drift,
    Memory,
    MemoryRun,
    Mesh,
    Player,
    Race,
    RankLog,
    SlotGrid,
    Square,
    Timeline,
    TopologyMap,
    WaitFor,
    Zoo,
)


def log():
    log = RankLog(ranks=3)
    log.write(0, "stdout", "\x1b[31mred\x1b[0m \x1b[32mgreen\x1b[0m \x1b[33myellow\x1b[0m\n")
    log.state(1, "failed", "ValueError")
    log.state(2, "waiting", "in recv")
    log._flush()
    return log


def log_with_differences():
    """And with the other states a rank can be in."""
    log = RankLog(ranks=5)
    for rank in range(5):
        log.write(rank, "stdout", f"same\nsum {4 + rank // 4}\n" + "more\n" * (rank != 2))
    log.state(0, "stuck", "all_reduce #2, line 4", 12)
    log.state(1, "asks for input")
    log.state(2, "running", "line 7", 12)
    log.state(3, "done")
    log._flush()
    return log


def many_ranks():
    log = RankLog(ranks=32)
    log.state(3, "running", "line 7", 12)
    log._flush()
    return log


def timeline():
    told = Match(0, "all_reduce #1 of world", 2)
    calls = [
        Timed(rank, "all_reduce", None, 4096, 3, "dist.all_reduce(x)", told, rank / 2, 0.6, 0.8, 0.9, 0.9)
        for rank in (0, 1)
    ]
    return Timeline(SimpleNamespace(events=calls, ranks=2), chosen=0)


WIDGETS = {
    "player": (lambda: Player(all_reduce.ring(ranks=4), step=2), []),
    "player with help and one rank": (lambda: Player(all_reduce.naive(ranks=4), step=2), ["?", "ArrowDown"]),
    "player of 9, with a texture": (lambda: Player(all_reduce.ring(ranks=9), step=9), []),
    "player as a tree": (lambda: Player(all_reduce.tree(ranks=16), step=3), ["l", "ArrowDown", "]"]),
    "player of machines": (lambda: Player(all_reduce.hierarchical(nodes=2, local=2), step=2), []),
    "race": (lambda: Race(all_reduce.ring(ranks=4), all_reduce.naive(ranks=4), step=3), []),
    "projected": (lambda: Player(all_reduce.ring(ranks=4), step=3), ["p"]),
    "log": (log, []),
    "log of 32": (many_ranks, []),
    "log with differences": (log_with_differences, ["[data-view=diff]"]),
    "timeline": (timeline, []),
    "zoo": (lambda: Zoo(ranks=2), []),
    "zoo with a player": (lambda: Zoo(ranks=2), ["[data-name='all_reduce.ring']", "ArrowRight"]),
    "map": (lambda: TopologyMap(all_reduce.ring(16), topology=presets.dgx_h100(2), nbytes=1e9), ["ArrowDown"]),
    "butterfly": (lambda: Butterfly(all_reduce.swing(8), local=4), ["ArrowRight", "ArrowDown"]),
    "mesh": (lambda: Mesh(shape=(2, 2, 4), local=8), ["ArrowRight", "ArrowDown"]),
    "square": (Square, ["ArrowRight"]),
    "square with waste": (lambda: Square("all_reduce", uses="own"), ["End"]),
    "slot grid": (lambda: SlotGrid(pipeline.gpipe(2, 4), pipeline.zero_bubble_h2(2, 4), step=8), []),
    "slot grid with an order typed": (lambda: SlotGrid(pipeline.interleaved(2, 4)), [".rs-write"]),
    "drift": (lambda: Drift([[[0, 0], [0.5, 1]], [[0, 0], [1, 2]]], [[0, 1], [1, 2]], step=0), ["ArrowRight"]),
    "memory": (lambda: Memory("Llama 3 8B", ranks=4, gpu=80e9), ["ArrowRight"]),
    "memory run": (lambda: MemoryRun(held()), []),
    "tokens": (tokens, ["ArrowRight", "ArrowDown"]),
    "wait-for": (lambda: WaitFor([(0, 2, "all_reduce", 4), (3, 1, "recv", 7)], 4), []),
}


RUN = """async (only) => (await axe.run(document, { resultTypes: ["violations"], ...only })).violations
    .map(({ id, nodes }) => [id, nodes[0].html])"""
# All that a scheme can change: only our CSS knows which it is.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


@pytest.mark.parametrize("name", WIDGETS)
def test_axe_finds_nothing(axe, show, page, name):
    make, keys = WIDGETS[name]
    show(make())
    for key in keys:
        if key[0] in "[.":  # something to click on
            page.click(key)
        else:
            page.focus("input[type=range]")
            page.keyboard.press(key)
    if page.evaluate("typeof axe") != "object":
        page.evaluate(axe)
    assert page.evaluate(RUN) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(RUN, COLOURS) == []


@pytest.mark.parametrize("name", ["player", "player as a tree", "race"])
def test_axe_finds_nothing_on_a_phone(axe, show, page, name):
    page.set_viewport_size({"width": 360, "height": 740})
    test_axe_finds_nothing(axe, show, page, name)
