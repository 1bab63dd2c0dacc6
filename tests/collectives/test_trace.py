"""trace against an oracle that walks the other way: the symbols of `states`, and its own hops replayed alone."""

import random

import pytest
from every import NAMES, schedules

from collectives import (
    Cell,
    Schedule,
    ScheduleError,
    Transfer,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    load,
    reduce_scatter,
)

EVERY = pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)


def mine(*steps, ranks=3, chunks=2, **more):
    """A schedule of hand-written steps that promises nothing."""
    return Schedule.from_steps("recorded", "mine", ranks, chunks, [("", "", step) for step in steps], **more)


def places(schedule):
    """Every buffer, rank, chunk."""
    return [(b, r, c) for b in schedule.buffers for r in range(schedule.ranks) for c in range(schedule.chunks)]


def cell_after(schedule, hops, place):
    """What is in a place once only these (step, hop) have happened."""
    steps = [[hop for number, hop in hops if number == index] for index in range(len(schedule.steps))]
    alone = Schedule.from_steps(
        schedule.collective, "replayed", schedule.ranks, schedule.chunks, [("", "", step) for step in steps],
        root=schedule.root, buffers=schedule.buffers, result=schedule.result, start=schedule.start().cells,
    )  # fmt: skip
    buffer, rank, chunk = place
    return alone.states(-1).cells[buffer][rank, chunk]


def explicit(schedule):
    """The same with its steps kept: made afresh for each of thousands of questions they would take minutes."""
    steps = [(step.phase, "", step.transfers) for step in schedule.steps]
    return Schedule.from_steps(
        schedule.collective, schedule.algorithm, schedule.ranks, schedule.chunks, steps,
        root=schedule.root, buffers=schedule.buffers, result=schedule.result, start=schedule.start().cells,
    )  # fmt: skip


@EVERY
def test_origins_are_those_of_the_symbols_everywhere(collective, algorithm):
    for ranks in (2, 3, 4, 6):
        for schedule in map(explicit, schedules(collective, algorithm, ranks)[-1:]):
            for index in range(len(schedule.steps)):
                cells = schedule.states(index).cells
                for buffer, rank, chunk in places(schedule)[index % 2 :: 2]:  # in the next step the others
                    found = schedule.trace(rank, chunk, index, buffer)
                    assert found.origins == dict(cells[buffer][rank, chunk].terms)
                    assert max(found.steps, default=0) <= index and sorted(found.steps) == list(found.steps)


@EVERY
def test_its_hops_alone_bring_the_same(collective, algorithm):
    for ranks in (3, 4):
        for schedule in map(explicit, schedules(collective, algorithm, ranks)[-1:]):
            for index in range(-1, -1 - len(schedule.steps), -3):
                cells = schedule.states(index).cells
                for place in places(schedule)[index % 3 :: 3]:
                    found = schedule.trace(place[1], place[2], index, place[0])
                    hops = list(zip(found.steps, found.hops, strict=True))
                    assert cell_after(schedule, hops, place) == cells[place[0]][place[1], place[2]]
                    assert all(hop in _cut(schedule.steps[number]) for number, hop in hops)


def _cut(step):
    """The transfers of a step, cut into single chunks."""
    parts = [(transfer, i) for transfer in step.transfers for i in range(transfer.count)]
    return {t._replace(chunk=t.chunk + i, dst_chunk=t.dst_chunk + i, count=1) for t, i in parts}


def anything(dice):
    """Up to five steps of anything at all: races, ranges that overlap, sums of sums, what ranks make themselves."""
    ranks, chunks, buffers = dice.randint(1, 4), dice.randint(1, 3), dice.choice(["x", "xy"])

    def transfer():
        count, op = dice.randint(1, chunks), dice.choice(["copy", "reduce", "reduce", "new"])
        src, dst = dice.randrange(ranks), dice.randrange(ranks)
        chunk, dst_chunk = (dice.randint(0, chunks - count) for _ in "st")
        there, here = (dice.choice(buffers) for _ in "st")
        if op == "new":
            return Transfer(dst, dst, dice.randrange(2 * chunks), op, count, dst_chunk, here, here)
        return Transfer(dice.choice([src, dst]), dst, chunk, op, count, dst_chunk, there, here)

    steps = [[transfer() for _ in range(dice.randint(0, 6))] for _ in range(dice.randint(1, 5))]
    return mine(*steps, ranks=ranks, chunks=chunks, buffers=buffers)


