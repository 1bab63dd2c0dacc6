"""Every algorithm of every collective on real ranks, against torch's own collective on the same data.

The numbers are whole, so that sums are exact in any order and equality is demanded to the bit; they are random, so no
two chunks of any two ranks hold the same.
"""

import pytest

from collectives import ScheduleError, all_reduce
from collectives.catalogue import CATALOGUE, build
from launch.doctor.snapshot import How
from launch.execute import execute
from launch.ranks import Ranks
from launch.shared.errors import RankError, UsageError

# From x, the full buffer: `want`, what torch's built-in makes of it, and `part`, the piece of the result that counts.
BUILT_IN = {
    "broadcast": "want = x.clone(); dist.broadcast(want, 0); part = slice(None)",
    "scatter": "want = x.chunk(world_size)[rank].clone()\n"
    "dist.scatter(want, list(x.chunk(world_size)) if rank == 0 else None, 0); part = block",
    "gather": "want = [torch.empty_like(x[block]) for _ in range(world_size)] if rank == 0 else None\n"
    "dist.gather(x[block].clone(), want, 0)\n"
    "want, part = (torch.cat(want), slice(None)) if rank == 0 else (x[:0], slice(0))",
    "reduce": "want = x.clone(); dist.reduce(want, 0)\n"
    "part = slice(None) if rank == 0 else slice(0); want = want[part]",
    "all_gather": "want = torch.empty_like(x); dist.all_gather_single(want, x[block].clone()); part = slice(None)",
    "reduce_scatter": "want = torch.empty_like(x[block]); dist.reduce_scatter_single(want, x.clone()); part = block",
    "all_reduce": "want = x.clone(); dist.all_reduce(want); part = slice(None)",
    "all_to_all": "want = torch.empty_like(x); dist.all_to_all_single(want, x.clone()); part = slice(None)",
}


@pytest.fixture(scope="module")
def ranks(warm):
    ranks = Ranks(fork_from=warm)
    yield ranks
    ranks.close()


def run(ranks, code):
    for answer in ranks.execute(code):
        assert answer.how is How.LEFT, f"rank {answer.rank}: {answer.ename}: {answer.evalue}"


def every_algorithm(p):
    for collective in BUILT_IN:
        for algorithm in CATALOGUE[collective]:
            try:
                yield build(collective, algorithm, p, local=2 if p % 2 == 0 and p > 2 else None)
            except ScheduleError:
                continue  # this algorithm does not take this p, and says so


@pytest.mark.parametrize("p", [2, 3, 4])
def test_every_algorithm_equals_the_built_in(ranks, p):
    ranks.ensure(p)
    schedules = list(every_algorithm(p))
    assert len(schedules) >= 20
    run(ranks, "wants, parts = [], []")
    run(ranks, "\n".join(data(schedule, number, p) for number, schedule in enumerate(schedules)))
    for number, schedule in enumerate(schedules):
        execute(schedule, f"x{number}", ranks)
    came = ", ".join(f"x{number}" for number in range(len(schedules)))
    run(ranks, f"same = [torch.equal(x[part], want) for x, part, want in zip([{came}], parts, wants, strict=True)]")
    wrong = [
        schedule
        for schedule, same in zip(schedules, zip(*ranks.pull("same"), strict=True), strict=True)
        if not all(same)
    ]
    assert not wrong


def data(schedule, number: int, p: int) -> str:
    """The lines that make the schedule's own x, and what the built-in makes of it."""
    length = 2 * schedule.chunks * p  # a multiple of the chunks and of the ranks
    return (
        f"torch.manual_seed(17 * rank + {number})\nx = torch.randint(-999, 1000, ({length},)).float()\n"
        f"block = slice(rank * {length} // world_size, (rank + 1) * {length} // world_size)\n"
        f"{BUILT_IN[schedule.collective]}\nx{number} = x; wants.append(want); parts.append(part)"
    )


def test_a_shift_brings_the_left_neighbours_numbers(ranks):
    ranks.ensure(4)
    run(ranks, "x = torch.arange(3.0) + 10 * rank")
    execute(build("send_recv", "shift", 4), "x", ranks)
    assert [x.tolist() for x in ranks.pull("x")] == [[30, 31, 32], [0, 1, 2], [10, 11, 12], [20, 21, 22]]


def test_what_cannot_be_executed_is_said(ranks):
    ranks.ensure(4)
    with pytest.raises(UsageError, match="for 3 ranks and 4 are running"):
        execute(all_reduce.ring(3), "x", ranks)
    with pytest.raises(UsageError, match="name of a variable"):
        execute(all_reduce.ring(4), "2x", ranks)
    run(ranks, "x = torch.arange(5.0)")
    with pytest.raises(RankError, match="ranks 0-3: ValueError: the schedule has 4 chunks.*got \\[5\\]"):
        execute(all_reduce.ring(4), "x", ranks)
    assert [x.tolist() for x in ranks.pull("x")] == [[0, 1, 2, 3, 4]] * 4
