"""The doctor against every kind of deadlock of a first course, against legal programs, and against brute force."""

import random

import pytest

from launch.doctor import explain
from launch.doctor.proof import examine
from launch.doctor.snapshot import Ending, How, State
from tests.launch.worlds import World, random_world, settle


def stuck(programs, groups=None):
    """Who is stuck when the programs have run as far as they can."""
    world = settle(World(programs, groups or [list(range(len(programs)))]))
    diagnosis = examine(world.views())
    return diagnosis and diagnosis.stuck


def said(programs, groups=None):
    world = settle(World(programs, groups or [list(range(len(programs)))]))
    return explain.deadlock(examine(world.views()))


AR, BAR = ("all_reduce", 0), ("barrier", 0)


def test_a_rank_skips_a_collective():
    programs = [[AR, AR], [AR, AR], [AR], [AR, AR]]
    assert stuck(programs) == (0, 1, 3)
    assert (
        said(programs)
        == "ranks 0, 1, 3 wait in all_reduce #2 (line 2, float32[4]); rank 2 left the cell after 1 collective"
    )


def test_barrier_against_all_reduce():
    assert stuck([[BAR], [BAR], [AR], [BAR]]) == (0, 1, 2, 3)
    assert said([[BAR], [BAR], [AR], [BAR]]) == (
        "ranks 0, 1, 3 wait in barrier #1 (line 1, float32[4]); rank 2 waits in all_reduce #1 (line 1, float32[4])"
    )


def test_different_order_in_one_group():
    assert stuck([[AR, BAR], [BAR, AR]]) == (0, 1)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_ring_of_blocking_sends(size):
    programs = [[("send", (r + 1) % size, 0), ("recv", (r - 1) % size, 0)] for r in range(size)]
    assert stuck(programs) == tuple(range(size))
    if size == 8:
        assert said(programs) == "ranks 0-7 wait in send to the next rank (line 1, float32[4])"
    if size == 2:
        text = (
            "rank 0 waits in send to rank 1 (line 1, float32[4]); rank 1 waits in send to rank 0 (line 1, float32[4])"
        )
        assert said(programs) == text


def test_a_ring_of_blocking_recvs():
    assert stuck([[("recv", (r - 1) % 3, 0), ("send", (r + 1) % 3, 0)] for r in range(3)]) == (0, 1, 2)


def test_a_ring_that_is_broken_at_one_place_runs():
    programs = [[("send", (r + 1) % 4, 0), ("recv", (r - 1) % 4, 0)] for r in range(4)]
    programs[2].reverse()
    assert stuck(programs) is None


def test_recv_from_a_rank_that_never_sends():
    programs = [[("recv", 2, 0)], [], [AR[:1] + (1,)]]
    assert stuck(programs, [[0, 1, 2], [2, 1]]) == (0, 2)
    assert said([[("recv", 1, 0)], []]) == (
        "rank 0 waits in recv from rank 1 (line 1, float32[4]); rank 1 left the cell without the matching send"
    )


def test_recv_with_another_tag():
    assert stuck([[("send", 1, 0)], [("recv", 0, 1)]]) == (0, 1)


def test_recv_from_any_source_when_nobody_sends():
    assert stuck([[("recv", -1, 0)], [], []]) == (0,)
    assert said([[("recv", -1, 0)], []]).startswith(
        "rank 0 waits in recv from any rank (line 1, float32[4]); rank 1 left"
    )
    assert stuck([[("recv", -1, 0), ("recv", -1, 0)], [("send", 0, 0)], []]) == (0,)
    assert stuck([[("recv", -1, 0)], [("send", 0, 0)], []]) is None
    two = [("irecv", -1, 0), ("irecv", -1, 0)]
    assert stuck([[*two, ("wait", 1)], [("send", 0, 0)], []]) == (0,)  # the first of the two takes the message
    assert stuck([[*two, ("wait", 0)], [("send", 0, 0)], []]) is None


def test_batch_with_a_missing_partner():
    both = [("wait", 0), ("wait", 1)]
    programs = [[("isend", 1, 0), ("irecv", 2, 0), *both], [("isend", 2, 0), ("irecv", 0, 0), *both]]
    programs.append([("irecv", 1, 0), ("wait", 0)])
    assert stuck(programs) == (0,)