@pytest.mark.parametrize("seed", range(0, 300, 30))
def test_whatever_ranks_do_is_traced(seed):
    for case in range(seed, seed + 30):
        schedule = anything(random.Random(case))
        for index in range(len(schedule.steps)):
            cells = schedule.states(index).cells
            for place in places(schedule):
                found, cell = schedule.trace(place[1], place[2], index, place[0]), cells[place[0]][place[1], place[2]]
                assert found.origins == dict(cell.terms)
                assert cell_after(schedule, list(zip(found.steps, found.hops, strict=True)), place) == cell


SAMPLE = {
    "ring": all_reduce.ring(5), "naive": all_reduce.naive(4), "halving": all_reduce.halving_doubling(6),
    "double tree": all_reduce.double_tree(5), "scatter": reduce_scatter.ring(4), "bruck": all_to_all.bruck(5),
    "binomial": broadcast.binomial(7, root=2),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_every_hop_matters(name):
    schedule, seen = SAMPLE[name], 0
    for place in places(schedule):
        buffer, rank, chunk = place
        found = schedule.trace(rank, chunk, -1, buffer)
        hops = list(zip(found.steps, found.hops, strict=True))
        seen += len(hops)
        for number in range(len(hops)):
            without = hops[:number] + hops[number + 1 :]
            assert cell_after(schedule, without, place) != schedule.states(-1).cells[buffer][rank, chunk]
    assert seen >= len(schedule.steps)


def test_the_way_round_a_ring_by_hand():
    found = all_reduce.ring(4).trace(2, 1, 3)
    assert found.origins == {(0, 1): 1, (1, 1): 1, (2, 1): 1, (3, 1): 1}
    assert found.hops == (
        Transfer(2, 3, 1, "reduce"), Transfer(3, 0, 1, "reduce"), Transfer(0, 1, 1, "reduce"), Transfer(1, 2, 1),
    )  # fmt: skip
    assert found.steps == (0, 1, 2, 3) and found.ways == ("sum", "sum", "sum", "")
    assert all_reduce.ring(4).trace(2, 1, -3) == found
    assert all_reduce.ring(4).trace(2, 1, 2).hops == (), "it has not arrived yet"


def test_a_copy_over_a_sum_ends_the_way_there():
    schedule = mine([Transfer(0, 2, 0, "reduce")], [Transfer(1, 2, 0)], [Transfer(0, 2, 0, "reduce")])
    found = schedule.trace(2, 0, -1)
    assert found.origins == {(1, 0): 1, (0, 0): 1} and found.steps == (1, 2)


def test_what_is_added_twice_counts_twice():
    twice = [Transfer(0, 1, 0, "reduce")]
    assert mine(twice, twice).trace(1, 0, -1).origins == {(0, 0): 2, (1, 0): 1}
    doubled = [Transfer(1, 1, 0, "reduce")]
    found = mine(twice, *[doubled] * 40).trace(1, 0, -1)
    assert found.origins == {(0, 0): 2**40, (1, 0): 2**40} and len(found.hops) == 41
    both_ways = mine([Transfer(0, 1, 0), Transfer(0, 2, 0)], [Transfer(1, 2, 0, "reduce")])
    assert both_ways.trace(2, 0, -1).origins == {(0, 0): 2} and len(both_ways.trace(2, 0, -1).hops) == 3


def test_messages_of_a_step_read_what_was_there_before_it_and_locals_what_is_there_after_them():
    swap = [Transfer(0, 1, 0), Transfer(1, 0, 0)]
    found = mine([*swap, Transfer(1, 1, 0, "reduce", dst_chunk=1), Transfer(1, 1, 1, dst_chunk=0)]).trace(1, 0, 0)
    assert found.origins == {(0, 0): 1, (1, 1): 1}
    assert found.hops == (swap[0], Transfer(1, 1, 0, "reduce", dst_chunk=1), Transfer(1, 1, 1, dst_chunk=0))
    assert mine(swap, swap).trace(1, 0, -1).hops == (swap[1], swap[0])
    passed_on = [Transfer(0, 1, 0), Transfer(1, 2, 0)]  # rank 2 gets what rank 1 had before
    found = mine(passed_on, [Transfer(1, 2, 0, "reduce")]).trace(2, 0, -1)
    assert found.origins == {(0, 0): 1, (1, 0): 1} and len(found.hops) == 3


def test_a_range_that_runs_over_itself_is_undone_from_its_end():
    """Chunk by chunk, in order: the first carries what it wrote on through all of them."""
    slide = [Transfer(0, 0, 0, count=3, dst_chunk=1)]
    schedule = mine(slide, ranks=1, chunks=4)
    assert str(schedule.states(0)[0]["data"][3]) == "a0"
    found = schedule.trace(0, 3, 0)
    assert found.origins == {(0, 0): 1} and [hop.chunk for hop in found.hops] == [0, 1, 2]


def test_only_the_chunk_that_matters_of_a_range():
    found = mine([Transfer(0, 1, 0, count=3, dst_chunk=1)], chunks=4).trace(1, 2, 0)
    assert found.hops == (Transfer(0, 1, 1, dst_chunk=2),) and found.origins == {(0, 1): 1}


def test_what_a_rank_made_itself_is_an_origin():
    made = Transfer(1, 1, 7, "new", count=2, dst_chunk=0)
    schedule = mine([Transfer(0, 1, 1)], [made], [Transfer(1, 2, 1, "reduce")])
    found = schedule.trace(2, 1, -1)
    assert found.origins == {(1, 8): 1, (2, 1): 1} and found.steps == (1, 2)
    assert found.hops == (Transfer(1, 1, 8, "new", dst_chunk=1), Transfer(1, 2, 1, "reduce"))
    assert found.ways == ("computed", "sum")
    assert found.origins == dict(schedule.states(-1)[2]["data"][1].terms)
    known = mine([Transfer(1, 1, 0, "new")], [Transfer(0, 1, 0, "reduce")]).trace(1, 0, -1)
    assert known.origins == {(0, 0): 1, (1, 0): 1}, "a new may have the number of a chunk"


def test_news_of_a_barrier_count_once():
    schedule = barrier.dissemination(5)
    found = schedule.trace(0, 0, -1)
    assert found.origins == dict.fromkeys(((rank, 0) for rank in range(5)), 1) and len(found.hops) > 5


def test_the_buffer_is_that_of_the_result_unless_given():
    schedule = all_to_all.bruck(4)
    assert schedule.result != schedule.buffers[0]
    assert schedule.trace(1, 2, -1) == schedule.trace(1, 2, -1, schedule.result)
    assert schedule.trace(1, 2, -1, schedule.buffers[0]) != schedule.trace(1, 2, -1)


def test_an_own_start_and_a_place_that_is_empty():
    start = {"out": [[Cell(((1, 3), (1, 3)))], [Cell()]]}
    move = [Transfer(0, 1, 0, src_buffer="out", dst_buffer="out")]
    schedule = mine(move, ranks=2, chunks=1, buffers=("data", "out"), start=start)
    assert schedule.trace(1, 0, 0, "out").origins == {(1, 3): 2}
    assert schedule.trace(1, 0, 0, "data").origins == {} and not schedule.trace(1, 0, 0, "data").hops


def test_only_the_steps_up_to_the_asked_one_are_made():
    made = []

    class Steps(tuple):
        def __getitem__(self, index):
            made.append(index)
            return super().__getitem__(index)

    ring = explicit(all_reduce.ring(6))
    ring.steps = Steps(ring.steps)
    ring.trace(0, 0, 3)
    assert {*made} == {0, 1, 2, 3}


def test_a_large_ring_is_looked_at_only_where_it_matters(monkeypatch):
    """64 ranks, 64 chunks: a transfer is made an object only where it reaches a rank that matters."""
    from collectives import trace

    seen = []
    real = trace.transfers_of
    monkeypatch.setattr(trace, "transfers_of", lambda *given: seen.append(real(*given)) or seen[-1])
    found = all_reduce.ring(64).trace(5, 9, -1)
    assert len(found.origins) == 64 and len(found.hops) == 63 + 60
    assert sum(map(len, seen)) < 64 * 126, "of 8,064 transfers"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ((4, 0, 0), "trace: rank must be 0 to 3, got 4"),
        ((-1, 0, 0), "trace: rank must be 0 to 3, got -1"),
        (("0", 0, 0), "trace: rank must be 0 to 3, got '0'"),
        ((0, 4, 0), "trace: chunk must be 0 to 3, got 4"),
        ((0, 1.5, 0), "trace: chunk must be 0 to 3, got 1.5"),
        ((0, 0, 6), "trace: step must be -6 to 5, got 6"),
        ((0, 0, -7), "trace: step must be -6 to 5, got -7"),
        ((0, 0, None), "trace: step must be -6 to 5, got None"),
        ((0, 0, 0, "inbox"), "trace: no buffer is called 'inbox'; this schedule has data"),
    ],
)
def test_a_place_that_does_not_exist_is_one_clear_sentence(place, sentence):
    with pytest.raises(ScheduleError) as error:
        all_reduce.ring(4).trace(*place)
    assert str(error.value) == sentence


