"""What `nccl.choose` takes, and how fast it is, against figures that people have published, and NCCL's own formulas.

Figures, all of nccl-tests' all_reduce_perf on DGX or HGX H100 with a 400 Gbit/s card for each GPU, NCCL deciding unless
it says otherwise. The bandwidths of `presets.EFFECTIVE` come from the first two, so these hold by making; the others
are predictions. Tolerance: 10 % for a bandwidth of long vectors; for where one algorithm overtakes another one step
more than the two sizes of nccl-tests between which it was seen, a factor of 2.
"""

import pytest

from collectives import (
    Link,
    Network,
    Schedule,
    ScheduleError,
    Topology,
    Transfer,
    all_reduce,
    compare,
    nccl,
    presets,
    reduce_scatter,
)
from collectives.pipelined import latencies

LONG = 2**34
PUBLISHED = [  # machines, NVLS, algorithm, busbw of 16 GiB in GB/s, source (NVIDIA/nccl-tests, NVIDIA/nccl)
    (1, True, "nvls", 480, "nccl-tests#212 (Jeaugey), nccl-tests#309"),
    (1, False, "ring", 368.76, "nccl-tests#309; 370 in nccl-tests#212 (Jeaugey)"),
    (2, True, "nvls_tree", 470, "nccl-tests#309; nccl-tests#196 (Jeaugey): on two nodes tree or nvlstree"),
    (4, True, "multi_ring", 365.84, "nccl-tests#309; nccl#1221: on 4 nodes NVLS changes nothing"),
]


@pytest.mark.parametrize(("machines", "nvls", "algorithm", "busbw", "source"), PUBLISHED)
def test_long_vectors(machines, nvls, algorithm, busbw, source):
    found = nccl.choose(LONG, machines, nvls)
    assert (found.algorithm, found.protocol) == (algorithm, "Simple"), source
    assert found.busbw / 1e9 == pytest.approx(busbw, rel=0.10), source


def test_without_effective_bandwidths_it_would_be_far_off():
    """The data sheet's 450 GB/s give 445 where 369 were measured (issue 16)."""
    cost = all_reduce.ring(8).cost(10**9, network=presets.dgx_h100(1))
    assert round(cost.busbw / 1e9, 1) == 444.6
    assert cost.busbw / 1e9 != pytest.approx(368.76, rel=0.10)


@pytest.mark.parametrize("nbytes", [8, 1024, 2**17, 2**19])
def test_short_vectors_go_round_a_ring_with_ll_in_one_machine(nbytes):
    """nccl-tests#309: "8B~1MB: uses Algo RING proto LL channel, 2MB~16GB uses Algo NVLS proto SIMPLE"."""
    assert nccl.choose(nbytes)[:2] == ("ring", "LL")


def test_nvls_takes_over_where_nccl_does():
    """Between 1 and 2 MB (nccl-tests#309)."""
    sizes = [2**k for k in range(10, 31)]
    first = next(nbytes for nbytes in sizes if nccl.choose(nbytes).algorithm == "nvls")
    assert 2**20 <= first <= 2**22
    assert all(nccl.choose(nbytes).algorithm == "nvls" for nbytes in sizes if nbytes > first)


@pytest.mark.parametrize("machines", [4, 16])
def test_the_double_tree_wins_for_short_vectors_on_many_machines_and_the_rings_for_long_ones(machines):
    """Jeaugey, "Massively Scale Your Deep Learning Training with NCCL 2.4" (NVIDIA, 2019): that is what it is for."""
    short = nccl.choose(1024, machines)
    assert (short.algorithm, short.protocol) == ("nccl_tree", "LL")
    rings = {c.algorithm: c.seconds for c in nccl.choices(2**16, machines) if c.protocol == "LL"}
    assert rings["multi_ring"] / rings["nccl_tree"] > machines / 4
    if machines == 4:
        assert nccl.choose(LONG, machines).algorithm == "multi_ring"


