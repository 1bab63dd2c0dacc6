"""all_reduce: every rank has a vector of N bytes; at the end every rank has the sum of all of them.

An algorithm that sends nothing unnecessary sends 2(p-1)N bytes in total. Algorithms differ in how many steps that
takes, and in how much of it the busiest rank sends: (p-1)N at the root of `naive`, 2(p-1)/p N everywhere in `ring`. It
is less only if a switch adds on the way (`nvls`, `sharp`).
"""

from collections.abc import Callable

import numpy as np

from collectives.columns import REDUCE, Columns, join, move
from collectives.errors import ScheduleError, check_ranks, whole
from collectives.groups import (
    chained_trees,
    double_btree,
    far_first,
    halves,
    near_first,
    one_ring,
    rings_between,
    rings_by_rail,
    rings_inside,
    rounds,
    swing_partner,
    torus_rings,
    trees_by_rail,
)
from collectives.phases import (
    both_ways_all_gather,
    both_ways_reduce_scatter,
    double,
    flat_broadcast,
    flat_reduce,
    fold,
    halve,
    meet,
    ring_all_gather,
    ring_reduce_scatter,
    side_by_side,
    spread,
    tree_broadcast,
    tree_reduce,
    unfold,
    up_and_down,
)
from collectives.schedule import Phase, Schedule

SWITCH_ADDS = "The switch adds up what all send for one rank, and gives it the sum"
SWITCH_COPIES = "Every rank gives the switch what it has finished, and the switch hands it to all others"


def naive(ranks: int) -> Schedule:
    """Every rank sends its vector to rank 0, one after the other; rank 0 adds them up and sends the sum to all.

    2(p-1) steps and as many messages, but rank 0 sends (p-1)N bytes and receives as many.
    """
    p = check_ranks("all_reduce.naive", ranks)
    return Schedule.from_phases("all_reduce", "naive", p, 1, [flat_reduce(p, 0), flat_broadcast(p, 0)])


def exchange(ranks: int) -> Schedule:
    """Every rank sends its vector to every other, and adds up what it gets.

    One step, but p(p-1) messages, and every rank sends (p-1)N bytes.
    """
    p = check_ranks("all_reduce.exchange", ranks)

    def to_everybody(_: int) -> Columns:
        src, hop = np.divmod(np.arange(p * (p - 1)), p - 1)
        return move(src, (src + 1 + hop) % p, op=REDUCE)

    says = "Every rank sends its vector to all others and adds what arrives"
    return Schedule.from_phases("all_reduce", "exchange", p, 1, [Phase("exchange", 1, to_everybody, says)])


def whole_ring(ranks: int) -> Schedule:
    """The ring of the PyTorch tutorial: whole vectors go round, and every rank adds each one that passes.

    p-1 steps in which every rank sends N bytes: p/2 times as much as the ring that cuts the vector into chunks. What
    arrives is kept apart, in "ping" and "pong" in turn, because the next step passes it on unchanged.
    """
    p = check_ranks("all_reduce.whole_ring", ranks)
    rank = np.arange(p)
    data, ping, pong = 0, 1, 2

    def pass_on(k: int) -> Columns:
        inbox, outbox = (ping, pong) if k % 2 == 0 else (pong, ping)
        arrives = move(rank, (rank + 1) % p, src_buffer=data if k == 0 else outbox, dst_buffer=inbox)
        return join(arrives, move(rank, rank, op=REDUCE, src_buffer=inbox, dst_buffer=data))

    says = "Every rank passes the vector that came last to the right, and adds what arrives to its own sum"
    phases = [Phase("pass on", p - 1, pass_on, says)]
    return Schedule.from_phases("all_reduce", "whole_ring", p, 1, phases, buffers=("data", "ping", "pong"))


def ring(ranks: int) -> Schedule:
    """The vector in p chunks, once round the ring to add up and once more to hand out: what NCCL and gloo call ring.

    2(p-1) steps of p messages of N/p bytes. Every rank sends 2(p-1)/p N: no algorithm made of messages between
    two ranks can send less from its busiest rank. After the reduce-scatter rank r holds the finished chunk r.
    """
    p = check_ranks("all_reduce.ring", ranks)
    phases = [ring_reduce_scatter(one_ring(p)), ring_all_gather(one_ring(p))]
    return Schedule.from_phases("all_reduce", "ring", p, p, phases)


