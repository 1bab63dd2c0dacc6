"""cost against MPICH's published formulas on a flat network, and against worked examples on topologies.

Formulas: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (IJHPCA 19(1),
2005); n is N, and lg is rounded as each algorithm needs. Where it is written for powers of two only, so is the test.
"""

import gc
import weakref

import numpy as np
import pytest
from every import NAMES, sizes

from collectives import (
    Link,
    Network,
    Schedule,
    ScheduleError,
    Topology,
    Transfer,
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    build,
    presets,
    reduce_scatter,
)
from collectives.cost import Curve

ALPHA, BETA, GAMMA = 7e-6, 3e-9, 2e-10
FLAT = Network(ALPHA, BETA, GAMMA)
SIZES = [1, 4096, 10_000_000]


def power_of_two(p):
    return p & (p - 1) == 0


def mpich(collective, algorithm, p, n):
    """Seconds by the published formula, or None where there is none for this p."""
    a, b, g = ALPHA, BETA * n, GAMMA * n
    up, down, share, k = (p - 1).bit_length(), p.bit_length() - 1, (p - 1) / p, 8
    q = 1 << down
    half = (q - 1) / q
    two = power_of_two(p)
    match collective, algorithm:
        case ("broadcast", ("binomial" | "bine")):
            return up * (a + b)
        case ("broadcast", "flat"):
            return (p - 1) * (a + b)
        case ("broadcast", "chain"):
            return (p - 2 + k) * (a + b / k)
        case ("broadcast", "scatter_all_gather"):
            return (up + p - 1) * a + 2 * share * b
        case (("scatter" | "gather"), "binomial"):
            return up * a + share * b
        case (("scatter" | "gather"), "flat"):
            return (p - 1) * a + share * b
        case ("reduce", "flat"):
            return (p - 1) * (a + b + g)
        case ("reduce", ("binomial" | "bine")):
            return up * (a + b + g)
        case ("reduce", "chain"):
            return (p - 2 + k) * (a + b / k + g / k)
        case ("reduce", "reduce_scatter_gather"):
            return 2 * up * a + 2 * share * b + share * g if two else None
        case "all_gather", ("ring" | "bidirectional_ring"):  # flat: one port sends both ways
            return (p - 1) * a + share * b
        case "all_gather", ("recursive_doubling" | "bruck" | "pat"):
            return up * a + share * b
        case ("all_gather", "gather_broadcast"):
            return up * a + share * b + up * (a + b)
        case "reduce_scatter", ("ring" | "pairwise"):
            return (p - 1) * a + share * (b + g)
        case "reduce_scatter", "pat":
            return up * a + share * (b + g)
        case "reduce_scatter", "recursive_halving":
            return up * a + share * (b + g) if two else None
        case ("all_reduce", "naive"):
            return 2 * (p - 1) * (a + b) + (p - 1) * g
        case ("all_reduce", "exchange"):
            return (p - 1) * (a + b + g)
        case ("all_reduce", "whole_ring"):
            return (p - 1) * (a + b + g)
        case "all_reduce", ("ring" | "bidirectional_ring"):
            return 2 * (p - 1) * a + 2 * share * b + share * g
        case ("all_reduce", "tree"):
            return 2 * up * (a + b) + up * g
        case ("all_reduce", "recursive_doubling"):
            return up * (a + b + g) if two else (down + 2) * (a + b) + (down + 1) * g
        case "all_reduce", "two_shot":
            return 2 * (p - 1) * a + 2 * share * b + share * g
        case "all_reduce", ("halving_doubling" | "halving_doubling_far_first" | "swing"):
            if two:
                return 2 * up * a + 2 * share * b + share * g
            return (2 * down + 2) * a + (2 * half + 2) * b + (1 + half) * g
        case "all_to_all", ("linear" | "pairwise"):
            return (p - 1) * a + share * b
        case ("all_to_all", "bruck"):
            return up * a + up * b / 2 if two else None
        case ("barrier", "dissemination"):
            return up * a
        case ("barrier", "tree"):
            return 2 * up * a
        case ("barrier", "central"):
            return 2 * (p - 1) * a
    return None


PUBLISHED = [name for name in NAMES if mpich(*name, 8, 1) is not None]


