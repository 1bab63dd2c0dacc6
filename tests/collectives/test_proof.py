"""check refuses what is wrong: broken schedules, against brute force on numbers, and the words it says so with."""

import pytest
from brute_force import is_right
from every import NAMES, schedules
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import Schedule, ScheduleError, Transfer, all_reduce, barrier

EVERY = pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)


def rebuilt(schedule, steps):
    """The same promise with other steps: lists of Transfers."""
    return Schedule.from_steps(
        schedule.collective, schedule.algorithm, schedule.ranks, schedule.chunks,
        [("phase", "A caption.", transfers) for transfers in steps],
        root=schedule.root, buffers=schedule.buffers, result=schedule.result, goal=schedule.goal(),
        start={name: cells.tolist() for name, cells in schedule.start().cells.items()},
    )  # fmt: skip


def refusal(schedule):
    """The ScheduleError of check, after a look at what it names; None if there is none."""
    try:
        schedule.check()
    except ScheduleError as error:
        assert str(error).startswith(f"step {error.step}: ") and "rank " in str(error) and "chunk" in str(error)
        assert 1 <= error.step <= max(len(schedule.steps), 1) or not len(schedule.steps)
        assert error.rank is not None and error.chunk is not None
        return error
    return None


# News heard twice; a token that comes home; chunks that came down the tree before they come round the ring; and
# a rank's own chunk, which Bruck's sort puts where it still is.
TWICE = {"barrier.dissemination", "send_recv.ring_pass", "broadcast.scatter_all_gather", "all_gather.bruck"}


@EVERY
@pytest.mark.parametrize("ranks", [3, 4])
def test_no_transfer_can_be_left_out(collective, algorithm, ranks):
    """Unless numbers show that it was not needed, and then only in the four algorithms that do something twice."""
    for schedule in schedules(collective, algorithm, ranks)[:1]:
        steps = [list(step.transfers) for step in schedule.steps]
        for number, transfers in enumerate(steps):
            for i in range(len(transfers)):
                broken = rebuilt(schedule, [*steps[:number], transfers[:i] + transfers[i + 1 :], *steps[number + 1 :]])
                refused = refusal(broken)
                assert refused or is_right(broken)
                assert refused or f"{collective}.{algorithm}" in TWICE


@st.composite
def broken_schedules(draw):
    """A small schedule of any algorithm with one transfer dropped, doubled, moved, or changed in one field."""
    collective, algorithm = draw(st.sampled_from(NAMES))
    made = schedules(collective, algorithm, draw(st.integers(2, 7))) or schedules(collective, algorithm, 4)
    schedule = draw(st.sampled_from(made))
    steps = [list(step.transfers) for step in schedule.steps]
    where = draw(st.sampled_from([(s, t) for s, transfers in enumerate(steps) for t in range(len(transfers))]))
    transfer = steps[where[0]].pop(where[1])
    rank, chunk = st.integers(-1, schedule.ranks), st.integers(-1, schedule.chunks)
    kinds = [
        "drop",
        "double",
        "repeat",
        "move",
        "src",
        "dst",
        "chunk",
        "dst_chunk",
        "count",
        "op",
        "src_buffer",
        "dst_buffer",
    ]
    match kind := draw(st.sampled_from(kinds)):
        case "drop":
            return schedule, steps
        case "double":
            steps[where[0]] += [transfer, transfer]
            return schedule, steps
        case "repeat" | "move":
            if kind == "repeat":
                steps[where[0]].insert(where[1], transfer)
            steps[draw(st.integers(0, len(steps) - 1))].append(transfer)
            return schedule, steps
    buffer, op = st.sampled_from(schedule.buffers), st.sampled_from(["copy", "reduce"])
    values = {"src": rank, "dst": rank, "chunk": chunk, "dst_chunk": chunk, "count": st.integers(0, 3), "op": op}
    steps[where[0]].insert(where[1], transfer._replace(**{kind: draw(values.get(kind, buffer))}))
    return schedule, steps


