"""What follows a cell in which a rank failed, was freed or died: all ranks meet again in new process groups.

The groups are new under the same ProcessGroup objects, so DDP modules and meshes that hold them work on. A dead rank is
started again under its number, with no variables; the others keep theirs. After a cell that went well, `renumber`.

Left out: what a rank does to renew its groups (launch/rank/_regroup.py); ranks that cannot be renewed, which the
Supervisor starts again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from launch.kernel.hub import all_or_none
from launch.shared import flight_recorder
from launch.shared.errors import LaunchError, name_ranks

if TYPE_CHECKING:
    from launch.kernel.supervisor import Supervisor

# Of all ranks. Two belong to each group that was ever renewed, and torch ends none: a cell that makes groups and fails
# leaves more each time. Linux allows 32,768 for all users by default.
MOST_THREADS = 16_000
MEETING = 120  # seconds in which the ranks must have met again; one that died meanwhile never comes


async def renew(ranks: Supervisor) -> None:
    """Replaces the dead ranks and renews the process groups of all. LaunchError or RankError if that is impossible."""
    try:
        async with asyncio.timeout(MEETING):
            await _renew(ranks)
    except TimeoutError:
        raise LaunchError(f"they did not form a new process group within {MEETING} seconds") from None


async def _renew(ranks: Supervisor) -> None:
    dead = await ranks.dead()
    living = [worker for worker in ranks.workers if worker not in dead]
    ranks.generation += 1
    if not living:
        raise LaunchError("no rank has survived")
    known = [value for value, _ in await ranks.request_all("control", "groups", {}, workers=living)]
    if full := [worker for worker, value in zip(living, known, strict=True) if not value["room"]]:
        ranks.act("kill", full)
        await asyncio.gather(*(worker.ended for worker in full))
        who = name_ranks(worker.rank for worker in full)
        ranks.notices.append(f"{who} had no memory left to go on and had to be restarted, the variables there are lost")
        return await _renew(ranks)
    count = max(value["count"] for value in known)
    groups = {m.rank: value["groups"] for m, value in zip(living, known, strict=True)}
    worlds = {value["world"] for value in known}  # "" of a rank that has left it
    if sum(value["threads"] for value in known) > MOST_THREADS:
        raise LaunchError("their process groups have been renewed too often: each time costs threads")
    if dead and not ranks.bare and (len(worlds) > 1 or "" in worlds):
        raise LaunchError("a rank has died, and others had destroyed the process group")
    names = groups_in_common(groups, {worker.rank for worker in dead}, worlds)
    begin_epoch(ranks)
    # A group that ranks make themselves after this must not meet what is left of the last one in its store.
    ranks.meeting |= (meeting := ranks.site.meeting_place() if ranks.bare else {})
    what, more = "regroup", {"generation": ranks.generation, "names": names, "group_count": count}
    if (ranks.bare and dead) or len(worlds) > 1:
        what, more = "leave", {}
        left = [m.rank for m, value in zip(living, known, strict=True) if not value["world"]]
        if worlds != {""}:
            how = f"{name_ranks(left)} had destroyed" if left else "a member has died of"
            again = "make it again with dist.init_process_group('gloo')"
            ranks.notices.append(f"{how} the process group, so that it is gone on every rank: {again}")
    for worker in dead:
        worker.close()
        ranks.board.clear(worker.rank)
    # One request per rank: the first refusal ends it, since the others wait to meet that rank.
    requests = [ranks.request_all("shell", what, more | {"environ": meeting}, workers=[m]) for m in living]
    coming = [ranks.bring_up([worker.rank for worker in dead], ranks.size, count)] if dead else []
    await all_or_none([*requests, *coming])
    ranks.came_back |= {worker.rank: f"died ({worker.ended.result()})" for worker in dead}


async def renumber(ranks: Supervisor) -> None:
    """Restarts the count of messages after a receive from any source, whose sender is not known until it arrives."""
    board = ranks.board
    unnamed = any(
        tally.peer < 0 for rank in range(ranks.size) for tally in flight_recorder.message_tallies(board, rank)
    )
    if unnamed and not any(flight_recorder.open_calls(board, rank) for rank in range(ranks.size)):
        begin_epoch(ranks)
        await ranks.request_all("shell", "renumber", {})


def begin_epoch(ranks: Supervisor) -> None:
    for worker in ranks.workers:
        worker.groups = 0
    flight_recorder.begin_epoch(ranks.board.memory)
    ranks.site.publish(0, ranks.board.memory[0:8])


def groups_in_common(groups: dict[int, dict[str, list[int]]], dead: set[int], worlds: set[str]) -> list[str]:
    """Names of the groups that can be renewed: all their members know them and are alive.

    A rank that replaces a dead one makes the world's group again (one of `worlds`) and no other.
    """
    names = {name: ranks for known in groups.values() for name, ranks in known.items()}
    common = [
        name
        for name, ranks in names.items()
        if (name in worlds or not dead & set(ranks))
        and all(groups[rank].get(name) == ranks for rank in ranks if rank not in dead)
    ]
    return sorted(common, key=lambda name: (len(name), name))
