"""counts against closed formulas for every p from 2 to 17 and for 31 to 33, and against adding up transfers by hand.

Formulas are written down per algorithm from its definition (the table of messages and bytes in Thakur, Rabenseifner and
Gropp 2005 where it has a row). All sizes are fractions of N, so every comparison is exact.
"""

from fractions import Fraction

import pytest
from every import NAMES, schedules, sizes

from collectives import Network, Schedule, ScheduleError, Transfer, all_reduce, all_to_all, broadcast, reduce
from collectives.groups import double_btree

EVERY = pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)
MANY = [*range(2, 18), 31, 32, 33]


def ceil_log(p):
    return (p - 1).bit_length()


def floor_log(p):
    return p.bit_length() - 1


def bits(i):
    return i.bit_count()


def subtree(v, p):
    """Ranks in the binomial subtree of v: all of its lowest set bit, as far as there are ranks."""
    return p if v == 0 else min(v & -v, p - v)


def children(v, p):
    """Binomial children of v: v + 2^j for every 2^j below its lowest set bit, as far as there are ranks."""
    return sum(1 for j in range(ceil_log(p)) if (v == 0 or 1 << j < v & -v) and v + (1 << j) < p)


def bine_children(v, p):
    """Rank v hears of it in step log2(p) - u, u being how many of the last digits of v in base -2 are alike; then it
    sends in every step (De Sensi et al., "Bine Trees"). Ranks too large for log2(p) digits are v - p."""
    digits, largest = ceil_log(p), sum(1 << i for i in range(0, ceil_log(p), 2))
    if v == 0:
        return digits
    value, last = (v if v <= largest else v - p), []
    for _ in range(digits):
        last.append(value % 2)
        value = (value - last[-1]) // -2
    return next((i for i, digit in enumerate(last) if digit != last[0]), digits) - 1


def same(p, value):
    return [Fraction(value)] * p


def root_only(p, value, others=0):
    return [Fraction(value), *[Fraction(others)] * (p - 1)]