def bidirectional_ring(ranks: int) -> Schedule:
    """The ring in both directions at once: no summand and no sum goes farther than half way round.

    Half as many steps as the ring and the same bytes per rank; faster where the two directions are different wires.
    """
    p = check_ranks("all_reduce.bidirectional_ring", ranks)
    phases = [both_ways_reduce_scatter(p), both_ways_all_gather(p)]
    return Schedule.from_phases("all_reduce", "bidirectional_ring", p, p, phases)


def tree(ranks: int) -> Schedule:
    """Up a binomial tree to rank 0, and down again: 2 log2(p) steps, rounded up, each of N bytes; 2(p-1) messages."""
    p = check_ranks("all_reduce.tree", ranks)
    return Schedule.from_phases("all_reduce", "tree", p, 1, [tree_reduce(p, 0), tree_broadcast(p, 0)])


def pipelined_tree(ranks: int, chunks: int = 8, second: bool = False) -> Schedule:
    """Up NCCL's binary tree and down again, chunk after chunk: while one climbs, the one before it is on its way down.

    A rank has at most two ranks below it, so it sends at most 3N in total, 1N up and 2N down. With `second` it is the
    second tree of `double_tree`.
    """
    p = check_ranks("all_reduce.pipelined_tree", ranks)
    chunks = whole("all_reduce.pipelined_tree", chunks, "chunks", 1)
    tree = double_btree(p)[second]
    return Schedule.from_phases("all_reduce", "pipelined_tree", p, chunks, [up_and_down([tree], chunks)])