@settings(max_examples=600, deadline=None, derandomize=True)
@given(broken_schedules())
def test_nothing_broken_slips_through(case):
    schedule, steps = case
    broken = rebuilt(schedule, steps)
    out_of_range = any(
        not (0 <= t.src < broken.ranks and 0 <= t.dst < broken.ranks and t.count > 0
             and 0 <= t.chunk <= broken.chunks - t.count and 0 <= t.dst_chunk <= broken.chunks - t.count)
        for transfers in steps for t in transfers
    )  # fmt: skip
    if out_of_range or not is_right(broken):
        assert refusal(broken) is not None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_two_steps_of_a_ring_swapped_are_refused_unless_numbers_agree(data):
    schedule = all_reduce.ring(data.draw(st.integers(3, 6)))
    steps = [step.transfers for step in schedule.steps]
    i, j = data.draw(st.lists(st.integers(0, len(steps) - 1), min_size=2, max_size=2, unique=True))
    steps[i], steps[j] = steps[j], steps[i]
    broken = rebuilt(schedule, steps)
    assert refusal(broken) or is_right(broken)


def naive_of_two(*steps):
    return Schedule.from_steps("all_reduce", "mine", 2, 2, [("", "", transfers) for transfers in steps])


BOTH = Transfer(1, 0, 0, "reduce", count=2)
BACK = Transfer(0, 1, 0, count=2)


@pytest.mark.parametrize(
    ("steps", "where", "words"),
    [
        (([BOTH],), (1, 1, 0), None),
        (([BOTH], [BACK._replace(count=1)]), (2, 1, 1), None),
        (
            ([BOTH], [BOTH], [BACK]),
            (2, 0, 0),
            "step 2: b0 from rank 1 is added to rank 0's chunk 0, but b0 is in there already",
        ),
        (
            ([Transfer(1, 0, 0, "reduce", dst_chunk=1)],),
            (1, 0, 1),
            "step 1: b0 from rank 1 is added to rank 0's chunk 1, which holds a1: that is another chunk",
        ),
        (([Transfer(0, 2, 0)],), (1, 2, 0), "step 1: rank 0 sends chunk 0 to rank 2, but the ranks are 0 to 1"),
        (([Transfer(-1, 0, 0)],), (1, -1, 0), "step 1: rank -1 sends chunk 0 to rank 0, but the ranks are 0 to 1"),
        (([Transfer(0, 1, 2)],), (1, 0, 2), "step 1: rank 0's chunks 2 to 2 are read, but the chunks are 0 to 1"),
        (
            ([Transfer(0, 1, 0, count=2, dst_chunk=1)],),
            (1, 1, 1),
            "step 1: rank 1's chunks 1 to 2 are written, but the chunks are 0 to 1",
        ),
        (([Transfer(0, 1, 0, count=0)],), (1, 0, 0), "step 1: rank 0 sends rank 1 0 chunks; at least 1 is needed"),
    ],
)
def test_words_and_place(steps, where, words):
    with pytest.raises(ScheduleError) as error:
        naive_of_two(*steps).check()
    assert (error.value.step, error.value.rank, error.value.chunk) == where
    assert words is None or str(error.value) == words


def test_missing_contributions_are_named_with_the_step_that_wrote_last():
    with pytest.raises(ScheduleError) as error:
        naive_of_two([BOTH]).check()
    message = "step 1: rank 1's chunk 0 (never written) must hold a0+b0 after all_reduce, but holds b0"
    assert str(error.value) == message


def test_sending_what_is_not_there_yet():
    schedule = Schedule.from_steps("broadcast", "mine", 3, 1, [("", "", [Transfer(1, 2, 0)])], root=0)
    with pytest.raises(ScheduleError, match="^step 1: rank 1 sends chunk 0 to rank 2, but holds nothing there yet$"):
        schedule.check()


