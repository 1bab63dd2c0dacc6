"""cost against MPICH's published formulas on a flat network, and against worked examples on topologies.

Formulas: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (IJHPCA 19(1),
2005); n is N, and lg is rounded as each algorithm needs. Where it is written for powers of two only, so is the test.
"""

import numpy as np
import pytest
from every import NAMES, sizes

from collectives import (
    Link,
    Network,
    ScheduleError,
    Topology,
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
        case ("broadcast", "binomial"):
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
        case ("reduce", "binomial"):
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
        case ("all_reduce", "halving_doubling"):
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


def test_only_pipelined_trees_levels_and_patterns_have_no_published_formula():
    assert {f"{c}.{a}" for c, a in set(NAMES) - set(PUBLISHED)} == {
        "all_reduce.pipelined_tree", "all_reduce.double_tree", "all_reduce.hierarchical",
        "send_recv.ring_pass", "send_recv.shift", "send_recv.halo_exchange",
    }  # fmt: skip


@pytest.mark.parametrize(("collective", "algorithm"), PUBLISHED, ids=lambda name: name)
def test_flat_network_equals_the_published_formula(collective, algorithm):
    for p, schedule in sizes(collective, algorithm, [*range(2, 34), 64]):
        for nbytes in SIZES:
            formula = mpich(collective, algorithm, p, nbytes)
            if formula is not None:
                cost = schedule.cost(nbytes=nbytes, network=FLAT)
                assert cost.seconds == pytest.approx(formula, rel=1e-12), (p, nbytes)
                assert sum(cost.step_seconds) == cost.seconds and len(cost.step_seconds) == len(schedule.steps)


@pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)
def test_a_curve_is_the_cost_at_many_sizes(collective, algorithm):
    for p, schedule in sizes(collective, algorithm, [2, 4, 7, 12]):
        for network in (
            FLAT,
            presets.dgx_h100(2),
            presets.gpus_on_ethernet(4, 4),
            presets.tpu_ring(16),
            presets.laptops_on_wifi(16),
        ):
            at_once = Curve(schedule, network)(np.array(SIZES))
            assert at_once == pytest.approx(
                [schedule.cost(nbytes=n, network=network).seconds for n in SIZES], rel=1e-12
            ), p


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
    with pytest.raises(ScheduleError, match="^Network: alpha is in seconds and not negative, got -1$"):
        Network(alpha=-1, beta=1e-9)
    with pytest.raises(ScheduleError, match="^network is a Network or a Topology, for example .*, got 'fast'$"):
        all_reduce.ring(4).cost(nbytes=1, network="fast")
    with pytest.raises(
        ScheduleError, match="^PCIe box, 4 GPUs has 4 ranks, the schedule has 8: take a larger network or fewer ranks$"
    ):
        all_reduce.ring(8).cost(nbytes=1, network=presets.pcie_box())
    with pytest.raises(
        ScheduleError, match='nic is "gpu" [(]a network card for each[)] or "machine" [(]one for all[)], got \'both\''
    ):
        Topology.machines(2, 2, INSIDE, BETWEEN, nic="both")
    with pytest.raises(ScheduleError, match="^Topology.machines needs at least 1 gpus, got 0$"):
        Topology.machines(2, 0, INSIDE, BETWEEN)
