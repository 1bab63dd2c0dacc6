"""cost_explorer: its lines against `Schedule.cost`, its crossovers against formulas solved by hand, its saved form."""

import math
import re
import subprocess
import sys
from base64 import b64decode

import plotly.graph_objects as go
import plotly.io as pio
import pytest

from collectives import CATALOGUE, Network, ScheduleError, all_reduce, build, presets
from widgets import cost_explorer

FLAT = Network(alpha=10e-6, beta=1 / 10e9)


def lines(figure, visible=True):
    return {trace.name: trace for trace in figure.data if trace.visible == visible and trace.mode == "lines"}


def crossovers(figure):
    (trace,) = (trace for trace in figure.data if trace.name == "crossover" and trace.visible)
    return [(words.split(" from ")[0], nbytes) for words, nbytes in zip(trace.text, trace.x, strict=True)]


@pytest.mark.parametrize("network", [FLAT, presets.gpus_on_ethernet(machines=2, gpus=4)], ids=repr)
def test_every_point_is_what_the_schedule_costs(network):
    names = ("naive", "ring", "halving_doubling", "tree")
    figure = cost_explorer("all_reduce", ranks=8, network=network, algorithms=names)
    for name in names:
        schedule, line = build("all_reduce", name, 8), lines(figure)[name]
        for nbytes, seconds in list(zip(line.x, line.y, strict=True))[::6]:
            assert seconds == pytest.approx(schedule.cost(nbytes=nbytes, network=network).seconds, rel=1e-3)
    fastest = lines(figure).pop("fastest")
    others = [line.y for name, line in lines(figure).items() if name != "fastest"]
    assert list(fastest.y) == [min(values) for values in zip(*others, strict=True)]
    assert set(lines(figure)) - {"fastest"} == set(names)


def test_it_begins_with_four_curves_and_keeps_the_others_in_the_legend():
    figure = cost_explorer("all_reduce", ranks=8, network=FLAT)
    seen = {trace.name: trace.visible for trace in figure.data if trace.name not in ("fastest", "crossover")}
    assert [name for name, visible in seen.items() if visible is True] == [
        "recursive_doubling", "halving_doubling", "halving_doubling_far_first", "swing",
    ]  # fmt: skip
    assert {visible for visible in seen.values()} == {True, "legendonly"} and len(seen) > 10


def test_nobody_waits_if_one_says_so():
    """One ring of 4 x 8: 62 steps of a card's latency, or 54 hops inside and 8 between."""
    for pipelined, seconds in [(False, 62 * 14e-6), (True, 54 * 3.4e-6 + 8 * 14e-6)]:
        figure = cost_explorer("all_reduce", network=presets.dgx_h100(), algorithms=["ring"], pipelined=pipelined)
        assert lines(figure)["ring"].y[0] == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize("ranks", [4, 8, 32])
def test_all_reduce_crosses_where_the_formulas_are_equal(ranks):
    """log2(p) (alpha + N beta) against 2 log2(p) alpha + 2 (p-1)/p N beta, solved for N."""
    steps = math.log2(ranks)
    expected = steps * FLAT.alpha / (FLAT.beta * (steps - 2 * (ranks - 1) / ranks))
    ((name, nbytes),) = crossovers(cost_explorer("all_reduce", ranks=ranks, network=FLAT))
    assert name == "halving_doubling" and nbytes == pytest.approx(expected, rel=1e-6)


def test_all_to_all_crosses_where_the_formulas_are_equal():
    """log2(p) (alpha + N/2 beta) against (p-1) (alpha + N/p beta), p = 8, solved for N."""
    ((name, nbytes),) = crossovers(cost_explorer("all_to_all", ranks=8, network=FLAT))
    assert name == "linear" and nbytes == pytest.approx(4 * FLAT.alpha / (FLAT.beta * (1.5 - 7 / 8)), rel=1e-6)


def shown_by(figure, step):
    """The traces and the sentence that a button or a step of the slider shows."""
    data, layout = step.args
    traces = [trace for trace, visible in zip(figure.data, data["visible"], strict=True) if visible]
    return traces, layout["annotations[0].text"]