@pytest.mark.parametrize("machines", [1, 2, 3, 8])
def test_latencies_are_those_of_tuning_cc(machines):
    """Ring: 2(p - 1) hops, of which 2 * machines are between (nInterSteps; it was 2 * (machines - 1) in older versions,
    which are the 274 us of issue 16); Tree: 2((local - 1) inside + log2(machines) between). Hops cost what presets say.
    """
    network, local = presets.dgx_h100(machines), 8
    p, inside, between = machines * local, presets.NVLINK_4.alpha, presets.NDR_INFINIBAND.alpha
    if machines == 1:
        assert all_reduce.ring(8).cost(0, network=network, pipelined=True).seconds == pytest.approx(14 * inside)
        return
    ring = all_reduce.multi_ring(machines, local).cost(0, network=network, pipelined=True).seconds
    assert ring == pytest.approx((2 * (p - 1) - 2 * machines) * inside + 2 * machines * between)
    tree = all_reduce.nccl_tree(machines, local).cost(0, network=network, pipelined=True).seconds
    assert tree == pytest.approx(2 * ((local - 1) * inside + (machines - 1).bit_length() * between))


@pytest.mark.parametrize(("machines", "most"), [(1, 141e9), (2, 45e9), (4, 35e9), (16, 35e9)])
def test_ll_gets_no_more_bandwidth_than_nccl_counts(machines, most):
    """llMaxBws of Hopper, N1, N2 and N4 (NCCL 2.28, src/graph/tuning.cc). So on several machines LL ends below 1 MB."""
    found = {choice.algorithm: choice.busbw for choice in nccl.choices(LONG, machines) if choice.protocol == "LL"}
    assert found["ring" if machines == 1 else "multi_ring"] == pytest.approx(most, rel=0.01)
    assert max(found.values()) <= most
    assert machines == 1 or nccl.choose(2**20, machines).protocol != "LL"


def test_the_issue_s_ring_takes_296_us_and_not_868():
    network = presets.dgx_h100(4)
    in_step, flowing = (all_reduce.ring(32).cost(0, network=network, pipelined=way).seconds for way in (False, True))
    assert (round(1e6 * in_step), round(1e6 * flowing)) == (868, 296)


def test_where_all_hops_are_alike_and_everybody_is_busy_nothing_is_gained():
    network = Network(7e-6, 3e-9, 2e-10)
    for p in (2, 5, 8):
        for schedule in (all_reduce.ring(p), reduce_scatter.ring(p), all_reduce.halving_doubling(8)):
            both = [schedule.cost(10**6, network=network, pipelined=way) for way in (False, True)]
            assert both[0].seconds == pytest.approx(both[1].seconds)
            for cost in both:
                assert sum(cost.step_seconds) == pytest.approx(cost.seconds)


def test_a_chain_is_followed_chunk_by_chunk():
    """Rank 0's chunk goes 0, 1, 2 over slow links while others swap theirs over fast ones: only the chain counts."""
    steps = [
        ("", "", [Transfer(0, 2, 0), Transfer(1, 0, 1)]),
        ("", "", [Transfer(2, 1, 0), Transfer(0, 1, 1, dst_chunk=2)]),
    ]
    network = Topology.machines(2, 2, Link(1, 0), Link(10, 0))  # 0 and 1 are together; 2 is far from both
    assert latencies(Schedule.from_steps("x", "mine", 4, 3, steps), network) == (10, 20)
    assert latencies(Schedule.from_steps("x", "mine", 4, 3, steps[1:]), network) == (10,)


def test_a_sum_is_as_late_as_the_later_of_its_summands():
    slow, fast = Transfer(2, 0, 0, "reduce"), Transfer(1, 0, 0, "reduce")
    steps = [("", "", [slow]), ("", "", [fast]), ("", "", [Transfer(0, 1, 0)])]
    network = Topology.machines(2, 2, Link(1, 0), Link(10, 0))
    assert latencies(Schedule.from_steps("x", "mine", 4, 1, steps), network) == (10, 10, 11)
    replaced = [("", "", [slow]), ("", "", [Transfer(1, 0, 0)]), ("", "", [Transfer(0, 1, 0)])]  # what was late is gone
    assert latencies(Schedule.from_steps("x", "mine", 4, 1, replaced), network) == (10, 10, 10)


