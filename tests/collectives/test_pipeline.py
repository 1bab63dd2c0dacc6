"""Orders of a pipeline against closed formulas and a clock that ticks once a slot; tests/course/test_orders.py has
torch's own."""

import itertools
import random

import pytest

from collectives.pipeline import TICKS, Order, gpipe, interleaved, one_f_one_b, zero_bubble_h1, zero_bubble_h2

RANKS = (2, 3, 4, 7, 8)


def sizes(p):
    return sorted({1, 2, p - 1, p, p + 1, 2 * p - 1, 2 * p, 3 * p + 1})


@pytest.mark.parametrize("p", RANKS)
def test_bubble_and_kept_are_those_of_the_formulas(p):
    for m in sizes(p):
        for order in gpipe(p, m), one_f_one_b(p, m):
            assert order.bubble == pytest.approx((p - 1) / (m + p - 1)), order
            assert order.period == order.length == 3 * (m + p - 1)
        assert gpipe(p, m).kept == (m,) * p
        assert one_f_one_b(p, m).kept == tuple(min(m, p - r) for r in range(p))


@pytest.mark.parametrize("p", RANKS)
def test_zero_bubble_is_that_of_the_paper(p):
    """Qi et al., table 2, for F = I = W: bubbles (p - 1)(F + I - W), (p - 1)(F + I - 2W), memory p and 2p - 1."""
    for m in (p, p + 1, 3 * p):
        assert zero_bubble_h1(p, m).idle == p - 1 and zero_bubble_h1(p, m).kept == (p,) * p
    for m in (2 * p - 1, 2 * p, 3 * p):
        h2 = zero_bubble_h2(p, m)
        assert h2.period == 3 * m and h2.kept == (2 * p - 1,) * p, "the paper's zero: a step begins every 3m slots"
        assert h2.idle == p - 1 and h2.length == 3 * m + p - 1, "one step alone: the last rank begins and ends late"


@pytest.mark.parametrize("p, v, k", [*itertools.product((2, 4), (1, 2, 3), (1, 2, 4))])
def test_interleaving_divides_the_bubble(p, v, k):
    """Narayanan et al. 2021: (p - 1) / v slots of bubble; rank 0 keeps 2(p - 1) + (v - 1)p + 1 stages' activations."""
    m = k * p
    order = interleaved(p, m, v)
    assert order.idle == pytest.approx(3 * (p - 1) / v) or v == 1
    first = [min(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1) / v for r in range(p)]
    assert order.kept == pytest.approx(first)


def ticking(order):
    """By a clock: at each tick a free rank begins its next action if all that it needs is over. The ends, by action."""
    ends, busy, rest, now = {}, [0] * order.ranks, [list(actions) for actions in order.orders], 0
    while any(rest) and now < 200:
        for rank, actions in enumerate(rest):
            if not actions or busy[rank] > now:
                continue
            kind, i, s = actions[0]
            over = [key for key, end in ends.items() if end <= now]
            back = any((k, i, s + 1) in over for k in "BI") or s + 1 == order.stages
            ready = {
                "F": s == 0 or ("F", i, s - 1) in over,
                "B": ("F", i, s) in over and back,
                "I": ("F", i, s) in over and back,
                "W": ("I", i, s) in over,
            }
            if ready[kind]:
                busy[rank] = ends[actions.pop(0)] = now + TICKS[kind]
        now += 1
    return ends, any(rest)


def shuffled(rng):
    """An order that a student may type: right, or one that comes to a standstill."""
    p, m, halves = rng.randint(2, 4), rng.randint(1, 4), rng.random() < 0.5
    order = rng.choice([gpipe, zero_bubble_h1 if halves else one_f_one_b, zero_bubble_h2 if halves else gpipe])(p, m)
    lists = [text.split() for text in order.texts]
    for _ in range(rng.randint(0, 3)):
        mine = rng.choice(lists)
        i = rng.randrange(len(mine) - 1)
        mine[i], mine[i + 1] = mine[i + 1], mine[i]
    return Order("shuffled", lists)


def test_any_order_takes_as_long_as_by_the_clock():
    rng = random.Random(4)
    stuck = 0
    for _ in range(300):
        order = shuffled(rng)
        ends, stands = ticking(order)
        assert bool(order.stuck) == stands
        assert {slot.action: slot.end for slot in order.slots} == ends
        stuck += stands
    assert 20 < stuck < 280, "both kinds are tried"


def test_a_standstill_is_said():
    order = Order("mine", ["F1 B1", "B1 F1"])
    assert order.stuck == "rank 1 waits forever: its B1 needs F1 later in its own list" and order.bubble == 1.0
    assert (
        Order("mine", ["I1 W1 F1", "F1 I1 W1"]).stuck == "rank 0 waits forever: its I1 needs F1 later in its own list"
    )
    crossed = ["F1 B1 F2 B2", "F2 B2 F1 B1"]  # each waits for the other
    assert Order("mine", crossed).stuck == "rank 0 waits forever: its B1 needs B1 of rank 1"


def test_the_rank_that_waits_for_its_own_list_is_blamed():
    order = one_f_one_b(4, 3).texts
    order[3] = "F1 B1 F2 B3 F3 B2"
    assert Order("mine", order).stuck == "rank 3 waits forever: its B3 needs F3 later in its own list"


def test_numbers_words_and_torchs_notation_are_one():
    numbers = Order("a", [[1, 2, -1, -2], [1, -1, 2, -2]])
    words = Order("b", ["F1, f2, B1 B2", "1F1 1B1 1F2 1B2"])
    assert numbers.orders == words.orders and numbers.texts == ["F1 F2 B1 B2", "F1 B1 F2 B2"]
    assert repr(numbers) == "Order('a', 2 ranks, 2 micro-batches)"


@pytest.mark.parametrize(
    "orders, words",
    [
        (["F1 B1", "F1"], "rank 1: B1 is missing"),
        (["F1 B1 B1", "F1 B1"], "rank 0: B1 is there 2 times"),
        (["F1 I1", "F1 B1"], "rank 0: W1 is missing"),
        (["F1 B1 I1", "F1 B1"], "rank 0: B1 is there beside its two parts"),
        (["F1 B1", "forward 1"], "rank 1: forward is no action; write F1, B1, I1 or W1"),
        (["F0"], "rank 0: F0 is no action"),
        (["F1 B1", "0F1"], "rank 1: stage 0 is on rank 0 already"),
        (["F1 B1 2F1 2B1", "F1 B1"], "rank 1: 3F1 is missing"),
        ([], "Order needs at least 2 ranks, got 0"),
    ],
)
def test_what_is_no_order_is_said(orders, words):
    with pytest.raises(ValueError) as raised:
        Order("mine", orders)
    assert words in str(raised.value)


def test_what_cannot_be_interleaved_is_said():
    with pytest.raises(ValueError, match="takes a multiple of 4 micro-batches, got 6"):
        interleaved(4, 6)
    with pytest.raises(ValueError, match="pipeline.gpipe needs at least 1 micro-batches, got 0"):
        gpipe(4, 0)