def test_a_slider_walks_the_numbers_of_ranks():
    figure = cost_explorer("all_reduce", ranks=(2, 4, 8), network=FLAT)
    (slider,) = figure.layout.sliders
    assert [step.label for step in slider.steps] == ["2", "4", "8"] and not figure.layout.updatemenus
    for step, ranks in zip(slider.steps, (2, 4, 8), strict=True):
        alone = cost_explorer("all_reduce", ranks=ranks, network=FLAT)
        traces, sentence = shown_by(figure, step)
        assert [(trace.name, trace.x, trace.y) for trace in traces] == [(t.name, t.x, t.y) for t in alone.data]
        assert sentence == alone.layout.annotations[0].text
    assert [trace.visible for trace in figure.data] == list(slider.steps[0].args[0]["visible"])


@pytest.fixture(scope="module")
def networks():
    """With a menu of networks: half a second of sums."""
    return cost_explorer("all_reduce")


def test_a_menu_chooses_the_network(networks):
    (menu,) = networks.layout.updatemenus
    assert [button.label for button in menu.buttons][:2] == ["4 x DGX H100", "4 machines x 8 GPUs on 100G Ethernet"]
    traces, sentence = shown_by(networks, menu.buttons[0])
    assert "multi_ring" in sentence and {trace.name for trace in traces} >= {"ring", "hierarchical", "crossover"}
    times = all_reduce.hierarchical(nodes=4, local=8).cost(nbytes=1e9, network=presets.dgx_h100()).seconds
    (line,) = (trace for trace in traces if trace.name == "hierarchical")
    assert line.y[line.x.index(1e9)] == pytest.approx(times, rel=1e-3)


def test_lines_differ_in_more_than_colour_and_keep_their_looks(networks):
    looks = {}
    for trace in networks.data:
        if trace.mode == "lines" and trace.name != "fastest":
            looks.setdefault(trace.name, set()).add((trace.line.color, trace.line.dash))
    assert all(len(of_one) == 1 for of_one in looks.values())
    elsewhere = {"nvls", "sharp"}  # one machine, and switches that add between machines: no network of the menu
    assert len(set.union(*looks.values())) == len(looks) and set(looks) == set(CATALOGUE["all_reduce"]) - elsewhere
    drawn = [trace.line.color for trace in networks.data if trace.mode == "lines" and trace.visible is True]
    assert len(set(drawn)) == len(drawn), "those that are seen at first differ in colour, too"


def test_units_are_in_words():
    layout = cost_explorer("all_reduce", ranks=4, network=FLAT).layout
    ticks = dict(zip(layout.xaxis.tickvals, layout.xaxis.ticktext, strict=True))
    assert ticks[1e6] == "1 MB" and ticks[1e9] == "1 GB"
    assert dict(zip(layout.yaxis.tickvals, layout.yaxis.ticktext, strict=True))[1e-3] == "1 ms"


def test_what_is_saved_beside_it_says_who_wins(monkeypatch):
    monkeypatch.setattr(pio.renderers, "default", "plotly_mimetype")  # as it is in a kernel
    figure, again = (cost_explorer("all_reduce", ranks=4, network=FLAT) for _ in range(2))
    assert isinstance(figure, go.Figure) and not isinstance(figure, go.FigureWidget)
    bundle = figure._repr_mimebundle_()
    assert bundle["text/plain"] == repr(figure) == "cost_explorer(all_reduce, 4 ranks, 10 us per message, 10 GB/s)"
    assert "Fastest: recursive_doubling, halving_doubling from 400 kB on." in bundle["text/html"]
    assert figure.to_json() == again.to_json() and len(figure.to_json()) < 16_000


LINE = r'<path fill="none" stroke="{}"[^>]* d="M([^"]+)"'


def still(figure):
    return b64decode(re.search(r"base64,([^\"]+)", figure.fallback())[1]).decode()


def scale(panel, axis):
    """What a place in pixels stands for, by the ticks: two of them say it, as both axes are logarithmic."""
    kind = {"x": r'd="M([\d.]+) 0V', "y": r'd="M0 ([\d.]+)H'}[axis]
    places = [float(place) for place in re.findall(rf'class="g" {kind}', panel)]
    words = re.findall(rf'<text class="rd-small rd-light rd-{"mid" if axis == "x" else "end"}"[^>]*>([^<]+)', panel)
    units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "us": 1e-6, "ms": 1e-3, "s": 1}
    values = [math.log10(float(number) * units[unit]) for number, unit in map(str.split, words)]
    slope = (values[-1] - values[0]) / (places[-1] - places[0])
    return lambda place: 10 ** (values[0] + (place - places[0]) * slope)


