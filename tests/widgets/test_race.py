"""Race: the browser's times against `Schedule.cost`, and what a race shows."""

import base64
import re
from xml.dom import minidom

import pytest

from collectives import Link, Network, ScheduleError, Topology, all_reduce, presets
from tests.widgets.conftest import ask
from widgets import Race
from widgets._packing import pack
from widgets.race import _won

SECONDS = """async ([meta, records, nbytes, network]) => {
    const { decode } = await import("/js/schedule.js");
    const { secondsOf, unitBytes, workOf } = await import("/js/cost.js");
    const schedule = decode(meta, new DataView(Uint8Array.from(records).buffer));
    return secondsOf(schedule.work ?? workOf(schedule), unitBytes(schedule, nbytes), network);
}"""


@pytest.mark.parametrize("algorithm", ["naive", "exchange", "whole_ring", "ring"])
@pytest.mark.parametrize("nbytes", [4, 64_000_000])
def test_steps_last_as_long_as_the_cost_model_says(modules, algorithm, nbytes):
    schedule = getattr(all_reduce, algorithm)(ranks=6)
    network = Network(alpha=3e-6, beta=1 / 5e9, gamma=1 / 50e9)
    data, meta = pack(schedule)
    costs = {"alpha": network.alpha, "beta": network.beta, "gamma": network.gamma}
    seen = ask(modules, SECONDS, [meta, list(data), nbytes, costs])
    assert seen == pytest.approx(list(schedule.cost(nbytes=nbytes, network=network).step_seconds))


def cluster(machines=2, gpus=4):
    """Inside a machine a hundred times the bandwidth, and a tenth of the latency, of what is between them."""
    inside, between = Link(1e-6, 1 / 400e9), Link(10e-6, 1 / 4e9)
    return Topology.machines(machines, gpus=gpus, inside=inside, between=between, nic="machine", gamma=1 / 100e9)


@pytest.mark.parametrize("nbytes", [4, 64_000_000])
@pytest.mark.parametrize("topology", [cluster(), Topology.ring(8, Link(2e-6, 1e-9)), Topology.shared(8, Link(0, 1e-8))])
def test_on_a_topology_too(modules, topology, nbytes):
    schedules = [all_reduce.ring(ranks=8), all_reduce.hierarchical(nodes=2, local=4), all_reduce.tree(ranks=8)]
    race = Race(*schedules, nbytes=nbytes, network=topology)
    factors = {"alpha": race.alpha, "beta": 1 / race.bandwidth, "gamma": race.gamma}
    for schedule, meta in zip(schedules, race.metas, strict=True):
        seen = ask(modules, SECONDS, [meta, list(pack(schedule)[0]), nbytes, factors])
        assert seen == pytest.approx(list(schedule.cost(nbytes=nbytes, network=topology).step_seconds))


def test_a_topology_is_named_and_drawn_and_its_sliders_are_factors(show):
    schedules = [all_reduce.ring(ranks=8), all_reduce.hierarchical(nodes=2, local=4)]
    page = show(Race(*schedules, nbytes=64e6, network=cluster()))
    assert cluster().name in page.inner_text(".rs-header")
    assert page.locator(".rs-lane").first.locator(".rs-box").count() == 2
    assert page.inner_text("[data-of=alpha]") == page.inner_text("[data-of=bandwidth]") == "1×"
    page.evaluate("model.set('step', 1e6)")
    before = page.locator(".rs-won").all_inner_texts()
    page.focus("[data-name=bandwidth]")
    page.keyboard.press("End")
    assert page.inner_text("[data-of=bandwidth]") == "100×"
    assert page.locator(".rs-won").all_inner_texts() != before


def test_the_winner_flips_on_a_topology_too(show):
    schedules = [all_reduce.ring(ranks=8), all_reduce.tree(ranks=8)]
    page = show(Race(*schedules, nbytes=64e6, network=cluster()))
    for n, key in ((64e6, None), (1, "Home")):
        if key:
            page.focus("[data-name=nbytes]")
            page.keyboard.press(key)
        seconds = [schedule.cost(nbytes=n, network=cluster()).seconds for schedule in schedules]
        assert winner(page) == [schedules[seconds.index(min(seconds))].algorithm]
    assert winner(page) == ["tree"]


@pytest.fixture
def race(show):
    return show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6))


def winner(page):
    """It is named when the race is over."""
    page.evaluate("model.set('step', 1e6)")
    return page.locator(".rs-wins strong").all_inner_texts()


def test_the_winner_flips_as_n_grows(race):
    assert winner(race) == ["ring"]
    race.focus("[data-name=nbytes]")
    race.keyboard.press("Home")
    assert winner(race) == ["exchange"]
    assert race.evaluate("model.get('nbytes')") == 1


def test_moments_are_the_ends_of_steps_in_order_of_time(race):
    schedules = [all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8)]
    costs = [schedule.cost(nbytes=64e6, network=Network(10e-6, 1 / 10e9)) for schedule in schedules]
    ends = sorted({round(sum(cost.step_seconds[: k + 1]), 9) for cost in costs for k in range(len(cost.step_seconds))})
    race.focus(".rs-scrub input")
    for _ in ends:
        race.keyboard.press("ArrowRight")
    assert race.evaluate("model.get('step')") == len(ends) == int(race.get_attribute(".rs-scrub input", "max"))
    assert "all_reduce exchange step 1 of 1, all_reduce ring step 14 of 14" in race.inner_text(".rs-caption")


