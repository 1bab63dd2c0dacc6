"""all_reduce: every rank has a vector of N bytes; at the end every rank has the sum of all of them.

Every algorithm that sends nothing needless sends 2(p-1)N bytes in total. They differ in how many steps that takes, and
in how much of it the busiest rank has to carry: (p-1)N at the root of `naive`, 2(p-1)/p N everywhere in `ring`.
"""

import numpy as np

from collectives.columns import REDUCE, join, move, where
from collectives.errors import ScheduleError, check_ranks, whole
from collectives.groups import (
    btree,
    depths,
    double_btree,
    halves,
    heights,
    one_ring,
    rings_between,
    rings_inside,
    rounds,
)
from collectives.phases import (
    both_ways_all_gather,
    both_ways_reduce_scatter,
    double,
    flat_broadcast,
    flat_reduce,
    fold,
    halve,
    ring_all_gather,
    ring_reduce_scatter,
    tree_broadcast,
    tree_reduce,
    unfold,
)
from collectives.schedule import Phase, Schedule


def naive(ranks: int) -> Schedule:
    """Everybody sends its vector to rank 0, one after the other; rank 0 adds them up and sends everybody the sum.

    2(p-1) steps and as many messages, but rank 0 sends (p-1)N bytes and receives as many.
    """
    p = check_ranks("all_reduce.naive", ranks)
    return Schedule.from_phases("all_reduce", "naive", p, 1, [flat_reduce(p, 0), flat_broadcast(p, 0)])


def exchange(ranks: int) -> Schedule:
    """Every rank sends its vector to every other, and adds up what it gets.

    One step, but p(p-1) messages, and every rank sends (p-1)N bytes.
    """
    p = check_ranks("all_reduce.exchange", ranks)

    def to_everybody(_):
        src, hop = np.divmod(np.arange(p * (p - 1)), p - 1)
        return move(src, (src + 1 + hop) % p, op=REDUCE)

    says = "Every rank sends its vector to all others and adds what arrives"
    return Schedule.from_phases("all_reduce", "exchange", p, 1, [Phase("exchange", 1, to_everybody, says)])


def whole_ring(ranks: int) -> Schedule:
    """The ring of the PyTorch tutorial: whole vectors go round, and every rank adds each one that passes.

    p-1 steps in which every rank sends N bytes: p/2 times as much as the ring that cuts the vector into chunks. What
    arrives is kept apart, in "ping" and "pong" by turns, because the next step passes it on as it came.
    """
    p = check_ranks("all_reduce.whole_ring", ranks)
    rank = np.arange(p)
    data, ping, pong = 0, 1, 2

    def pass_on(k):
        inbox, outbox = (ping, pong) if k % 2 == 0 else (pong, ping)
        arrives = move(rank, (rank + 1) % p, src_buffer=data if k == 0 else outbox, dst_buffer=inbox)
        return join(arrives, move(rank, rank, op=REDUCE, src_buffer=inbox, dst_buffer=data))

    says = "Every rank passes the vector that came last to the right, and adds what arrives to its own sum"
    phases = [Phase("pass on", p - 1, pass_on, says)]
    return Schedule.from_phases("all_reduce", "whole_ring", p, 1, phases, buffers=("data", "ping", "pong"))


