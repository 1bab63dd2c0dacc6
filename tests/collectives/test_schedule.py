"""The noun itself: transfers, lazy steps, explicit steps, states."""

from collections import Counter

import numpy as np
import pytest

from collectives import Cell, Schedule, ScheduleError, Transfer, all_reduce, broadcast
from collectives.state import letter, number, symbol


def test_a_transfer_lands_where_it_came_from_unless_told_otherwise():
    assert Transfer(0, 1, 5).dst_chunk == 5
    assert Transfer(0, 1, 5, dst_chunk=2).dst_chunk == 2
    assert Transfer(0, 1, 5) == (0, 1, 5, "copy", 1, 5, "data", "data")
    assert Transfer(0, 1, 5)._replace(op="reduce").op == "reduce"


def test_steps_are_a_lazy_sequence():
    steps = all_reduce.ring(4).steps
    assert len(steps) == 6
    assert [step.phase for step in steps] == ["reduce-scatter"] * 3 + ["all-gather"] * 3
    assert steps[-1].transfers == steps[5].transfers
    assert [step.transfers for step in steps[1:3]] == [steps[1].transfers, steps[2].transfers]
    with pytest.raises(IndexError):
        steps[6]
    assert len(all_reduce.ring(1_000_000).steps) == 1_999_998  # nothing is made before it is asked for


def test_columns_say_the_same_as_transfers():
    schedule = all_reduce.whole_ring(3)
    for step in schedule.steps:
        rows = zip(*(column.tolist() for column in step.columns), strict=True)
        again = [
            Transfer(
                src, dst, chunk, ("copy", "reduce")[op], count, dst_chunk, schedule.buffers[a], schedule.buffers[b]
            )
            for src, dst, chunk, dst_chunk, count, op, a, b in rows
        ]
        assert tuple(again) == step.transfers
        assert all(column.dtype == np.int64 and len(column) == len(again) for column in step.columns)


def test_explicit_steps_come_back_as_they_went_in():
    lazy = all_reduce.halving_doubling(6)
    steps = [(step.phase, step.caption, step.transfers) for step in lazy.steps]
    explicit = Schedule.from_steps("all_reduce", "copied", 6, 4, steps)
    assert [(step.phase, step.caption, step.transfers) for step in explicit.steps] == steps
    assert explicit.counts(nbytes=4000) == lazy.counts(nbytes=4000)
    assert explicit.states(-1) == lazy.states(-1)
    explicit.check()
    assert explicit.steps[0].sources == ()


def test_recorded_steps_keep_where_they_came_from():
    where = ((0, 4, "dist.send(x, 1)"),)
    schedule = Schedule.from_steps("send", "recorded", 2, 1, [("send", "Rank 0 sends.", [Transfer(0, 1, 0)], where)])
    assert schedule.steps[0].sources == where


def test_explicit_steps_with_other_words_are_refused():
    with pytest.raises(ScheduleError, match='op of a Transfer is "copy", "reduce" or "new", got \'add\''):
        Schedule.from_steps("all_reduce", "mine", 2, 1, [("", "", [Transfer(0, 1, 0, "add")])])
    with pytest.raises(ScheduleError, match="no buffer is called 'inbox'; this schedule has data"):
        Schedule.from_steps("all_reduce", "mine", 2, 1, [("", "", [Transfer(0, 1, 0, dst_buffer="inbox")])])


def test_states_of_the_ring_by_hand():
    schedule = all_reduce.ring(3)
    assert [[str(cell) for cell in schedule.start()[rank]["data"]] for rank in range(3)] == [
        ["a0", "a1", "a2"], ["b0", "b1", "b2"], ["c0", "c1", "c2"],
    ]  # fmt: skip
    assert [[str(cell) for cell in schedule.states(0)[rank]["data"]] for rank in range(3)] == [
        ["a0", "a1+c1", "a2"], ["b0", "b1", "a2+b2"], ["b0+c0", "c1", "c2"],
    ]  # fmt: skip
    done = schedule.states(-1)
    assert all(
        str(done[rank]["data"][chunk]) == f"a{chunk}+b{chunk}+c{chunk}" for rank in range(3) for chunk in range(3)
    )
    assert done[2]["data"][1].origins == ((0, 1), (1, 1), (2, 1))
    assert done[2]["data"][1].contributors == (0, 1, 2)


def test_states_do_not_depend_on_the_order_of_questions():
    asked = all_reduce.double_tree(5)
    forward = [all_reduce.double_tree(5).states(i) for i in range(len(asked.steps))]
    for i in (3, 7, 0, 5, -1, 2):
        assert asked.states(i) == forward[i]
        asked.states(i).cells["data"][:] = Cell()  # what was handed out is the caller's own
        assert asked.states(i) == forward[i]
    with pytest.raises(IndexError):
        asked.states(len(forward))