def test_no_formula_is_lost_with_a_name():
    """A renamed algorithm would lose its own without notice; a new one may have none."""
    assert len(PUBLISHED) == 41


@pytest.mark.parametrize(("collective", "algorithm"), PUBLISHED, ids=lambda name: name)
def test_flat_network_equals_the_published_formula(collective, algorithm):
    for p, schedule in sizes(collective, algorithm, [*range(2, 10), 12, 16, 17, 33]):
        for nbytes in SIZES:
            formula = mpich(collective, algorithm, p, nbytes)
            if formula is not None:
                cost = schedule.cost(nbytes=nbytes, network=FLAT)
                assert cost.seconds == pytest.approx(formula, rel=1e-12), (p, nbytes)
                assert sum(cost.step_seconds) == cost.seconds and len(cost.step_seconds) == len(schedule.steps)


@pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)
@pytest.mark.parametrize("pipelined", [False, True])
def test_a_curve_is_the_cost_at_many_sizes(collective, algorithm, pipelined):
    networks = (FLAT, presets.gpus_on_ethernet(4, 4), presets.tpu_torus(4, 4), presets.laptops_on_wifi(16))
    link = Link(1e-6, 1e-9)
    for p, schedule in sizes(collective, algorithm, [4, 6])[-1:]:
        local = schedule.local or p
        adding = Topology.machines(p // local, local, link, link, adds_inside=link, adds_between=link)
        for network in (adding,) if any(step.in_network for step in schedule.steps) else networks:
            at_once = Curve(schedule, network, pipelined)(np.array(SIZES))
            costs = [schedule.cost(nbytes=n, network=network, pipelined=pipelined).seconds for n in SIZES]
            assert at_once == pytest.approx(costs, rel=1e-12), p


def test_what_was_costed_is_not_kept_alive():
    plan = all_reduce.ring(4)
    assert plan.cost(1e6, network=FLAT, pipelined=True) == plan.cost(1e6, network=FLAT, pipelined=True)
    gone = weakref.ref(plan)
    del plan
    gc.collect()
    assert gone() is None


def test_hierarchical_on_a_flat_network_saves_steps_only():
    cost = all_reduce.hierarchical(4, 8).cost(nbytes=32_000, network=FLAT)
    assert cost.seconds == pytest.approx(2 * (7 + 3) * ALPHA + 31 / 32 * 32_000 * (2 * BETA + GAMMA))


def test_bandwidths_as_nccl_tests_defines_them():
    """doc/PERFORMANCE.md: busbw of a perfect algorithm is the bandwidth of the link, here 10 GB/s, whatever p is."""
    network = Network(alpha=0, beta=1e-10)
    for p in (2, 4, 8, 64):
        for schedule in (all_reduce.ring(p), all_gather.ring(p), reduce_scatter.ring(p), all_to_all.pairwise(p)):
            assert schedule.cost(nbytes=10**9, network=network).busbw == pytest.approx(10e9)
        for name in ("broadcast", "reduce"):  # factor 1; a chain of many pieces gets near
            cost = build(name, "chain", p, chunks=1000).cost(nbytes=10**9, network=network)
            assert cost.busbw == cost.algbw == pytest.approx(10e9, rel=0.1)
        for name in ("scatter", "gather"):
            assert build(name, "flat", p).cost(nbytes=10**9, network=network).busbw == pytest.approx(10e9)
    cost = all_reduce.ring(4).cost(nbytes=10**9, network=network)
    assert cost.algbw == pytest.approx(10**9 / cost.seconds) and cost.busbw == pytest.approx(1.5 * cost.algbw)
    assert barrier.dissemination(4).cost(network=FLAT).busbw == 0


def test_by_link_on_a_flat_network_is_what_ranks_send_and_receive():
    schedule = all_reduce.tree(5)
    cost, counts = schedule.cost(nbytes=1000, network=FLAT), schedule.counts(nbytes=1000)
    for rank in range(5):
        assert cost.by_link[f"rank {rank} out"].bytes == counts.sent[rank]
        assert cost.by_link[f"rank {rank} in"].bytes == counts.received[rank]
    assert cost.by_link["rank 1 out"].seconds == pytest.approx(1 * (ALPHA + 1000 * BETA))


# Two machines of two GPUs: inside 1 s per message and 0.01 s per byte, between 10 s and 0.1 s. N = 400 bytes.
INSIDE, BETWEEN = Link(1, 0.01), Link(10, 0.1)
OWN_CARDS = Topology.machines(2, gpus=2, inside=INSIDE, between=BETWEEN)
ONE_CARD = Topology.machines(2, gpus=2, inside=INSIDE, between=BETWEEN, nic="machine")


def test_a_ring_over_two_machines_goes_at_the_pace_of_the_slower_link():
    for topology in (OWN_CARDS, ONE_CARD):  # only one message leaves each machine, so that one card is as good
        cost = all_reduce.ring(4).cost(nbytes=400, network=topology)
        assert cost.step_seconds == pytest.approx([10 + 100 * 0.1] * 6)
    assert cost.by_link["nic of machine 0 out"] == pytest.approx((600, 120))
    assert cost.by_link["gpu 0 out"] == pytest.approx((600, 6 * (1 + 1)))
    assert "gpu 1 out" not in cost.by_link and "gpu 0 in" not in cost.by_link


def test_ranks_that_share_a_card_share_its_bandwidth_but_not_their_latency():
    """Rank r sends r + 2 its chunk: both ranks of a machine at once. 10 s + 100 bytes, or 10 s + 2 * 100 bytes."""
    steps = {
        topology: all_to_all.pairwise(4).cost(nbytes=400, network=topology).step_seconds
        for topology in (OWN_CARDS, ONE_CARD)
    }
    assert steps[OWN_CARDS] == pytest.approx([20, 20, 20])  # one place on: 1 -> 2 and 3 -> 0 leave their machines
    assert steps[ONE_CARD] == pytest.approx([20, 30, 20])


def test_one_rank_pays_for_all_its_messages_on_a_link():
    """Exchange: each rank sends one message inside (1 + 4) and two between (2 * (10 + 40)); a shared card has four."""
    assert all_reduce.exchange(4).cost(nbytes=400, network=OWN_CARDS).seconds == pytest.approx(100)
    assert all_reduce.exchange(4).cost(nbytes=400, network=ONE_CARD).seconds == pytest.approx(2 * 10 + 4 * 40)


def test_adding_takes_the_time_of_the_rank_that_adds_most():
    topology = Topology.machines(2, gpus=2, inside=INSIDE, between=BETWEEN, gamma=0.5)
    assert all_reduce.exchange(4).cost(nbytes=400, network=topology).seconds == pytest.approx(100 + 3 * 400 * 0.5)


def test_hierarchical_beats_the_ring_between_machines():
    """32 GPUs on 4 machines: rings inside and between beat one of 62 steps that all wait for the network."""
    network = presets.dgx_h100(4)
    n = 10**9
    inside, between = presets.NVLINK_4, presets.NDR_INFINIBAND
    cost = all_reduce.hierarchical(4, 8).cost(nbytes=n, network=network)
    by_hand = 2 * 7 * (inside.alpha + n / 8 * inside.beta) + 2 * 3 * (between.alpha + n / 32 * between.beta)
    assert cost.seconds == pytest.approx(by_hand)
    ring = all_reduce.ring(32).cost(nbytes=n, network=network).seconds
    assert ring == pytest.approx(62 * (between.alpha + n / 32 * between.beta))
    assert ring > 5 * cost.seconds


def test_rabenseifners_order_keeps_the_long_messages_inside_the_machine():
    """4 x 8, 1 GB, by hand: steps 1 to 3 are inside with N/2, N/4, N/8, steps 4 and 5 cross with N/16 and N/32.

    Farthest first the two largest, N/2 and N/4, cross. (Issue 16: 7.72 ms against 31.0; 1.5 GB against 12 GB out.)
    """
    network, n = presets.dgx_h100(4), 10**9
    inside, between = presets.NVLINK_4, presets.NDR_INFINIBAND

    def message(link, part):
        return link.alpha + n * part * link.beta

    near = 2 * sum(message(inside, 1 / 2**k) for k in (1, 2, 3)) + 2 * sum(message(between, 1 / 2**k) for k in (4, 5))
    far = 2 * sum(message(between, 1 / 2**k) for k in (1, 2)) + 2 * sum(message(inside, 1 / 2**k) for k in (3, 4, 5))
    costs = [
        plan(32).cost(n, network=network)
        for plan in (all_reduce.halving_doubling, all_reduce.halving_doubling_far_first)
    ]
    assert [cost.seconds for cost in costs] == pytest.approx([near, far])
    assert [round(1e3 * cost.seconds, 2) for cost in costs] == [7.72, 31.05]
    cards = [
        [use.bytes for name, use in cost.by_link.items() if name.startswith("nic") and name.endswith("out")]
        for cost in costs
    ]
    assert [sum(out) / 4e9 for out in cards] == [1.5, 12]
    short = all_reduce.halving_doubling(32).cost(10**6, network=network).seconds
    assert (
        round(1e6 * short) == 84 and short < 0.61 * all_reduce.hierarchical(4, 8).cost(10**6, network=network).seconds
    )


def test_a_ring_for_every_card_is_many_times_as_fast_as_one():
    """By hand: all steps wait for a card that carries 1/8 of 1/32; busbw 339 GB/s, one ring 49 (issue 16)."""
    network, n, between = presets.dgx_h100(4), 10**9, presets.NDR_INFINIBAND
    cost = all_reduce.multi_ring(4, 8).cost(n, network=network)
    assert cost.seconds == pytest.approx(62 * (between.alpha + n / 256 * between.beta))
    assert round(cost.busbw / 1e9) == 339 and round(all_reduce.ring(32).cost(n, network=network).busbw / 1e9) == 49


def test_hierarchical_all_to_all_pays_the_latency_of_the_cards_for_machines_only():
    network, n = presets.dgx_h100(4), 32_000
    inside, between = presets.NVLINK_4, presets.NDR_INFINIBAND
    cost = all_to_all.hierarchical(4, 8).cost(n, network=network)
    by_hand = 7 * (inside.alpha + n / 8 * inside.beta) + 3 * (between.alpha + n / 4 * between.beta)
    assert cost.seconds == pytest.approx(by_hand)
    assert all_to_all.pairwise(32).cost(n, network=network).seconds > 4 * cost.seconds


@pytest.mark.parametrize("p", [16, 64])
def test_swing_beats_other_partners_on_a_ring_of_wires(p):
    """The paper's claim for vectors of middle length; the ring itself wins for long ones."""
    ring = Topology.ring(p, Link(1e-6, 1 / 50e9))
    plans = (all_reduce.swing, all_reduce.halving_doubling, all_reduce.halving_doubling_far_first, all_reduce.ring)
    for n in (10**3, 10**5):
        swing, *others = (plan(p).cost(n, network=ring).seconds for plan in plans)
        assert swing < min(others)
    assert all_reduce.ring(p).cost(10**9, network=ring).seconds < all_reduce.swing(p).cost(10**9, network=ring).seconds


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 5), (8, 8)])
def test_a_torus_uses_all_its_wires(rows, columns):
    """Square: each of four wires carries 1/4 of 2(p-1)/p N, and a step has one hop (Jain and Sabharwal 2010)."""
    link, n, p = Link(1e-6, 1 / 50e9), 10**8, rows * columns
    torus = Topology.torus(rows, columns, link)
    cost = all_reduce.torus(rows, columns).cost(n, network=torus)
    by_hand = 2 * (rows + columns - 2) * link.alpha + 2 * (p - 1) / p * n * link.beta / 4
    assert cost.seconds == pytest.approx(by_hand)
    assert len(cost.by_link) == 4 * p and len({round(use.bytes) for use in cost.by_link.values()}) == 1
    assert all_reduce.hierarchical(rows, columns).cost(n, network=torus).seconds > 3.5 * cost.seconds