def ring(ranks: int) -> Schedule:
    """The vector in p chunks, once round the ring to add up and once more to hand out: what NCCL and gloo call ring.

    2(p-1) steps of p messages of N/p bytes. Every rank sends 2(p-1)/p N: no algorithm of messages between two ranks
    can have less at its busiest rank. After the reduce-scatter rank r holds the finished chunk r.
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


def pipelined_tree(ranks: int, chunks: int = 8) -> Schedule:
    """Up NCCL's binary tree and down again, chunk after chunk: while one climbs, the one before it is on its way down.

    A rank has at most two ranks below it, so it sends at most 3N in total, 1N up and 2N down.
    """
    p = check_ranks("all_reduce.pipelined_tree", ranks)
    chunks = whole("all_reduce.pipelined_tree", chunks, "chunks", 1)
    return Schedule.from_phases("all_reduce", "pipelined_tree", p, chunks, [_up_and_down([btree(p)], chunks)])


def double_tree(ranks: int, chunks: int = 8) -> Schedule:
    """NCCL's double binary tree: half of the chunks go through one tree, half through a second one.

    A rank that is inside one tree is a leaf of the other, so that all share the work and nobody sends more than 2N.
    NCCL builds such trees between machines, with a chain of GPUs inside each.
    """
    p = check_ranks("all_reduce.double_tree", ranks)
    if whole("all_reduce.double_tree", chunks, "chunks", 2) % 2:
        raise ScheduleError(f"all_reduce.double_tree needs an even number of chunks, half for each tree, got {chunks}")
    return Schedule.from_phases("all_reduce", "double_tree", p, chunks, [_up_and_down(double_btree(p), chunks // 2)])


def _up_and_down(parents, chunks: int) -> Phase:
    """One pipeline per tree, each with its own `chunks`: a rank sends up what all below it have added to.

    The first chunk leaves a rank as soon as it can, after as many steps as the rank is high above its deepest leaf, and
    reaches the root after as many as the tree is deep; every further chunk follows one step behind.
    """
    src, dst, first, op, leaves_at = [], [], [], [], []
    for number, parent in enumerate(parents):
        child = np.flatnonzero(parent >= 0)
        height, depth = heights(parent), depths(parent)
        src += [child, parent[child]]
        dst += [parent[child], child]
        op += [np.full_like(child, REDUCE), np.zeros_like(child)]
        leaves_at += [height[child], height.max() + depth[child] - 1]
        first += [np.full(2 * len(child), number * chunks)]
    src, dst, first, op, leaves_at = map(np.concatenate, (src, dst, first, op, leaves_at))

    def send(k):
        chunk = k - leaves_at
        return where((0 <= chunk) & (chunk < chunks), move(src, dst, first + chunk, op=op))

    says = "Chunks that everybody below has added to go up, finished ones go down"
    return Phase("pipeline", int(leaves_at.max()) + chunks, send, says)


def recursive_doubling(ranks: int) -> Schedule:
    """Partners swap their whole sums, first neighbours, then at distance 2, 4, ...: log2(p) steps of N bytes.

    The fewest steps of all, good for short vectors. For other p than powers of two the ranks too many give their
    vector to a neighbour first and get the result at the end: two steps more.
    """
    p = check_ranks("all_reduce.recursive_doubling", ranks)
    group = halves(p)._replace(bounds=np.array([0, 1]))  # one chunk: the vector is never cut
    survivor = np.arange(group.survivors)

    def swap(k):
        return move(group.place[survivor], group.place[survivor ^ (1 << k)], op=REDUCE)

    exchange_phase = Phase(
        "exchange", rounds(group.survivors), swap, "Partners send each other their sums and add them"
    )
    return Schedule.from_phases("all_reduce", "recursive_doubling", p, 1, [fold(group), exchange_phase, unfold(group)])


def halving_doubling(ranks: int) -> Schedule:
    """Recursive halving, then recursive doubling (Rabenseifner): 2 log2(p) steps, and no more bytes than the ring.

    For other p than powers of two the ranks too many give their vector to a neighbour first and get the result at the
    end: two steps and 2N bytes more.
    """
    p = check_ranks("all_reduce.halving_doubling", ranks)
    group = halves(p)
    phases = [fold(group), halve(group), double(group), unfold(group)]
    return Schedule.from_phases("all_reduce", "halving_doubling", p, group.survivors, phases)


def hierarchical(nodes: int, local: int) -> Schedule:
    """For `nodes` machines of `local` ranks each (rank = machine * local + local rank), by rings.

    Reduce-scatter inside every machine, all-reduce between ranks of the same local number, all-gather inside: only
    1/local of the vector per rank goes between machines.
    """
    nodes = whole("all_reduce.hierarchical", nodes, "nodes", 1)
    local = whole("all_reduce.hierarchical", local, "local ranks", 1)
    p = check_ranks("all_reduce.hierarchical", nodes * local)
    inside, between = rings_inside(nodes, local), rings_between(nodes, local)
    phases = [
        ring_reduce_scatter(inside, "reduce-scatter inside"),
        ring_reduce_scatter(between, "reduce-scatter between"),
        ring_all_gather(between, "all-gather between"),
        ring_all_gather(inside, "all-gather inside"),
    ]
    return Schedule.from_phases("all_reduce", "hierarchical", p, p, phases, local=local)


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
    hierarchical,
)