def test_messages_read_before_the_step_and_local_transfers_after_them():
    swap = [Transfer(0, 1, 0), Transfer(1, 0, 0)]
    then_add = [Transfer(0, 0, 0, "reduce", dst_chunk=1), Transfer(0, 0, 1, dst_chunk=0)]
    state = Schedule.from_steps("x", "mine", 2, 2, [("", "", swap + then_add)]).states(0)
    assert [str(cell) for cell in state[0]["data"]] == ["a1+b0", "a1+b0"]
    assert [str(cell) for cell in state[1]["data"]] == ["a0", "b1"]
    assert repr(state) == "rank 0: data[a1+b0, a1+b0]\nrank 1: data[a0, b1]"


def test_adding_twice_shows_twice():
    steps = [("", "", [Transfer(0, 1, 0, "reduce")])] * 2
    cell = Schedule.from_steps("all_reduce", "mine", 2, 1, steps).states(-1)[1]["data"][0]
    assert str(cell) == "a0+a0+b0" and cell.contributors == (0, 1)


def test_a_new_replaces_what_is_there_by_symbols_of_the_rank_s_own():
    made = Transfer(1, 1, 9, "new", count=2, dst_chunk=0)
    steps = [("", "", [made, Transfer(0, 1, 0, "reduce")]), ("", "", [Transfer(1, 0, 0, "reduce")])]
    schedule = Schedule.from_steps("recorded", "mine", 2, 3, steps)
    assert schedule.steps[0].transfers[0] == made
    assert [str(cell) for cell in schedule.states(0)[1]["data"]] == ["b9", "b10", "b2"]  # after the message
    assert [str(cell) for cell in schedule.states(1)[0]["data"]] == ["a0+b9", "a1", "a2"]
    assert schedule.states(1)[0]["data"][0].contributors == (0, 1)


@pytest.mark.parametrize(
    ("transfer", "sentence"),
    [
        (
            Transfer(0, 1, 5, "new", dst_chunk=0),
            'rank 0 cannot make something new on rank 1: src and dst of a "new" are the same rank',
        ),
        (
            Transfer(1, 1, -1, "new", dst_chunk=0),
            'rank 1 makes something new with the number -1: chunk of a "new" is a number from 0 on',
        ),
    ],
)
def test_a_new_that_cannot_be_one_is_refused(transfer, sentence):
    with pytest.raises(ScheduleError) as error:
        Schedule.from_steps("recorded", "mine", 2, 1, [("", "", [transfer])])
    assert str(error.value) == sentence and (error.value.rank, error.value.chunk) == (1, 0)


def test_what_only_a_run_knows_has_a_neutral_answer():
    every_op = [Transfer(0, 1, 0), Transfer(1, 0, 0, "reduce"), Transfer(1, 1, 4, "new", dst_chunk=0)]
    schedule = Schedule.from_steps("recorded", "mine", 2, 1, [("", "", every_op)])
    assert schedule.ways(0) == ["", "sum", "computed"]
    assert schedule.values(0) == schedule.start_values() == [] and schedule.beginning(1) is schedule
    assert all_reduce.ring(3).ways(0) == ["sum"] * 3 and all_reduce.ring(3).ways(-1) == [""] * 3


def test_an_own_start_may_be_given_in_lists():
    start = {"out": [[Cell(((1, 3),))], [Cell()]]}
    steps = [("", "", [Transfer(0, 1, 0, src_buffer="out", dst_buffer="out")])]
    schedule = Schedule.from_steps("x", "mine", 2, 1, steps, buffers=("data", "out"), start=start, result="out")
    assert str(schedule.states(0)[1]["out"][0]) == "b3" and not schedule.states(0)[1]["data"][0]
    assert schedule.result == "out"


def test_rooted_schedules_know_their_root():
    assert broadcast.binomial(4, root=2).root == 2 and all_reduce.ring(4).root is None
    assert [str(cells["data"][0]) for cells in map(broadcast.binomial(3, 2).start().__getitem__, range(3))] == [
        "",
        "",
        "c0",
    ]


def test_symbols_and_numbers_name_their_origin():
    assert [letter(rank) for rank in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "a",
        "z",
        "aa",
        "ab",
        "az",
        "ba",
        "zz",
        "aaa",
    ]
    assert symbol(2, 1) == "c1" and str(Cell()) == "" and not Cell()


def test_what_is_added_again_and_again_is_counted():
    """Against a Counter that is doubled in the same way; listed, it would not fit into any memory."""
    cell, oracle = Cell([(0, 0), (1, 0)]), Counter({(0, 0): 1, (1, 0): 1})
    for _ in range(2000):
        cell, oracle = cell + cell + Cell([(2, 1)]), Counter({k: 2 * n for k, n in oracle.items()}) + Counter([(2, 1)])
        assert dict(cell.terms) == oracle
    assert str(cell) == "many·a0+many·b0+many·c1" and cell.contributors == (0, 1, 2)
    assert Cell([(0, 0)] * 3) == Cell([(0, 0)]) + Cell([(0, 0), (0, 0)]) != Cell([(0, 0)])
    assert [str(Cell([(0, 1)] * n)) for n in (1, 2, 3, 4, 999)] == ["a1", "a1+a1", "a1+a1+a1", "4·a1", "999·a1"]
    assert number(2, 1, chunks=4) == 21 and number(2, 1, chunks=10) == 21 and number(2, 1, chunks=11) == 201