def test_a_rank_pays_a_switch_once_a_step_however_many_it_serves():
    """25 us for both steps of NVLS, NCCL's number; two shots without the switch send seven messages each time."""
    network = presets.dgx_h100(1)
    for pipelined in (False, True):
        assert all_reduce.nvls(8).cost(0, network=network, pipelined=pipelined).seconds == pytest.approx(25e-6)
    assert all_reduce.two_shot(8).cost(0, network=network).seconds == pytest.approx(14 * 3.4e-6)


def test_double_trees_beat_ring_and_halving_on_many_ranks_that_are_no_power_of_two():
    """1000 ranks, flat: the fold costs halving-doubling 2N, the ring pays 1998 latencies. Alpha 10 us, 10 GB/s."""
    rivals = ["ring", "double_tree", "halving_doubling", "recursive_doubling"]
    network = Network(1e-5, 1e-10)
    for pipelined in (False, True):
        found = compare("all_reduce", 1000, [1e3, 1e8, 1e12], network, algorithms=rivals, pipelined=pipelined)
        assert found.best[1] == "double_tree" and found.best[2] == "ring", pipelined


def test_a_switch_that_adds_halves_what_ranks_send():
    """N out and N in at every rank, whatever p; an algorithm of messages between two ranks needs 2(p-1)/p N."""
    for p in (2, 3, 8):
        network = Topology.machines(1, p, Link(0, 1e-9), Link(0, 1e-9), adds_inside=Link(0, 1e-9))
        cost = all_reduce.nvls(p).cost(p * 1000, network=network, pipelined=True)
        assert {use.bytes for use in cost.by_link.values()} == {p * 1000} and len(cost.by_link) == 2 * p
        assert cost.seconds == pytest.approx(p * 1e-6)
        plain = all_reduce.two_shot(p).cost(p * 1000, network=network, pipelined=True)
        assert {use.bytes for use in plain.by_link.values()} == {2 * (p - 1) * 1000}


def test_in_step_with_each_other_the_two_halves_of_nvls_gain_nothing():
    """First all bytes go to the switch, then all come from it: only where both overlap both directions are busy."""
    network = Topology.machines(1, 8, Link(0, 1e-9), Link(0, 1e-9), adds_inside=Link(0, 1e-9))
    assert all_reduce.nvls(8).cost(8000, network=network).seconds == pytest.approx(2 * 7e-6)


def test_sharp_sends_a_machine_s_sum_out_once_however_many_machines_there_are():
    for machines in (2, 4, 8):
        cost = all_reduce.sharp(machines, 8).cost(8_000_000, network=presets.dgx_h100(machines, sharp=True))
        assert cost.by_link["nic of gpu 3 out"].bytes == cost.by_link["nic of gpu 3 in"].bytes == 1_000_000
        assert cost.by_link["gpu 3 out"].bytes == 8_000_000


def test_protocols_trade_bandwidth_for_latency():
    costs = {name: all_reduce.ring(8).cost(10**9, network=presets.dgx_h100(1, name)) for name in presets.PROTOCOLS}
    empty = {name: all_reduce.ring(8).cost(0, network=presets.dgx_h100(1, name)) for name in presets.PROTOCOLS}
    assert [round(1e6 * empty[name].seconds, 1) for name in ("LL", "LL128", "Simple")] == [8.4, 26.6, 47.6]
    assert [round(costs[name].busbw / 1e9) for name in ("LL", "LL128", "Simple")] == [225, 419, 445]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: all_reduce.nvls(8).cost(1, network=Network(1e-5, 1e-9)),
            "a flat Network has no switch that adds on the way between all these ranks; presets.dgx_h100(1) has one",
        ),
        (
            lambda: all_reduce.sharp(4, 8).cost(1, network=presets.dgx_h100(4)),
            "4 x DGX H100 has no switch that adds on the way between all these ranks; presets.dgx_h100(1) has one",
        ),
        (lambda: presets.dgx_h100(2, "LL64"), "protocol is one of LL, LL128, Simple, got 'LL64'"),
        (lambda: nccl.choose(1, machines=0), "nccl.choices needs at least 1 machines, got 0"),
        (lambda: nccl.choose(-1), "nccl.choices: nbytes must not be negative, got -1"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(ScheduleError) as error:
        call()
    assert str(error.value) == sentence
