"""Stills, shown where no browser runs a widget: no word is cut, each has its headline, different runs differ."""

import json
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

from collectives import all_reduce, pipeline, presets
from tests.pictures import scenes
from tests.pictures.scenes import SCENES
from tests.widgets.conftest import ask, settle
from widgets import Drift, Memory, Mesh, Player, Race, SlotGrid, Square, TopologyMap

COURSE = Path(__file__).parents[2] / "course"
TOLD_APART = {
    "a training with and without the line that averages": (scenes.drifting(alone=True), scenes.drifting(alone=False)),
    "a run that waits and one that computes": (scenes.timeline(), scenes.backward()),
    "who wins": (
        Race(all_reduce.naive(4), all_reduce.ring(4), nbytes=1e9),
        Race(all_reduce.naive(4), all_reduce.ring(4), nbytes=1e2),
    ),
    "a small and a large model": (Memory("Llama 3 8B", 4), Memory("Llama 3 70B", 4)),
    "two orders of a pipeline": (SlotGrid(pipeline.gpipe(4, 8)), SlotGrid(pipeline.one_f_one_b(4, 8))),
    "whether a rank throws away what it gets": (Square("all_reduce"), Square("all_reduce", uses="own")),
    "two meshes of the same ranks": (Mesh(shape=(2, 4)), Mesh(shape=(4, 2))),
    "two algorithms": (Player(all_reduce.ring(4)), Player(all_reduce.naive(4))),
    "a step with a mistake and one without": (
        Player(all_reduce.ring(4), step=6, frame=(2, "data", 1)),
        Player(all_reduce.ring(4), step=6),
    ),
    "a ring and a hierarchy on the same machines": (
        TopologyMap(all_reduce.ring(32), topology=presets.dgx_h100(), nbytes=1e9),
        TopologyMap(all_reduce.hierarchical(4, 8), topology=presets.dgx_h100(), nbytes=1e9),
    ),
    "what will be written over and what is not there": (
        Player(scenes.broadcast_run()),
        Player(scenes.broadcast_run(stale_values=[])),
    ),
}


def svg(html):
    return b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()


@pytest.mark.parametrize("what", TOLD_APART)
def test_stills_of_runs_that_a_text_tells_apart_differ(what):
    one, other = (svg(widget.fallback()) for widget in TOLD_APART[what])
    assert one != other


STILLS = [name for name in SCENES if name.startswith("still-")]
CUT = """(svg) => {
    const page = document.body.appendChild(document.createElement("div"));
    page.innerHTML = svg;
    const box = page.firstElementChild.getBoundingClientRect();
    const texts = [...page.querySelectorAll(":not(defs > *) > text")];
    const cut = texts.filter((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        const out = Math.max(box.left - left, right - box.right, box.top - top, bottom - box.bottom);
        return text.textContent && out > 1;
    });
    page.remove();
    return [texts[0].textContent, cut.map((text) => text.textContent)];
}"""
HEADED = ["timeline", "timeline-ddp", "butterfly", "butterfly-rank", "square", "square-waste", "mesh", "mesh-rank",
          "tokens", "tokens-pairs", "memory", "drift", "drift-one"]  # fmt: skip


PLAIN = ["slot-grid", "slot-grid-own", "race", "map", "player-ring", "player-new", "player-tree", "player-64", *STILLS]


@pytest.mark.parametrize("name", [*HEADED, *PLAIN])
def test_no_word_of_a_still_is_cut(modules, name):
    """At 700 pixels, with the letters that the still asks for; it opens with the headline of the live widget."""
    widget = SCENES[name].make()
    html = widget.html if name in STILLS else widget.fallback()
    picture = svg(html)
    assert len(html) < 40_000
    first, cut = ask(modules, CUT, picture)
    assert cut == [] and (name not in HEADED or first == widget.headline)


@pytest.mark.parametrize("name", [*HEADED, "slot-grid", "wait-for", "map"])
def test_the_live_title_is_one_headline_that_is_not_cut(show, name):
    page = show(SCENES[name].make())
    settle(page)
    title = page.locator(".rs-title")
    assert " " in title.inner_text() and title.evaluate(
        "(node) => node.scrollWidth <= node.clientWidth || !node.clientWidth"
    )


def stills(chapter):
    """(number of the cell, the still) of every picture that is saved in a chapter; not of a step before a question."""
    cells = json.loads(chapter.read_text())["cells"]
    for number, cell in enumerate(cells):
        for output in cell.get("outputs", []):
            data = {kind: "".join(text) for kind, text in output.get("data", {}).items() if kind.startswith("text/")}
            if "base64," in data.get("text/html", "") and "question" not in data["text/plain"]:
                yield number, svg(data["text/html"])


@pytest.mark.parametrize("chapter", sorted(COURSE.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_two_cells_of_a_chapter_have_the_same_still(chapter):
    seen: dict[str, int] = {}
    for number, picture in stills(chapter):
        assert picture not in seen, f"cells {seen[picture]} and {number}"
        seen[picture] = number


def test_the_pale_lines_of_a_drift_are_explained():
    at = np.linspace(0, 1, 12)
    assert "Pale: steps 1, 3, 10." in svg(Drift([[(x, x) for x in at]], [[0.0]]).fallback())


def test_zero_1_and_2_can_be_told_apart():
    """The still shows the moment at which what they hold differs most: all gradients are there, or a shard of them."""
    memory = Memory("Llama 3 8B", ranks=4)
    now = re.findall(r"now ([\d.]+) GB", svg(memory.fallback()))
    ends = [max(a - b for a, b in zip(memory.runs[1].totals, memory.runs[2].totals, strict=True))]
    assert float(now[1]) - float(now[2]) == pytest.approx(ends[0] / 1e9, abs=0.11) and ends[0] > 10e9