def test_a_run_that_promises_nothing_may_add_what_it_likes_but_not_send_nothing():
    def recorded(*transfers):
        steps = [("", "", [transfer]) for transfer in transfers]
        return Schedule.from_steps("recorded", "mine", 2, 2, steps, buffers=("data", "other"))

    twice, elsewhere = Transfer(1, 0, 0, "reduce"), Transfer(1, 0, 0, "reduce", dst_chunk=1)
    assert recorded(twice, twice, elsewhere).check() is None
    with pytest.raises(ScheduleError, match="^step 2: rank 1 sends chunk 0 .* holds nothing there yet$"):
        recorded(twice, Transfer(1, 0, 0, src_buffer="other")).check()


def new(rank, number, **more):
    return Transfer(rank, rank, number, "new", dst_chunk=0, **more)


def test_what_a_rank_makes_itself_is_there_and_is_no_part_of_a_promise():
    def recorded(*transfers):
        steps = [("", "", [transfer]) for transfer in transfers]
        return Schedule.from_steps("recorded", "mine", 2, 1, steps, buffers=("data", "other"))

    made = new(0, 77, src_buffer="other", dst_buffer="other")
    onwards = Transfer(0, 1, 0, src_buffer="other")
    assert recorded(made, onwards).check() is None
    with pytest.raises(ScheduleError, match="^step 1: rank 0 sends chunk 0 .* holds nothing there yet$"):
        recorded(onwards, made).check()
    good = naive_of_two([BOTH], [BACK])
    assert good.check() is None
    with pytest.raises(ScheduleError) as error:
        rebuilt(good, [*(step.transfers for step in good.steps), [new(1, 9)]]).check()
    assert str(error.value).endswith("(last written in step 3) must hold a0+b0 after all_reduce, but holds b9")
    with pytest.raises(ScheduleError, match="b5 from rank 1 is added to rank 0's chunk 0, which holds a0: that is an"):
        rebuilt(good, [[new(1, 5)], *(step.transfers for step in good.steps)]).check()


@pytest.mark.parametrize(
    ("transfer", "where", "words"),
    [
        (new(1, 9, count=3), (1, 1, 0), "step 1: rank 1's chunks 0 to 2 are written, but the chunks are 0 to 1"),
        (new(1, 9, count=0), (1, 1, 0), "step 1: rank 1 sends rank 1 0 chunks; at least 1 is needed"),
        (new(2, 9), (1, 2, 0), "step 1: rank 2 sends chunk 0 to rank 2, but the ranks are 0 to 1"),
    ],
)
def test_a_new_lands_where_there_are_ranks_and_chunks(transfer, where, words):
    with pytest.raises(ScheduleError) as error:
        naive_of_two([transfer]).check()
    assert (error.value.step, error.value.rank, error.value.chunk) == where and str(error.value) == words


def test_two_writers_at_the_same_time():
    steps = [("", "", [Transfer(0, 1, 0)]), ("", "", [Transfer(0, 2, 0), Transfer(1, 2, 0)])]
    schedule = Schedule.from_steps("broadcast", "mine", 3, 1, steps, root=0)
    with pytest.raises(ScheduleError) as error:
        schedule.check()
    message = "step 2: rank 0 and rank 1 write to rank 2's chunk 0 at the same time, and the last one wins"
    assert str(error.value) == message


def test_adding_where_nothing_is():
    steps = [("", "", [Transfer(0, 1, 0, "reduce", dst_buffer="scratch")])]
    schedule = Schedule.from_steps("all_reduce", "mine", 2, 1, steps, buffers=("data", "scratch"))
    with pytest.raises(ScheduleError) as error:
        schedule.check()
    told = "step 1: a0 from rank 0 is added to rank 1's chunk 0 of 'scratch', but there is nothing to add it to"
    assert str(error.value) == told


def test_a_barrier_in_which_somebody_is_not_heard_is_none():
    schedule = barrier.dissemination(4)
    steps = [list(step.transfers) for step in schedule.steps]
    with pytest.raises(ScheduleError, match="must hold a0[+]b0[+]c0[+]d0 after barrier"):
        rebuilt(schedule, steps[:1]).check()


def test_a_schedule_that_promises_nothing_is_only_checked_for_what_moves():
    Schedule.from_steps("unknown", "mine", 2, 1, [("", "", [Transfer(0, 1, 0)])]).check()