def test_a_torus_carries_long_ways_along_the_row_first():
    """3 rows of 4: from 0 to rank 7 (row 1, column 3): one hop to the left round the end, one down."""
    torus = Topology.torus(3, 4, Link(1, 0.1))
    cost = Schedule.from_steps("x", "mine", 12, 1, [("", "", [Transfer(0, 7, 0)])]).cost(10, network=torus)
    assert cost.by_link == {"0 to 3": (10, 3), "3 to 7": (10, 3)}
    assert cost.seconds == 2 + 1  # two hops of latency; the data is cut through


def test_a_ring_of_wires_carries_long_ways_hop_by_hop():
    """Ring of 4, alpha 1, beta 0.1, N = 40: two places on are two hops, and links to the right carry two chunks."""
    topology = Topology.ring(4, Link(1, 0.1))
    assert all_to_all.pairwise(4).cost(nbytes=40, network=topology).step_seconds == pytest.approx([2, 4, 2])
    cost = all_to_all.pairwise(4).cost(nbytes=40, network=topology)
    assert cost.by_link["0 to 1"].bytes == 30 and cost.by_link["0 to 3"].bytes == 10


@pytest.mark.parametrize("p", [5, 9, 17, 33])
def test_the_scaling_book_on_a_ring_of_tpus(p):
    """How to Scale Your Model, "Sharded matrices": all-gather and reduce-scatter V / W, all-reduce 2 V / W, all-to-all
    V / (4 W), with V all bytes of the array and W both directions together. The last one in the limit of many chips."""
    one_way = 50e9
    topology, v = Topology.ring(p, Link(0, 1 / one_way)), 10**9
    w = 2 * one_way
    assert all_gather.bidirectional_ring(p).cost(nbytes=v, network=topology).seconds == pytest.approx(
        (p - 1) / p * v / w
    )
    assert all_reduce.bidirectional_ring(p).cost(nbytes=v, network=topology).seconds == pytest.approx(
        (p - 1) / p * 2 * v / w
    )
    seconds = all_to_all.linear(p).cost(nbytes=v / p, network=topology).seconds
    assert seconds == pytest.approx((1 - 1 / p**2) * v / (4 * w))


