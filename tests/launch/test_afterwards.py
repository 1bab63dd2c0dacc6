"""What one cell leaves behind must not mislead the next: calls that were refused, messages from any source."""

import pytest

from launch.kernel.output import raise_failures
from launch.ranks import Ranks
from launch.shared.errors import DeadlockError, RankError


@pytest.fixture(scope="module")
def ranks(warm):
    ranks = Ranks(fork_from=warm)
    ranks.ensure(4)
    yield ranks
    ranks.close()


def run(ranks, code):
    raise_failures(ranks.execute(code))


def test_a_collective_that_the_library_refused_was_never_made(ranks):
    """Its fingerprint must not meet the next collective that has its number."""
    refused = (
        "try: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)\nexcept RuntimeError as error: refused = str(error)"
    )
    run(ranks, f"refused = ''\n{refused}")
    assert all("ReduceOp.BAND" in said for said in ranks.pull("refused"))
    run(ranks, "x = torch.tensor([10.0 * rank + 1]); dist.all_reduce(x); y = x.item()")
    assert ranks.pull("y") == [64.0] * 4


def test_a_cell_after_a_recorded_one_calls_the_groups_as_before(ranks):
    calls = "x = torch.ones(2); dist.all_reduce(x); dist.send(x, rank ^ 1) if rank % 2 else dist.recv(x, rank ^ 1)"
    raise_failures(ranks.execute(calls, record=True))
    run(ranks, f"{calls}; y = x[0].item()")
    assert ranks.pull("y") == [4.0] * 4


def test_a_deadlock_is_proved_after_messages_from_any_source(ranks):
    run(
        ranks,
        "x = torch.tensor([float(rank)])\nif rank == 0:\n    for _ in range(3):\n        dist.recv(x)\n"
        "else:\n    dist.send(x, 0)",
    )
    with pytest.raises(DeadlockError, match="ranks 0-3 wait in send to the next rank"):
        run(ranks, "dist.send(x, (rank + 1) % world_size)")


def test_receives_from_any_source_are_served_in_their_order_and_the_one_left_over_is_stuck(ranks):
    two = "x, y = torch.zeros(1), torch.zeros(1)\nif rank == 0:\n    one, other = dist.irecv(x), dist.irecv(y)\n"
    with pytest.raises(DeadlockError, match="rank 0 waits in recv from any rank .line 3, "):
        run(ranks, f"{two}    other.wait()\nelif rank == 1: dist.send(x + 5, 0)")
    assert [x.item() for x in ranks.pull("x")] == [5.0, 0.0, 0.0, 0.0]
    run(ranks, f"{two}    other.wait(); one.wait()\nelif rank < 3: dist.send(x + 5, 0)")
    assert [y.item() for y in ranks.pull("y")] == [5.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("call", ["dist.send(x, 4)", "dist.recv(x, 9)", "dist.broadcast(x, 7)"])
def test_a_rank_that_does_not_exist_is_named(ranks, call):
    with pytest.raises(RankError, match=r"ranks 0-3: ValueError: there is no rank \d: the ranks are 0 to 3"):
        run(ranks, f"x = torch.ones(1)\n{call}")


def test_a_traceback_ends_at_the_students_last_line(ranks):
    answers = ranks.execute("def pass_on(x):\n    return dist.send(x, 4)\npass_on(torch.ones(1))")
    for answer in answers:
        text = "\n".join(answer.traceback)
        assert "pass_on" in text and "site-packages" not in text and "launch" not in text