def test_nested_cycle_over_three_groups():
    groups = [[0, 1, 2], [0, 1], [1, 2], [0, 2]]
    programs = [
        [("all_reduce", 1), ("all_reduce", 3)],
        [("all_reduce", 2), ("all_reduce", 1)],
        [("all_reduce", 3), ("all_reduce", 2)],
    ]
    assert stuck(programs, groups) == (0, 1, 2)
    assert "rank 1 waits in all_reduce #1 of ranks 1,2" in said(programs, groups)


def test_sub_groups_that_progress_are_left_alone_while_others_are_stuck():
    groups = [[0, 1, 2, 3], [0, 1], [2, 3]]
    world = World([[("all_reduce", 1)], [], [("work",)] * 9 + [("all_reduce", 2)], [("all_reduce", 2)]], groups)
    for rank in range(4):
        world.step(rank)
    diagnosis = examine(world.views())
    assert diagnosis.stuck == (0,) and diagnosis.moving == (2, 3)


def test_an_outstanding_isend_provides_though_its_rank_is_elsewhere():
    # Rank 0 has posted its send and waits in a barrier: rank 1 gets its message and comes.
    world = World([[("isend", 1, 0), BAR], [("work",), ("recv", 0, 0), BAR]], [[0, 1]])
    for rank in (0, 0, 1, 1):
        world.step(rank)
    assert examine(world.views()) is None


def test_ranks_that_compute_are_never_accused():
    world = World([[AR], [("work",)] * 3 + [AR], [AR]], [[0, 1, 2]])
    for _ in range(2):
        world.step(0), world.step(1), world.step(2)
        assert examine(world.views()) is None


def test_a_rank_that_is_cut_off_takes_its_part_back():
    world = World([[AR, AR], [AR, AR]], [[0, 1]])
    world.step(0), world.step(1)
    alive = world.views()
    assert examine(alive) is None
    killed = Ending(How.DIED, "killed by SIGKILL", cut=True)
    dead = alive[1].__class__(**{**vars(alive[1]), "state": State.CUT, "waits": (), "ending": killed})
    diagnosis = examine((alive[0], dead))
    assert diagnosis.stuck == (0,)
    assert explain.deadlock(diagnosis) == (
        "rank 0 waits in all_reduce #1 (line 1, float32[4]); rank 1 died (killed by SIGKILL)"
    )


def test_reduce_without_its_root_is_only_likely():
    world = settle(World([[], [("reduce", 0, 0)], [("reduce", 0, 0)]], [[0, 1, 2]]))
    diagnosis = examine(world.views())
    assert diagnosis.stuck == (1, 2) and not diagnosis.proved


def test_more_kinds_of_messages_than_are_counted_are_held_against_nobody():
    world = settle(World([[("recv", 1, 0)], [("isend", 0, 1)]], [[0, 1]]))
    views = world.views()
    assert examine(views).stuck == (0,)
    more = views[1].__class__(**{**vars(views[1]), "messages": (views[1].messages[0]._replace(kind="more"),)})
    assert examine((views[0], more)) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_doctor_agrees_with_brute_force_on_every_reachable_state(seed):
    rng = random.Random(seed)
    found = 0
    for _ in range(50):
        world = random_world(rng)
        while movers := [r for r in range(len(world.ranks)) if world.may_step(r)]:
            world.step(rng.choice(movers))
            diagnosis = examine(world.views())
            truth = world.hopeless()
            assert list(diagnosis.stuck if diagnosis else ()) == truth, [rank.program for rank in world.ranks]
        found += bool(truth)
    assert found >= 8  # not all of the programs are sound, nor all broken


@pytest.mark.parametrize("seed", range(2))
def test_receives_from_any_source_are_never_accused_wrongly(seed):
    """Which message they get is gloo's choice, so brute force lets them have any; the doctor may be more careful."""
    rng, found = random.Random(1000 + seed), 0
    for _ in range(50):
        world = random_world(rng)
        for rank in world.ranks:
            rank.program = [
                (op[0], -1, op[2]) if op[0] in ("recv", "irecv") and rng.random() < 0.5 else op for op in rank.program
            ]
        while movers := [r for r in range(len(world.ranks)) if world.may_step(r)]:
            world.step(rng.choice(movers))
            diagnosis = examine(world.views())
            assert set(diagnosis.stuck if diagnosis else ()) <= set(world.hopeless()), [r.program for r in world.ranks]
        found += diagnosis is not None
    assert found >= 5
