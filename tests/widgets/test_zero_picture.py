"""Memory: areas are bytes, parts are there at the moments at which they are held, and the still says it alone."""

import base64
import re

import pytest

from widgets import Memory

SMALL = {"model": [32, 272, 272], "ranks": 4, "weight": 4, "gradient": 4, "optimizer": 8}
AREAS = """() => {
    const areas = {};
    for (const node of document.querySelectorAll(".rs-drawing path.rs-bare")) {
        if (getComputedStyle(node).visibility === "hidden" || node.getAttribute("d").match(/h13v11/)) continue;
        const hue = node.getAttribute("class").match(/rs-h\\d/)[0];
        for (const [, x, h, v] of node.getAttribute("d").matchAll(/M([\\d.]+) [\\d.]+h([\\d.]+)v([\\d.]+)/g)) {
            const panel = Math.floor((Number(x) - 4) / 173);
            areas[`${panel} ${hue}`] = (areas[`${panel} ${hue}`] ?? 0) + h * v;
        }
    }
    return areas;
}"""
KINDS = {"optimizer": "rs-h2", "weights": "rs-h1", "gradients": "rs-h0"}


@pytest.mark.parametrize("step", [0, 1, 3, 5, 7, 8])
def test_what_is_filled_is_what_is_held(show, step):
    """All areas against one: that of the optimizer's state without ZeRO. Gathered weights lie below their shard."""
    widget = Memory(**SMALL, step=step)
    areas = show(widget).evaluate(AREAS)
    unit = areas["0 rs-h2"] / (8 * 576)
    for panel, run in enumerate(widget.runs):
        for kind, nbytes in run.held(run.moments[step]).items():
            if kind == "activations":
                continue
            layer = run.moments[step].layer
            if kind == "weights" and panel == 3 and layer is not None:
                nbytes += 4 * run.layers[layer] / 4  # the shard, on top of the layer
            drawn = areas.get(f"{panel} {KINDS[kind]}", 0.0)
            assert drawn / unit == pytest.approx(nbytes, rel=0.06, abs=60), (panel, kind)


def test_the_gauge_and_the_words_follow_the_steps(show):
    page = show(Memory(**SMALL))
    page.focus(".rs-scrub input")
    seen = """() => [...document.querySelectorAll(".rs-drawing text")].map((node) => node.textContent)
        .filter((words, i) => words.startsWith("now")
            && getComputedStyle(document.querySelectorAll(".rs-drawing text")[i]).visibility !== "hidden")"""
    assert page.evaluate(seen) == ["now 6.91 kB", "now 3.46 kB", "now 3.46 kB", "now 1.73 kB"]
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    said = page.inner_text(".rs-told")
    assert said == "Step 4 of 8. Backward, layer 3: ZeRO-3 has gathered it again. Its whole gradient is there."
    assert page.evaluate(seen)[3] == "now 3.63 kB"
    page.keyboard.press("End")
    assert page.inner_text(".rs-sentence").startswith("Each rank has updated its shard")
    assert page.evaluate("model.get('step')") == 8


def test_a_model_by_its_name_and_what_does_not_fit(show):
    page = show(Memory("Llama 3 8B", ranks=16, gpu=80e9))
    assert (
        page.inner_text(".rs-title")
        == "Training Llama 3 8B peaks at 130 GB a rank, 20 GB if 16 ranks share what they keep: ZeRO-3"
    )
    fits = [words for words in page.locator(".rs-drawing text").all_text_contents() if "fit" in words]
    assert fits == ["does not fit in 80 GB", *["fits in 80 GB"] * 3]


def test_the_still_says_it_alone():
    one, two = (Memory(**SMALL)._repr_mimebundle_()[0] for _ in range(2))
    assert one["text/html"] == two["text/html"] and len(one["text/html"]) < 40_000
    assert one["text/plain"] == "Memory(the model, 4 ranks)"
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", one["text/html"])[1]).decode()
    assert all(name in svg for name in ("no ZeRO", "ZeRO-1", "ZeRO-2", "ZeRO-3", "peak 9.22 kB", "peak 3.9 kB"))
    assert svg.count("now ") == 4, "one moment"


@pytest.mark.parametrize("width", [360, 900])
def test_it_fits(show, page, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(Memory("Llama 3 70B", ranks=64, gpu=80e9, step=9))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ends = "(nodes) => nodes.map((node) => node.getBoundingClientRect().right)"
    assert max(page.locator(".rs-drawing :is(path, text)").evaluate_all(ends)) <= width


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Memory("Llama", ranks=4), "no model is called 'Llama'"),
        (lambda: Memory([1.0] * 13, ranks=4), "Memory draws up to 12 layers, got 13; add some up"),
        (lambda: Memory([1.0], ranks=1), "Training needs at least 2 ranks, got 1"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert words in str(raised.value)