def double_tree(ranks: int, chunks: int = 8) -> Schedule:
    """NCCL's double binary tree: half of the chunks go through one tree, half through a second one.

    A rank that is inside one tree is a leaf of the other, so that all share the work and no rank sends more than 2N.
    NCCL builds such trees between machines, with a chain of GPUs inside each.
    """
    p = check_ranks("all_reduce.double_tree", ranks)
    if whole("all_reduce.double_tree", chunks, "chunks", 2) % 2:
        raise ScheduleError(f"all_reduce.double_tree needs an even number of chunks, half for each tree, got {chunks}")
    return Schedule.from_phases("all_reduce", "double_tree", p, chunks, [up_and_down(double_btree(p), chunks // 2)])


def recursive_doubling(ranks: int) -> Schedule:
    """Partners swap their whole sums, first neighbours, then at distance 2, 4, ...: log2(p) steps of N bytes.

    The fewest steps of all, good for short vectors. If p is not a power of two, the extra ranks give their vector to a
    neighbour first and get the result at the end: two more steps.
    """
    p = check_ranks("all_reduce.recursive_doubling", ranks)
    group = halves(p)._replace(bounds=np.array([0, 1]))  # one chunk: the vector is never cut
    survivor = np.arange(group.survivors)

    def swap(k: int) -> Columns:
        return move(group.place[survivor], group.place[survivor ^ (1 << k)], op=REDUCE)

    exchange_phase = Phase(
        "exchange", rounds(group.survivors), swap, "Partners send each other their sums and add them"
    )
    return Schedule.from_phases("all_reduce", "recursive_doubling", p, 1, [fold(group), exchange_phase, unfold(group)])


def halving_doubling(ranks: int) -> Schedule:
    """Recursive halving of the vector, then recursive doubling: 2 log2(p) steps, and no more bytes than the ring.

    Rabenseifner's order (ICCS 2004), and that of MPICH and gloo: the distance doubles while the vector halves, so the
    longest messages go to the nearest partner and the shortest to the farthest. If p is not a power of two, the extra
    ranks give their vector to a neighbour first and get the result at the end: two more steps and 2N more bytes.
    """
    p = check_ranks("all_reduce.halving_doubling", ranks)
    return _halving_doubling("halving_doubling", p, near_first)


def halving_doubling_far_first(ranks: int) -> Schedule:
    """The same with the farthest partner first: half of the vector goes p/2 places away, the last 1/p to the neighbour.

    Equally fast where all ranks are equally far apart. Halfway, every rank r has chunk r (MPICH's reduce_scatter does
    it like this). Where distance costs time, it sends the most bytes the farthest.
    """
    p = check_ranks("all_reduce.halving_doubling_far_first", ranks)
    return _halving_doubling("halving_doubling_far_first", p, far_first)


def swing(ranks: int) -> Schedule:
    """Halving and doubling with partners 1, 1, 3, 5, 11, ... places away, right and left in turn.

    Made for ring and torus wires: partners are about a third nearer than at distances 1, 2, 4, ..., so fewer messages
    share a wire. De Sensi, Bonato, Saam and Hoefler, "Swing" (NSDI 2024), on a ring in one dimension. Left out: the
    torus, where steps take the dimensions in turn, and the second half of the vector, which goes the mirrored way.
    If p is not a power of two, the extra ranks are folded in, as in `halving_doubling`.
    """
    p = check_ranks("all_reduce.swing", ranks)
    return _halving_doubling("swing", p, swing_partner)


def _halving_doubling(name: str, p: int, pairs: Callable[[int, int], np.ndarray]) -> Schedule:
    group = halves(p, pairs=pairs)
    phases = [fold(group), halve(group), double(group), unfold(group)]
    return Schedule.from_phases("all_reduce", name, p, group.survivors, phases)


def two_shot(ranks: int) -> Schedule:
    """In one step every rank gets its chunk from all others and adds it up; in another it sends the sum to all.

    Two steps of p(p-1) messages of N/p bytes: the ring's bytes in two steps, if every rank can talk to all others at
    once. Inference engines do this among the GPUs of one machine.
    """
    p = check_ranks("all_reduce.two_shot", ranks)
    members = first = np.arange(p)[None]
    return Schedule.from_phases("all_reduce", "two_shot", p, p, [meet(members, first), spread(members, first)])


def hierarchical(nodes: int, local: int) -> Schedule:
    """For `nodes` machines of `local` ranks each (rank = machine * local + local rank), by rings.

    Reduce-scatter inside every machine, all-reduce between ranks of the same local number, all-gather inside: only
    1/local of the vector per rank goes between machines.
    """
    nodes, local, p = _levels("hierarchical", nodes, local)
    inside, between = rings_inside(nodes, local), rings_between(nodes, local)
    phases = [
        ring_reduce_scatter(inside, "reduce-scatter inside"),
        ring_reduce_scatter(between, "reduce-scatter between"),
        ring_all_gather(between, "all-gather between"),
        ring_all_gather(inside, "all-gather inside"),
    ]
    return Schedule.from_phases("all_reduce", "hierarchical", p, p, phases, local=local)


def torus(nodes: int, local: int) -> Schedule:
    """For a torus of `nodes` rows of `local` ranks: rings along the rows and along the columns, all wires at once.

    The vector is cut into four. Two quarters are reduced along the rows first, one to the right and one to the left,
    then along the columns; the other two the other way round; then all is gathered in reverse. 2(rows + columns - 2)
    steps, 2(p-1)/p N per rank over its four wires. The bucket algorithm of Jain and Sabharwal (ICS 2010), which Sack
    and Gropp (TOPC 2015) run on all ports. With one quarter only it is `hierarchical`, which Mikami et al. (2018) call
    2D-torus all-reduce.
    """
    nodes, local, p = _levels("torus", nodes, local)
    lanes = [torus_rings(nodes, local, lane) for lane in range(4)]
    scatters = [[*map(ring_reduce_scatter, lane)] for lane in lanes]
    gathers = [[*map(ring_all_gather, reversed(lane))] for lane in lanes]
    says = "Every rank sends partial sums along its row and its column, both ways, and adds its own to what arrives"
    hands = "Every rank passes on along its row and its column, both ways, what it received last"
    phases = [side_by_side("reduce-scatter", scatters, says), side_by_side("all-gather", gathers, hands)]
    return Schedule.from_phases("all_reduce", "torus", p, 4 * p, phases, local=local)


def multi_ring(nodes: int, local: int) -> Schedule:
    """NCCL's rings: one for each NIC, so that all `local` NICs of a machine work at the same time.

    `local` rings over all p ranks, each for 1/local of the vector: 2(p-1) steps, 2(p-1)/p N per rank. Each NIC carries
    1/local of what the NIC of a single ring would.
    """
    nodes, local, p = _levels("multi_ring", nodes, local)
    rings = rings_by_rail(nodes, local)
    phases = [ring_reduce_scatter(rings), ring_all_gather(rings)]
    return Schedule.from_phases("all_reduce", "multi_ring", p, local * p, phases, local=local)


def nccl_tree(nodes: int, local: int, chunks: int = 4) -> Schedule:
    """NCCL's Tree: a double binary tree over the machines, with a chain through the ranks inside each.

    One such pair of trees for each NIC: 2 * local trees, each for an equal part of the vector, in `chunks` pieces.
    The first piece goes up and down in 2(log2(nodes) + local - 1) hops, log2 rounded up; that is NCCL's own formula
    (tuning.cc) for the latency of Tree. Left out: that NCCL hangs the two children of a machine on different ranks.
    """
    nodes, local, p = _levels("nccl_tree", nodes, local)
    chunks = whole("all_reduce.nccl_tree", chunks, "chunks", 1)
    trees = chained_trees(nodes, local)
    phases = [up_and_down(trees, chunks)]
    return Schedule.from_phases("all_reduce", "nccl_tree", p, len(trees) * chunks, phases, local=local)


def nvls(ranks: int) -> Schedule:
    """NCCL's NVLS: the switch that joins all GPUs of a machine adds up, and hands out, on the way.

    The messages of `two_shot`, but what all send for one rank reaches it as one sum, and what one sends to all leaves
    it once: every rank sends N and receives N, half of what any algorithm of messages between two ranks must send. The
    first step only sends and the second only receives, so it is faster where they overlap (`pipelined`). Only on a
    network whose switch can do that (`Topology.machines(adds_inside=...)`); no other network can price it.
    """
    p = check_ranks("all_reduce.nvls", ranks)
    members = first = np.arange(p)[None]
    phases = [
        meet(members, first, says=SWITCH_ADDS, in_network=True),
        spread(members, first, says=SWITCH_COPIES, in_network=True),
    ]
    return Schedule.from_phases("all_reduce", "nvls", p, p, phases)


def nvls_tree(nodes: int, local: int, chunks: int = 4) -> Schedule:
    """NCCL's NVLSTree: the switch inside each machine adds; double trees connect ranks of the same local number.

    Each of the `local` pairs of trees has 1/local of the vector, each tree half of that in `chunks` pieces.
    """
    nodes, local, p = _levels("nvls_tree", nodes, local)
    chunks = whole("all_reduce.nvls_tree", chunks, "chunks", 1)
    trees = trees_by_rail(nodes, local)
    width = len(trees) * chunks // local  # chunks that one rank of a machine answers for
    members, first = np.arange(p).reshape(nodes, local), np.tile(np.arange(local) * width, (nodes, 1))
    between = [up_and_down(trees, chunks)] if nodes > 1 else []
    phases = [
        meet(members, first, width, "reduce-scatter inside", SWITCH_ADDS, True),
        *between,
        spread(members, first, width, "all-gather inside", SWITCH_COPIES, True),
    ]
    return Schedule.from_phases("all_reduce", "nvls_tree", p, local * width, phases, local=local)


def sharp(nodes: int, local: int) -> Schedule:
    """Switches that add inside the machines and between them: NCCL's NVLS over several machines, with SHARP.

    Each of a machine's NICs sends the machine's sum of 1/local of the vector once and gets the total once, however many
    machines there are. Graham et al., "Scalable Hierarchical Aggregation Protocol" (COMHPC 2016).
    """
    nodes, local, p = _levels("sharp", nodes, local)
    rank, width = np.arange(p), nodes
    inside, own = rank.reshape(nodes, local), np.tile(np.arange(local) * width, (nodes, 1))
    between, part = inside.T, np.arange(p).reshape(local, nodes)
    phases = [
        meet(inside, own, width, "reduce-scatter inside", SWITCH_ADDS, True),
        meet(between, part, 1, "reduce-scatter between", SWITCH_ADDS, True),
        spread(between, part, 1, "all-gather between", SWITCH_COPIES, True),
        spread(inside, own, width, "all-gather inside", SWITCH_COPIES, True),
    ]
    return Schedule.from_phases("all_reduce", "sharp", p, p, phases, local=local)


def _levels(name: str, nodes: int, local: int) -> tuple[int, int, int]:
    """nodes, local and their product, checked."""
    nodes = whole(f"all_reduce.{name}", nodes, "nodes", 1)
    local = whole(f"all_reduce.{name}", local, "local ranks", 1)
    return nodes, local, check_ranks(f"all_reduce.{name}", nodes * local)


ALGORITHMS = (
    naive,
    exchange,
    whole_ring,
    ring,
    bidirectional_ring,
    tree,
    pipelined_tree,
    double_tree,
    recursive_doubling,
    halving_doubling,
    halving_doubling_far_first,
    swing,
    two_shot,
    hierarchical,
    torus,
    multi_ring,
    nccl_tree,
    nvls,
    nvls_tree,
    sharp,
)
