"""Shows a recorded built-in as if the library had used one of the textbook's algorithms.

Each call of the collective is replaced by the steps of that algorithm's schedule over the ranks of its group.

Left out: which transfers those are (`collectives.as_if`).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from collectives import Schedule
from collectives.as_if import HELD, ROOTED, Region, hops
from collectives.catalogue import build
from collectives.errors import ScheduleError
from launch.replay._calls import Collective, kind_of, parts_of
from launch.replay._layout import Label, Shown
from launch.replay._moves import MADE, Move, given_to, left_by, unseen
from launch.replay._numbers import SIZES
from launch.replay._places import Places
from launch.replay._replay import Replay
from launch.replay.provenance import Kind


def shown_as(moves: list[Move], replay: Replay, places: Places, algorithms: dict[str, str]) -> Shown:
    """The run with each collective in `algorithms` (name -> algorithm) shown as that algorithm.

    ScheduleError for a name that does not exist, an algorithm that does not take that many ranks, a collective that
    was not recorded, and calls that cannot be shown like this.
    """
    if not algorithms:
        return Shown(moves, replay.messages, replay.collectives, {})
    for collective in algorithms:
        if collective == "barrier":
            raise ScheduleError("a barrier moves no data, so as_if has nothing to tell of it; leave it out")
        if collective not in HELD:
            raise ScheduleError(f"as_if knows no collective {collective!r}; there are {', '.join(HELD)}")
        if all(kind_of(item) != collective for item in replay.collectives):
            raise ScheduleError(f"no built-in {collective} was recorded, so as_if has none to tell")
    chosen = [item for item in replay.collectives if kind_of(item) in algorithms and len(item.ranks) > 1]
    schedules = {id(item.calls): _schedule(item, algorithms[kind_of(item)]) for item in chosen}
    # Each call takes as many steps as its schedule; what comes after it moves on.
    width = [1] * (1 + max(item.step for item in replay.matched))
    for item in chosen:
        width[item.step] = max(width[item.step], len(schedules[id(item.calls)].steps))
    before = [0, *accumulate(width)]

    def at(step: int) -> int:
        return before[min(max(step, 0), len(width))] + min(step, 0)  # -1: a rank's own copy before all messages

    left = {item.step for item in chosen if kind_of(item) == "reduce"}  # another algorithm leaves something else
    there = [move for move in moves if move.step not in left or move.how != MADE[Kind.LIBRARY]]
    kept = [move._replace(step=at(move.step)) for move in there if id(move.calls) not in schedules]
    labels: dict[int, list[Label]] = {}
    for item in chosen:
        schedule, first = schedules[id(item.calls)], at(item.step)
        kept += _moves(replay, places, item, schedule, first)
        for number, step in enumerate(schedule.steps):
            words = f"{kind_of(item)} as if {algorithms[kind_of(item)]}"
            labels.setdefault(first + number, []).append(Label(words, step.phase, step.in_network, item.calls))
    kept.sort(key=lambda move: (move.step, move.src == move.dst))
    messages = [replace(message, step=at(message.step)) for message in replay.messages]
    others = [replace(item, step=at(item.step)) for item in replay.collectives if id(item.calls) not in schedules]
    return Shown(kept, messages, others, labels)


def _schedule(item: Collective, algorithm: str) -> Schedule:
    if {call.rank for call in item.calls} != set(item.ranks):
        raise ScheduleError(f"{kind_of(item)} was not recorded on all its ranks, so it cannot be told as if")
    rooted = {"root": item.ranks.index(item.calls[0].event["peer"])} if kind_of(item) in ROOTED else {}
    return build(kind_of(item), algorithm, len(item.ranks), **rooted)


def _moves(replay: Replay, places: Places, item: Collective, schedule: Schedule, first: int) -> Iterator[Move]:
    """The moves of the schedule, from step `first` on, with the copies of the input into its buffers."""
    op, dtype, how = (item.calls[0].event[key] for key in ("op", "dtype", "reduce"))
    calls = {call.rank: call for call in item.calls}

    def parts(rank: int, side: str, share):
        return parts_of(calls[item.ranks[rank]], side, share, len(item.ranks), places.tensor)

    def scratch(rank: int, buffer: str, nbytes: int) -> str:
        return places.variables[item.ranks[rank]].imagine(f"{buffer} of {op}", nbytes, dtype)

    def held(rank: int, region: Region):
        return given_to(replay, places, item, calls[rank], region)

    for hop in hops(kind_of(item), schedule, SIZES.get(dtype, 1), parts, scratch):
        src, dst, source, target = item.ranks[hop.src], item.ranks[hop.dst], hop.source, hop.target
        sums, own = hop.op == "reduce", src == dst
        carried, origin = held(src, source)
        spot = left_by(replay, places, calls[dst], target) if hop.final else unseen(dst, target)
        move = Move(first + hop.step, src, dst, source, target, spot, carried, origin)
        if not own:
            move = move._replace(calls=item.calls, nbytes=source.hi - source.lo)
        yield move.reducing(how.lower() or "sum", held(dst, target)[0]) if sums else move