def test_a_paused_race_shows_the_slower_one_under_way(race):
    race.focus(".rs-scrub input")
    race.keyboard.press("ArrowRight")
    slower, faster = race.locator(".rs-lane").all()
    assert slower.locator(".rs-packets > g").count() == 8 * 7 and faster.locator(".rs-packets > g").count() == 0
    assert "step 1 of 1 · busiest rank sent 7 N" in slower.inner_text() and "step 1 of 14" in faster.inner_text()
    assert race.inner_text(".rs-title") == "Not over yet: all_reduce ring is ahead"


def test_it_may_begin_in_the_middle(show):
    page = show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6, step=3))
    assert "ring step 3 of 14" in page.inner_text(".rs-caption")
    assert page.locator(".rs-lane >> nth=1").locator(".rs-arrow").count() == 8


def test_it_plays_to_the_end(race):
    race.click(".rs-more")
    race.select_option(".rs-speed select", "16")
    race.focus(".rs-scrub input")
    race.keyboard.press("Space")
    race.wait_for_function(
        "!model.get('playing') && model.get('step') === Number(document.querySelector('.rs-scrub input').max)"
    )
    texts = race.locator(".rs-lane >> nth=1").locator(".rs-text").all_text_contents()
    assert set(texts) == {"all 8"} or all("+" in text for text in texts)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Race(all_reduce.ring(4)), ValueError, "Race needs at least two schedules, got 1"),
        (
            lambda: Race(all_reduce.ring(4), 7),
            TypeError,
            "Race plays Schedules, such as all_reduce.ring(ranks=8); got 7",
        ),
        (
            lambda: Race(all_reduce.ring(4), all_reduce.naive(4), nbytes=-1),
            ValueError,
            "nbytes is N in bytes and positive, got -1",
        ),
        (lambda: Race(all_reduce.ring(4), all_reduce.naive(4), network=3), TypeError, "Race runs on a Network(alpha"),
        (
            lambda: Race(all_reduce.ring(9), all_reduce.naive(9), network=cluster()),
            ScheduleError,
            "has 8 ranks, and 9 are needed",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


@pytest.mark.parametrize("network", [Network(alpha=2e-5, beta=5e-10), presets.dgx_h100(1)], ids=["flat", "topology"])
def test_what_is_saved_beside_it_has_a_bar_as_long_as_each_takes_cut_at_its_steps(network):
    plans = [all_reduce.exchange(4), all_reduce.ring(4), all_reduce.naive(4)]
    html = Race(*plans, nbytes=64e6, network=network).fallback()
    assert html == Race(*plans, nbytes=64e6, network=network).fallback()
    picture = minidom.parseString(base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]))
    bars = [bar for bar in picture.getElementsByTagName("rect") if bar.hasAttribute("x")]
    long = [float(bar.getAttribute("width")) for bar in bars]
    costs = [plan.cost(nbytes=64e6, network=network) for plan in plans]
    longest = max(range(3), key=lambda i: costs[i].seconds)
    for drawn, cost in zip(long, costs, strict=True):
        assert drawn / long[longest] == pytest.approx(cost.seconds / costs[longest].seconds, abs=0.002)
    said = picture.getElementsByTagName("text")[0].firstChild.data
    best, second = sorted(costs, key=lambda cost: cost.seconds)[:2]
    assert re.fullmatch(r"all_reduce ring wins: [\d.]+ times faster than all_reduce \w+", said)
    assert float(said.split()[3]) == pytest.approx(second.seconds / best.seconds, rel=0.01)
    cuts = [path.getAttribute("d").count("M") for path in picture.getElementsByTagName("path")]
    assert cuts == [len(plan.steps) - 1 for plan in plans]


def test_the_still_of_a_measured_race_says_who_won_unless_the_clocks_do_not_tell():
    assert _won(["ring", "naive"], [1.0, 3.9], 0.0) == "ring wins: 3.9 times faster than naive"
    assert _won(["a", "b", "c"], [2.0, 9.0, 1.0], 0.5) == "c wins: 2 times faster than a"
    assert _won(["ring", "naive"], [1.0, 1.3], 0.5) == (
        "No winner: ring and naive take the same time, as far as their clocks tell (± 500 ms)"
    )


def test_two_lanes_stand_side_by_side_beside_the_files_of_jupyterlab(show, page):
    page.set_viewport_size({"width": 872, "height": 600})
    show(Race(all_reduce.exchange(4), all_reduce.ring(4), nbytes=64e6))
    tops = page.locator(".rs-lane").evaluate_all("lanes => lanes.map((lane) => lane.getBoundingClientRect().top)")
    assert tops[0] == tops[1] and page.evaluate("document.documentElement.scrollHeight") <= 600


def test_the_bars_of_what_was_sent_have_one_scale_in_all_lanes(show):
    page = show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6))
    page.focus(".rs-scrub input")
    page.keyboard.press("End")
    tall = (
        "(nodes) => nodes.map((node) => [...node.querySelectorAll('.rs-sent')].map((bar) => bar.height.baseVal.value))"
    )
    (exchange, *_), (ring, *_) = page.locator(".rs-lane").evaluate_all(tall)
    assert ring / exchange == pytest.approx(1.75 / 7, abs=0.02)
