"""Race: the browser's times against `Schedule.cost`, and what a race shows."""

import pytest

from collectives import Network, all_reduce
from widgets import Race
from widgets.packing import pack

SECONDS = """async ([meta, records, nbytes, network]) => {
    const { decode } = await import("/js/schedule.js");
    const { secondsOf, unitBytes, workOf } = await import("/js/cost.js");
    const schedule = decode(meta, new DataView(Uint8Array.from(records).buffer));
    return secondsOf(workOf(schedule), unitBytes(schedule, nbytes), network);
}"""


@pytest.mark.parametrize("algorithm", ["naive", "exchange", "whole_ring", "ring"])
@pytest.mark.parametrize("nbytes", [4, 64_000_000])
def test_steps_last_as_long_as_the_cost_model_says(page, algorithm, nbytes):
    schedule = getattr(all_reduce, algorithm)(ranks=6)
    network = Network(alpha=3e-6, beta=1 / 5e9, gamma=1 / 50e9)
    data, meta = pack(schedule)
    costs = {"alpha": network.alpha, "beta": network.beta, "gamma": network.gamma}
    seen = page.evaluate(SECONDS, [meta, list(data), nbytes, costs])
    assert seen == pytest.approx(list(schedule.cost(nbytes=nbytes, network=network).step_seconds))


@pytest.fixture
def race(show):
    return show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6))


def winner(page):
    return page.locator(".rs-wins strong").all_inner_texts()


def test_the_winner_flips_as_n_grows(race):
    assert winner(race) == ["all_reduce ring"]
    race.focus("[data-name=nbytes]")
    race.keyboard.press("Home")
    assert winner(race) == ["all_reduce exchange"]
    assert race.evaluate("model.get('nbytes')") == 1


def test_moments_are_the_ends_of_steps_in_order_of_time(race):
    schedules = [all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8)]
    costs = [schedule.cost(nbytes=64e6, network=Network(10e-6, 1 / 10e9)) for schedule in schedules]
    ends = sorted({round(sum(cost.step_seconds[: k + 1]), 9) for cost in costs for k in range(len(cost.step_seconds))})
    race.focus(".rs-scrub input")
    for _ in ends:
        race.keyboard.press("ArrowRight")
    assert race.evaluate("model.get('step')") == len(ends) == int(race.get_attribute(".rs-scrub input", "max"))
    assert "exchange 1 of 1 steps" in race.inner_text(".rs-caption") and "ring 14 of 14 steps" in race.inner_text(
        ".rs-caption"
    )


def test_a_paused_race_shows_the_slower_one_under_way(race):
    race.focus(".rs-scrub input")
    race.keyboard.press("ArrowRight")
    slower, faster = race.locator(".rs-lane").all()
    assert slower.locator(".rs-packets > g").count() == 8 * 7 and faster.locator(".rs-packets > g").count() == 0
    assert "step 0 of 1" in slower.inner_text() and "step 1 of 14" in faster.inner_text()


def test_it_plays_to_the_end(race):
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
        (lambda: Race(all_reduce.ring(4), all_reduce.naive(4), network=3), TypeError, "Race draws a flat network"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)
