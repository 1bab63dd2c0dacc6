"""The job of 64 ranks that hung: what its logs say leads to one rank, whatever the fault was."""

import pytest

from course.night import FAULTS, RANKS, Night, group_of

SEEDS = range(12)


def suspects(night):
    """The ranks that a reader of all logs would name: those in no call, else those that are alone with their shape."""
    last = {rank: night.of(rank)[-1] for rank in range(RANKS)}
    idle = [rank for rank, call in last.items() if call.over]
    if idle:
        return idle
    found = []
    for rank, call in last.items():
        beside = [last[other] for other in group_of(call.group, rank) if other != rank]
        shapes = {other.shape for other in beside if (other.group, other.number) == (call.group, call.number)}
        if len(shapes) == 1 and call.shape not in shapes:
            found.append(rank)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_logs_lead_to_one_rank(seed, capsys):
    night = Night(seed)
    (bad,) = suspects(night)
    night.accuse(bad)
    assert capsys.readouterr().out.startswith(f"Yes, rank {bad}: ")
    night.accuse((bad + 1) % RANKS)
    assert capsys.readouterr().out.startswith(f"Not rank {(bad + 1) % RANKS}: it waits in call")


def test_every_fault_is_among_the_seeds_and_all_other_ranks_wait(capsys):
    found = set()
    for seed in SEEDS:
        night = Night(seed)
        found.add(night._fault)
        assert all(not night.of(rank)[-1].over for rank in range(RANKS) if rank != night._bad)
    assert found == set(FAULTS)