def test_a_schedule_without_steps_has_nothing_to_ask_for():
    with pytest.raises(ScheduleError, match="^trace: there is no step, got -1$"):
        mine().trace(0, 0, -1)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_schedule_from_a_file_answers_the_same(name, tmp_path):
    schedule = SAMPLE[name]
    schedule.save(tmp_path / "a.json")
    loaded = load(tmp_path / "a.json")
    for buffer, rank, chunk in places(schedule):
        assert loaded.trace(rank, chunk, -1, buffer) == schedule.trace(rank, chunk, -1, buffer)


def recorded(*steps):
    """Steps of (transfers, sources)."""
    return Schedule.from_steps("recorded", "mine", 4, 2, [("", "", *step) for step in steps])


HEARD = recorded(
    ([Transfer(3, 1, 1), Transfer(0, 2, 0)], [(1, 7, "dist.recv(b, 3)"), (3, 6, "dist.send(x[1], 1)")]),
    ([Transfer(1, 0, 1, "reduce")], [(1, 8, "dist.send(x, 0)"), (1, 9, "dist.recv(y, 0)")]),
    ([Transfer(0, 2, 1, "reduce")], []),
    ([Transfer(2, 2, 7, "new", dst_chunk=0)], [(2, 11, "x[0] = 3")]),
    ([Transfer(2, 2, 0, "reduce", dst_chunk=1)] * 2, []),
)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ((0, 0, 4), "rank 0's chunk 0 = a0: there from the start."),
        ((1, 1, 0), "rank 1's chunk 1 = d1: from rank 3 in step 1 (line 6)."),
        (
            (0, 1, 1),
            "rank 0's chunk 1 = a1 + d1: from rank 3 in step 1 (line 6), from rank 1 in step 2 (lines 8 and 9).",
        ),
        ((2, 0, 3), "rank 2's chunk 0 = c7: computed by rank 2 in step 4 (line 11)."),
        (
            (2, 1, 4),
            "rank 2's chunk 1 = a1 + c1 + 2 c7 + d1: from rank 3 in step 1 (line 6), from rank 1 in step 2 "
            "(lines 8 and 9), from rank 0 in step 3, computed by rank 2 in step 4 (line 11), within rank 2 in step 5, "
            "within rank 2 in step 5.",
        ),
    ],
)
def test_the_sentence(place, sentence):
    assert HEARD.trace(*place).sentence == sentence