def test_one_medium_carries_everything_in_turn():
    topology = Topology.shared(4, Link(1, 0.1))
    cost = all_reduce.ring(4).cost(nbytes=40, network=topology)
    assert cost.step_seconds == pytest.approx([1 + 4 * 10 * 0.1] * 6)
    assert cost.by_link == {"medium": pytest.approx((240, 30))}


def test_presets_have_the_bandwidth_of_their_data_sheets():
    assert 1 / presets.NVLINK_4.beta == pytest.approx(450e9) and 1 / presets.NDR_INFINIBAND.beta == pytest.approx(50e9)
    assert [preset().ranks for preset in (presets.dgx_h100, presets.gpus_on_ethernet, presets.pcie_box)] == [32, 32, 4]
    assert repr(presets.dgx_h100()) == "Topology(4 x DGX H100)"


def test_bad_input_is_one_clear_sentence():
    with pytest.raises(
        ScheduleError, match="^Link: beta is seconds per byte, 1 / bandwidth, got 50000000000.0; is that a "
    ):
        Link(alpha=1e-6, beta=50e9)
    for name in ("alpha", "beta", "gamma"):
        for value in (float("nan"), float("inf")):
            with pytest.raises(ScheduleError, match=f"^Network: {name} is in seconds and finite, got {value}$"):
                Network(**{"alpha": 0.0, "beta": 1e-9, name: value})
    with pytest.raises(ScheduleError, match="^Link: beta is in seconds and finite, got nan$"):
        Link(1e-3, float("nan"))
    with pytest.raises(ScheduleError, match="^Network: alpha is in seconds and not negative, got -1$"):
        Network(alpha=-1, beta=1e-9)
    with pytest.raises(ScheduleError, match="^network is a Network or a Topology, for example .*, got 'fast'$"):
        all_reduce.ring(4).cost(nbytes=1, network="fast")
    with pytest.raises(
        ScheduleError, match="^PCIe box, 4 GPUs has 4 ranks, and 8 are needed: take a larger network or fewer ranks$"
    ):
        all_reduce.ring(8).cost(nbytes=1, network=presets.pcie_box())
    with pytest.raises(
        ScheduleError, match='nic is "gpu" [(]a NIC for each[)] or "machine" [(]one for all[)], got \'both\''
    ):
        Topology.machines(2, 2, INSIDE, BETWEEN, nic="both")
    with pytest.raises(ScheduleError, match="^Topology.machines needs at least 1 gpus, got 0$"):
        Topology.machines(2, 0, INSIDE, BETWEEN)