def test_in_the_still_every_curve_is_what_the_schedule_costs_by_the_ticks_of_its_axes():
    names = ["ring", "tree"]
    figure = cost_explorer("all_reduce", ranks=(8, 16), network=FLAT, algorithms=names)
    _, *panels = still(figure).split("<g transform")
    assert len(panels) == 2
    for panel, ranks in zip(panels, (8, 16), strict=True):
        assert f">{ranks} ranks, 10 us per message, 10 GB/s<" in panel and ">N, bytes of a whole vector<" in panel
        size, seconds = scale(panel, "x"), scale(panel, "y")
        for name in names:
            (line,) = re.findall(LINE.format(lines(figure)[name].line.color), panel.split("<path stroke=")[0])
            points = [tuple(map(float, point.split())) for point in line.split("L")]
            assert len(points) == 31
            for x, y in points[::6]:
                cost = build("all_reduce", name, ranks).cost(nbytes=size(x), network=FLAT).seconds
                assert seconds(y) == pytest.approx(cost, rel=0.02)


def test_in_the_still_a_crossing_is_marked_where_both_take_the_same():
    figure = cost_explorer("all_reduce", ranks=4, network=FLAT)
    (name, nbytes), *more = crossovers(figure)
    panel = still(figure).split("<g transform")[1]
    ((x, y),) = re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', panel)
    assert not more and scale(panel, "x")(float(x)) == pytest.approx(nbytes, rel=0.02)
    takes = build("all_reduce", name, 4).cost(nbytes=nbytes, network=FLAT).seconds
    assert scale(panel, "y")(float(y)) == pytest.approx(takes, rel=0.02)
    assert ">from 400 kB<" in panel and f">{name}<" in panel


def test_plotly_is_loaded_by_who_draws():
    code = "import sys, widgets; print('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: cost_explorer("all_reduced"), "no collective is called 'all_reduced'"),
        (lambda: cost_explorer("all_reduce", network=FLAT), "cost_explorer needs ranks, for example ranks=8"),
        (lambda: cost_explorer("all_reduce", ranks=64, network=presets.dgx_h100()), "has 32 ranks"),
        (lambda: cost_explorer("all_reduce", ranks=8, network=7), "network is a Network or a Topology"),
        (lambda: cost_explorer("all_reduce", ranks=8, network=FLAT, sizes=[]), "compare needs sizes in bytes"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, words):
    with pytest.raises(ScheduleError) as raised:
        make()
    assert words in str(raised.value)


def test_on_a_wall_no_text_is_smaller_than_a_fortieth_of_its_height(page):
    figure = cost_explorer("all_reduce", ranks=(8, 16), network=FLAT, projector=720)
    page.set_content(figure.to_html(include_plotlyjs=True))
    page.wait_for_selector(".legendtext")
    smallest, lowest = page.evaluate("""() => {
        const texts = [...document.querySelectorAll("svg text")].filter((node) => node.textContent.trim());
        return [Math.min(...texts.map((node) => parseFloat(getComputedStyle(node).fontSize))),
                Math.max(...texts.map((node) => node.getBoundingClientRect().bottom))];
    }""")
    assert smallest >= 18 and lowest <= 720


def test_on_a_wall_a_menu_asks_for_letters_of_that_size_too():
    networks = [presets.dgx_h100(), presets.pcie_box()]
    layout = cost_explorer("all_reduce", network=networks, projector=1080).to_plotly_json()["layout"]
    asked = [int(size) for size in re.findall(r"'font': {[^}]*'size': (\d+)", str(layout))]
    assert layout["updatemenus"] and len(asked) > 4 and min(asked) >= 27 and layout["height"] <= 1080


def test_in_the_still_no_curve_crosses_the_words_beside_a_crossing():
    """The curves of a panel are masked, with a hole for each of its words; the words are drawn on top."""
    network = presets.dgx_h100(4)
    drawn = still(cost_explorer("all_reduce", network=network, algorithms=["ring", "halving_doubling", "multi_ring"]))
    (mask, curves) = re.search(r'<mask id="words0".*?>(.*?)</mask><g mask="url\(#words0\)">(.*?)</g>', drawn).groups()
    words = re.findall(r">(?:multi_ring|halving_doubling|from [^<]+)</text>", drawn.split("</mask>")[1])
    holes = [list(map(float, found)) for found in re.findall(r'd="M([\d.]+) ([\d.]+)h([\d.]+)v(\d+)', mask)]
    assert holes and all(wide > 60 and tall == 30 for _, _, wide, tall in holes)
    assert "<text" not in curves and len(words) >= 2 * len(holes)