def test_the_sentence_of_an_empty_place_and_of_one_of_several_buffers():
    schedule = broadcast.flat(3, 0)
    assert schedule.trace(2, 0, 0).sentence == "rank 2's chunk 0 holds nothing."
    halo = all_to_all.bruck(2).trace(0, 0, 0)
    assert halo.sentence.startswith("rank 0's chunk 0 of 'output' ")


def test_a_long_sentence_is_cut():
    words = all_reduce.naive(20).trace(0, 0, 18).sentence
    assert words.startswith("rank 0's chunk 0 = a0 + b0 + c0 + d0 + e0 + f0 + 14 more: from rank 1 in step 1, ")
    assert words.endswith("from rank 6 in step 6, and 13 more hops.") and len(words) < 300
    assert all_reduce.naive(8).trace(0, 0, 6).sentence.endswith("and 1 more hop.")


def test_the_sentence_claims_no_sum_where_a_maximum_was_taken():
    schedule = mine([Transfer(0, 1, 0, "reduce")])
    schedule.ways = lambda index: ["max"]
    assert schedule.trace(1, 0, 0).sentence == "rank 1's chunk 0 is made of a0, b0: from rank 0 in step 1."
    schedule.ways = lambda index: ["changed outside torch"]
    schedule.steps = mine([Transfer(1, 1, 3, "new", dst_chunk=0)]).steps
    assert schedule.trace(1, 0, 0).sentence == "rank 1's chunk 0 = b3: changed outside torch by rank 1 in step 1."