def formulas(collective, algorithm, p):
    """(steps, messages, sent per rank, received per rank) in units of N; root 0, pipelines of 8 chunks, halos of 4."""
    up, down, k = ceil_log(p), floor_log(p), 8
    q = 1 << down  # the power of two that recursive halving works with, and the ranks too many for it
    extra = p - q
    share = Fraction(p - 1, p)
    not_root, kids = root_only(p, 0, 1), [Fraction(children(v, p)) for v in range(p)]
    subtrees = [Fraction(subtree(v, p), p) for v in range(p)]
    handed_on = [size - Fraction(1, p) for size in subtrees]  # what a scatter sends on below v
    collected = [Fraction(0), *subtrees[1:]]  # what a gather sends up from v
    folded = [v for v in range(p) if v < 2 * extra and v % 2]
    helpers = [v - 1 for v in folded]

    def fold(folded_value, helper_value, survivor):
        """Per rank: `survivor(i)` for the i-th survivor, plus what folding adds for those two kinds."""
        values, i = [], 0
        for v in range(p):
            if v in folded:
                values.append(Fraction(folded_value))
            else:
                values.append(Fraction(survivor(i)) + (helper_value if v in helpers else 0))
                i += 1
        return values

    def own(i):
        """Chunks that survivor i answers for in recursive halving of p chunks."""
        return 2 if i < extra else 1

    def block(i, size):
        """Chunks of the block of `size` survivors in which survivor i is."""
        first = i // size * size
        return sum(own(j) for j in range(first, first + size))

    match collective, algorithm:
        case "broadcast", "flat":
            return p - 1, p - 1, root_only(p, p - 1), not_root
        case "broadcast", "chain":
            return p - 2 + k, k * (p - 1), [*same(p - 1, 1), Fraction(0)], not_root
        case "broadcast", "binomial":
            return up, p - 1, kids, not_root
        case "broadcast", "bine":
            return up, p - 1, [Fraction(bine_children(v, p)) for v in range(p)], not_root
        case "reduce", "bine":
            return up, p - 1, not_root, [Fraction(bine_children(v, p)) for v in range(p)]
        case "broadcast", "scatter_all_gather":
            received = [a + share for a in collected]
            return up + p - 1, (p - 1) + p * (p - 1), [a + share for a in handed_on], received
        case "scatter", "flat":
            return p - 1, p - 1, root_only(p, share), root_only(p, 0, Fraction(1, p))
        case "scatter", "binomial":
            return up, p - 1, handed_on, collected
        case "gather", "flat":
            return p - 1, p - 1, root_only(p, 0, Fraction(1, p)), root_only(p, share)
        case "gather", "binomial":
            return up, p - 1, collected, handed_on
        case "reduce", "flat":
            return p - 1, p - 1, not_root, root_only(p, p - 1)
        case "reduce", "binomial":
            return up, p - 1, not_root, kids
        case "reduce", "chain":
            return p - 2 + k, k * (p - 1), not_root, [*same(p - 1, 1), Fraction(0)]
        case "reduce", "reduce_scatter_gather":
            half = Fraction(q - 1, q)
            # With the nearest partner first the gather's longest edge is walked first: rank i hands on what it has
            # when the step of its highest bit comes; before, it has got something in each step of a higher bit.
            sent = fold(1, 0, lambda i: half + (Fraction(q >> i.bit_length(), q) if i else 0))
            got = fold(0, 1, lambda i: half + Fraction((q >> i.bit_length()) - 1, q))
            return 2 * down + (extra > 0), extra + q * down + q - 1, sent, got
        case (("all_gather" | "reduce_scatter"), "ring"):
            return p - 1, p * (p - 1), same(p, share), same(p, share)
        case "reduce_scatter", "pairwise":
            return p - 1, p * (p - 1), same(p, share), same(p, share)
        case "all_gather", "bidirectional_ring":
            return p // 2, p * (p - 1), same(p, share), same(p, share)
        case ("all_gather", "recursive_doubling" | "bruck" | "pat") | ("reduce_scatter", "pat"):
            return up, p * up, same(p, share), same(p, share)
        case "all_gather", "gather_broadcast":
            sent = [a + b for a, b in zip(collected, kids, strict=True)]
            return 2 * up, 2 * (p - 1), sent, [a + b for a, b in zip(handed_on, not_root, strict=True)]
        case "reduce_scatter", "recursive_halving":
            sent = fold(1, Fraction(1, p), lambda i: Fraction(p - own(i), p))
            got = fold(Fraction(1, p), 1, lambda i: Fraction(sum(block(i, 1 << j) for j in range(down)), p))
            return down + 2 * (extra > 0), q * down + 2 * extra, sent, got
        case "all_reduce", "naive":
            return 2 * (p - 1), 2 * (p - 1), root_only(p, p - 1, 1), root_only(p, p - 1, 1)
        case "all_reduce", "exchange":
            return 1, p * (p - 1), same(p, p - 1), same(p, p - 1)
        case "all_reduce", "whole_ring":
            return p - 1, p * (p - 1), same(p, p - 1), same(p, p - 1)
        case "all_reduce", "ring":
            return 2 * (p - 1), 2 * p * (p - 1), same(p, 2 * share), same(p, 2 * share)
        case "all_reduce", "nvls":  # p - 1 sums of what each rank gives the switch, and one vector copied by it
            return 2, p * p, same(p, 1), same(p, 1)
        case "all_reduce", "two_shot":
            return 2, 2 * p * (p - 1), same(p, 2 * share), same(p, 2 * share)
        case "all_reduce", "bidirectional_ring":
            return 2 * (p // 2), 2 * p * (p - 1), same(p, 2 * share), same(p, 2 * share)
        case "all_reduce", "tree":
            both = [a + b for a, b in zip(kids, not_root, strict=True)]
            return 2 * up, 2 * (p - 1), both, both
        case "all_reduce", "recursive_doubling":
            both = fold(1, 1, lambda i: down)
            return down + 2 * (extra > 0), q * down + 2 * extra, both, both
        case "all_reduce", ("halving_doubling" | "halving_doubling_far_first" | "swing"):
            both = fold(1, 1, lambda i: 2 * Fraction(q - 1, q))
            return 2 * down + 2 * (extra > 0), 2 * q * down + 2 * extra, both, both
        case "all_to_all", ("linear" | "pairwise"):
            return (1 if algorithm == "linear" else p - 1), p * (p - 1), same(p, share), same(p, share)
        case "all_to_all", "bruck":
            jumps = Fraction(sum(map(bits, range(p))), p)
            return up, p * up, same(p, jumps), same(p, jumps)
        case "barrier", "central":
            return 2 * (p - 1), 2 * (p - 1), same(p, 0), same(p, 0)
        case "barrier", "tree":
            return 2 * up, 2 * (p - 1), same(p, 0), same(p, 0)
        case "barrier", "dissemination":
            return up, p * up, same(p, 0), same(p, 0)
        case "send_recv", "ring_pass":
            return p, p, same(p, 1), same(p, 1)
        case "send_recv", "shift":
            return 1, p, same(p, 1), same(p, 1)
        case "send_recv", "halo_exchange":
            ends = [Fraction(1 if v in (0, p - 1) else 2, 4) for v in range(p)]
            return 1, 2 * (p - 1), ends, ends
    return None


BY_OTHER_MEANS = {("all_to_all", "hierarchical")} | {
    ("all_reduce", name)
    for name in (
        "pipelined_tree",
        "double_tree",
        "hierarchical",
        "torus",
        "multi_ring",
        "nccl_tree",
        "nvls_tree",
        "sharp",
    )
}


@EVERY
def test_closed_formulas(collective, algorithm):
    if (collective, algorithm) in BY_OTHER_MEANS:
        assert formulas(collective, algorithm, 4) is None  # they have tests of their own below
        return
    for p, schedule in sizes(collective, algorithm, MANY):
        nbytes = 60 * schedule.chunks
        counts = schedule.counts(nbytes=nbytes)
        steps, messages, sent, received = formulas(collective, algorithm, p)
        assert (counts.steps, counts.messages) == (steps, messages), p
        assert [Fraction(b, nbytes) for b in counts.sent] == sent, p
        assert [Fraction(b, nbytes) for b in counts.received] == received, p
        assert Fraction(counts.total_bytes, nbytes) == sum(sent)
        assert Fraction(counts.busiest, nbytes) == max(sent)
        assert all(
            type(number) is int for number in (counts.total_bytes, counts.busiest, *counts.sent, *counts.received)
        )


@pytest.mark.parametrize("k, second", [(1, False), (2, False), (8, False), (1, True), (2, True)])
def test_pipelined_tree(k, second):
    """2(depth) + k - 1 steps; every rank but the root sends N up, and N down to each of its children."""
    for p in MANY:
        parent = double_btree(p)[second]
        counts = all_reduce.pipelined_tree(p, k, second).counts(nbytes=60 * k)
        kids = [int((parent == v).sum()) for v in range(p)]
        assert counts.steps == 2 * ceil_log(p) + k - 1 and counts.messages == 2 * k * (p - 1)
        assert counts.sent == counts.received == tuple(60 * k * (kids[v] + (parent[v] >= 0)) for v in range(p))


@pytest.mark.parametrize("k", [2, 8])
def test_double_tree_shares_the_work(k):
    """Each tree carries N/2: 2(p-1)N in total like the ring, at most 2N at any rank (1.5N inside, 0.5N as leaf)."""
    for p in MANY:
        counts = all_reduce.double_tree(p, k).counts(nbytes=60 * k)
        both = [sum(int((parent == v).sum()) + int(parent[v] >= 0) for parent in double_btree(p)) for v in range(p)]
        assert counts.steps == 2 * ceil_log(p) + k // 2 - 1
        assert counts.sent == counts.received == tuple(30 * k * edges for edges in both)
        assert counts.total_bytes == 2 * (p - 1) * 60 * k and counts.busiest <= 2 * 60 * k
        assert counts.messages <= 2 * k * (p - 1)  # fewer where both trees use an edge in the same step


@pytest.mark.parametrize(("nodes", "local"), [(4, 8), (8, 4), (2, 2), (3, 5), (1, 6), (6, 1)])
def test_hierarchical(nodes, local):
    p = nodes * local
    counts = all_reduce.hierarchical(nodes, local).counts(nbytes=60 * p)
    assert counts.steps == 2 * (local - 1) + 2 * (nodes - 1)
    assert counts.messages == 2 * p * (local - 1) + 2 * p * (nodes - 1)
    assert counts.sent == counts.received == (60 * 2 * (p - 1),) * p


LEVELS = pytest.mark.parametrize(("nodes", "local"), [(4, 8), (8, 4), (2, 2), (3, 5), (5, 3), (1, 6), (6, 1), (2, 1)])


@LEVELS
def test_multi_ring(nodes, local):
    """As many rings as cards: the steps and bytes of one ring, every message 1/local as long."""
    p = nodes * local
    counts = all_reduce.multi_ring(nodes, local).counts(nbytes=60 * p * local)
    assert counts.steps == 2 * (p - 1)
    assert counts.sent == counts.received == (60 * local * 2 * (p - 1),) * p


@pytest.mark.parametrize(("nodes", "local"), [(4, 8), (2, 4), (3, 4), (5, 3), (6, 2)])
def test_the_rings_of_multi_ring_use_every_card_once_and_stay_on_their_rail(nodes, local):
    for step in all_reduce.multi_ring(nodes, local).steps:
        out = [(t.src, t.dst) for t in step.transfers if t.src // local != t.dst // local]
        assert sorted(src for src, _ in out) == sorted(dst for _, dst in out) == list(range(nodes * local))
        changed = [(src, dst) for src, dst in out if src % local != dst % local]
        assert len(changed) == (local if nodes % 2 else 0)


@LEVELS
def test_torus(nodes, local):
    """2(rows + columns - 2) steps; 2(p-1)/p N per rank, half of it along rows where both are equally long."""
    p = nodes * local
    counts = all_reduce.torus(nodes, local).counts(nbytes=240 * p)
    assert counts.steps == 2 * (nodes + local - 2)
    assert counts.sent == counts.received == (240 * 2 * (p - 1),) * p


@LEVELS
@pytest.mark.parametrize("k", [1, 8])
def test_nccl_tree(nodes, local, k):
    """The hops of tuning.cc, 2((local - 1) + log2(nodes)), then a step for every further piece; 2(p-1)N in all."""
    p, trees = nodes * local, (2 if nodes > 1 else 1) * local
    counts = all_reduce.nccl_tree(nodes, local, k).counts(nbytes=60 * trees * k)
    assert counts.steps == 2 * (local - 1 + ceil_log(nodes)) + k - 1
    assert counts.total_bytes == 2 * (p - 1) * 60 * trees * k
    assert counts.sent == counts.received
    assert counts.busiest <= 2 * 60 * trees * k + (60 * k * trees * 2 if local > 1 else 0) / local


@LEVELS
def test_what_switches_add_is_counted_once(nodes, local):
    """N into and out of the switch inside (if there is anybody else), then 1/local of that again between machines."""
    p = nodes * local
    n = 120 * p
    inside, between = n * (local > 1), n // local * (nodes > 1)
    sharp = all_reduce.sharp(nodes, local).counts(nbytes=n)
    assert sharp.sent == sharp.received == (inside + between,) * p
    assert sharp.steps == 2 * (local > 1) + 2 * (nodes > 1)
    tree = all_reduce.nvls_tree(nodes, local, 4)
    counts = tree.counts(nbytes=120 * tree.chunks)
    assert counts.total_bytes == 120 * tree.chunks * (p * (local > 1) + 2 * (nodes - 1))
    assert counts.steps == 2 * (local > 1) + (2 * ceil_log(nodes) + 3) * (nodes > 1)


@LEVELS
def test_hierarchical_all_to_all(nodes, local):
    """Every chunk takes up to two hops; nodes - 1 messages of a rank cross, each with a chunk of all its machine."""
    p = nodes * local
    schedule = all_to_all.hierarchical(nodes, local)
    counts = schedule.counts(nbytes=60 * p)
    assert counts.steps == local - 1 + nodes - 1
    assert counts.messages == p * (local - 1) + p * (nodes - 1)
    assert counts.sent == counts.received == (60 * (nodes * (local - 1) + local * (nodes - 1)),) * p
    crossing = [t for step in schedule.steps for t in step.transfers if t.src // local != t.dst // local]
    assert len(crossing) == p * (nodes - 1) and {t.count for t in crossing} <= {local}


def crossing(schedule, local):
    """Chunks sent between machines of `local` ranks."""
    transfers = [t for step in schedule.steps for t in step.transfers]
    return sum(t.count for t in transfers if t.src // local != t.dst // local)


@pytest.mark.parametrize(("nodes", "local"), [(4, 8), (2, 4), (16, 4)])
def test_the_order_of_halving_doubling_decides_what_crosses(nodes, local):
    """Near first, only what is left after log2(local) halvings leaves a machine: as much as in `hierarchical`."""
    p = nodes * local
    near, far = all_reduce.halving_doubling(p), all_reduce.halving_doubling_far_first(p)
    assert crossing(near, local) / near.chunks == 2 * (nodes - 1)  # N out of all machines together
    assert crossing(far, local) / far.chunks == 2 * (nodes - 1) * local
    assert crossing(all_reduce.hierarchical(nodes, local), local) / p == 2 * (nodes - 1)


@pytest.mark.parametrize("p", [4, 8, 16, 32, 64])
def test_swing_and_bine_go_as_far_as_their_papers_say(p):
    """(2^(s+1) - (-1)^(s+1)) / 3 places in step s: 1, 1, 3, 5, 11; a binomial tree goes 1, 2, 4, 8, 16."""

    def far(t):
        return min((t.src - t.dst) % p, (t.dst - t.src) % p)

    def distances(schedule):
        return [{far(t) for t in step.transfers} for step in schedule.steps]

    said = [(2 ** (s + 1) - (-1) ** (s + 1)) // 3 for s in range(p.bit_length() - 1)]
    said = [{min(d, p - d)} for d in said]
    assert distances(all_reduce.swing(p)) == said + said[::-1]
    assert distances(broadcast.bine(p)) == said[::-1] and distances(reduce.bine(p)) == said


@pytest.mark.parametrize("group", [5, 7, 12, 16, 24])
def test_bine_trees_cross_less_where_groups_lie_anywhere_and_more_where_binomial_trees_fit(group):
    """The paper promises up to a third less between groups of ranks; ours: a fifth, averaged over where they begin."""
    p = 256

    def across(schedule, shift):
        pairs = [(t.src + shift, t.dst + shift) for step in schedule.steps for t in step.transfers]
        return sum(src // group != dst // group for src, dst in pairs)

    bine, binomial = (
        sum(across(make(p), shift) for shift in range(group)) for make in (broadcast.bine, broadcast.binomial)
    )
    assert 0.66 < bine / binomial < 0.84
    assert crossing(broadcast.bine(p), 4) == 95 and crossing(broadcast.binomial(p), 4) == 63  # 63: no tree has fewer


@EVERY
def test_adding_up_transfers_by_hand_gives_the_same(collective, algorithm):
    for p in (3, 4, 6, 7):
        for schedule in schedules(collective, algorithm, p):
            if any(step.in_network for step in schedule.steps):
                continue  # transfers that a switch adds up are not sent one by one
            sent, received, messages, steps = [0] * p, [0] * p, 0, 0
            for step in schedule.steps:
                pairs = set()
                for t in step.transfers:
                    if t.src != t.dst:
                        pairs.add((t.src, t.dst))
                        sent[t.src] += t.count
                        received[t.dst] += t.count
                messages += len(pairs)
                steps += bool(pairs)
            counts = schedule.counts(nbytes=schedule.chunks)
            factor = 0 if collective == "barrier" else 1
            assert (counts.steps, counts.messages) == (steps, messages)
            assert counts.sent == tuple(factor * units for units in sent)
            assert counts.received == tuple(factor * units for units in received)


def test_the_table_of_all_reduce_for_four_ranks():
    """The ring: 6 steps, 24 messages, 1.5 N per rank, 6 N in total. Naive sends a quarter of its messages."""
    ring, naive, exchange = (f(4).counts(nbytes=1000) for f in (all_reduce.ring, all_reduce.naive, all_reduce.exchange))
    assert (ring.steps, ring.messages, ring.busiest, ring.total_bytes) == (6, 24, 1500, 6000)
    assert (naive.steps, naive.messages, naive.busiest, naive.total_bytes) == (6, 6, 3000, 6000)
    assert (exchange.steps, exchange.messages, exchange.busiest, exchange.total_bytes) == (1, 12, 3000, 12000)


def test_every_all_reduce_that_wastes_nothing_moves_the_same():
    for p in (4, 8, 16):
        for name in (
            "naive",
            "ring",
            "bidirectional_ring",
            "tree",
            "pipelined_tree",
            "double_tree",
            "halving_doubling",
        ):
            counts = getattr(all_reduce, name)(p).counts(nbytes=480)
            assert counts.total_bytes == 2 * (p - 1) * 480
            assert counts.busiest >= 2 * (p - 1) * 480 / p  # the lower bound of Patarasuk and Yuan


def test_bytes_that_do_not_divide_are_fractions():
    counts = all_reduce.ring(3).counts(nbytes=1000)
    assert counts.busiest == pytest.approx(4000 / 3) and counts.total_bytes == 4000
    assert all_reduce.ring(4).counts(nbytes=64e6).busiest == 96_000_000
    assert type(all_reduce.ring(4).counts(nbytes=64e6).busiest) is int


def test_bytes_that_a_schedule_knows_itself():
    steps = [("", "", [Transfer(0, 1, 0, count=2), Transfer(0, 1, 2)]), ("", "", [Transfer(1, 0, 1)])]
    schedule = Schedule.from_steps("recorded", "mine", 2, 3, steps, chunk_bytes=[10, 20, 30])
    counts = schedule.counts()
    assert (counts.messages, counts.sent, counts.received) == (2, (60, 20), (20, 60))
    assert schedule.counts(nbytes=120).sent == (120, 40)  # scaled


def test_local_transfers_are_no_messages():
    schedule = Schedule.from_steps("x", "mine", 2, 1, [("", "", [Transfer(0, 0, 0)]), ("", "", [Transfer(0, 1, 0)])])
    assert (schedule.counts(nbytes=8).steps, schedule.counts(nbytes=8).messages) == (1, 1)


@pytest.mark.parametrize("chunk_bytes", [None, [10, 20, 30]])
def test_what_ranks_make_themselves_is_neither_sent_nor_added(chunk_bytes):
    """Its number is beyond all chunks, so nobody may look up how many bytes it has."""
    sent = [Transfer(0, 1, 0, "reduce"), Transfer(1, 2, 1, count=2)]
    made = [Transfer(0, 0, 900, "new", count=3, dst_chunk=0), Transfer(2, 2, 4, "new", dst_chunk=1)]
    more = {"chunk_bytes": chunk_bytes}
    plain, both = (
        Schedule.from_steps("recorded", "mine", 3, 3, [("", "", step) for step in steps], **more)
        for steps in ([sent, []], [[made[0], *sent, made[1]], made])
    )
    assert both.counts(nbytes=60) == plain.counts(nbytes=60)
    assert both.counts(nbytes=60).messages == 2
    network = Network(alpha=1, beta=1, gamma=1)
    assert both.cost(60, network=network).seconds == plain.cost(60, network=network).seconds


def test_uneven_all_to_all_counts_rows():
    splits = [[5, 0, 2], [1, 7, 0], [3, 3, 3]]
    schedule = all_to_all.uneven(splits)
    counts = schedule.counts(nbytes=schedule.chunks)  # one byte per row
    assert counts.sent == (2, 1, 6) and counts.received == (4, 3, 2)
    assert counts.messages == 4


def test_bad_input_is_one_clear_sentence():
    with pytest.raises(
        ScheduleError, match="^all_reduce.ring: say how many bytes one rank's vector has, for example nbytes=1000000$"
    ):
        all_reduce.ring(4).counts()
    with pytest.raises(ScheduleError, match="^all_reduce.ring: nbytes must not be negative, got -1$"):
        all_reduce.ring(4).counts(nbytes=-1)
