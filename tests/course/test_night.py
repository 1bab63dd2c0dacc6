"""The job of 64 ranks that hung: what its logs say leads to one rank, whatever the fault was."""

import pytest

from course.night import FAULTS, RANKS, Night

SEEDS = range(12)


def suspects(logs):
    """The ranks that a reader of all logs would name: those in no call, else those that are alone with their shape."""
    last = {rank: calls[-1] for rank, calls in logs.items()}
    idle = [rank for rank, call in last.items() if call.over]
    if idle:
        return idle
    found = []
    for rank, call in last.items():
        beside = [last[other] for other in call.group if other != rank]
        shapes = {other.shape for other in beside if (other.group, other.number) == (call.group, call.number)}
        if len(shapes) == 1 and call.shape not in shapes:
            found.append(rank)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_logs_lead_to_one_rank(seed):
    night = Night(seed)
    assert suspects(night.logs) == [night.bad]
    assert night.why_not(night.bad) == ""


def test_every_fault_is_among_the_seeds_and_all_other_ranks_wait():
    found = set()
    for seed in SEEDS[:9]:  # those of the check
        night = Night(seed)
        found.add(night.fault)
        assert all(not calls[-1].over for rank, calls in night.logs.items() if rank != night.bad)
    assert found == set(FAULTS)


def test_an_accused_rank_is_told_where_it_waits():
    night = Night(0)
    rank = (night.bad + 1) % RANKS
    call = night.logs[rank][-1]
    assert f"not rank {rank}: that one waits in call {call.number} of ranks {call.group[0]}" in night.why_not(rank)
    assert night.why_not(RANKS) == "there is no rank 64: they are 0 to 63"
