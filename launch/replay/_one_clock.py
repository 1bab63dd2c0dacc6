"""Clocks of several machines, adjusted so that nothing comes before its cause.

The messages between the notebook and a machine give the offset of its clock, within an error
(launch/machine/listener.py). A message between two machines may take less time than that error, so by those offsets it
could arrive before it was sent. If one does, the offsets are moved within their errors until none does (A. Duda et al.,
"Estimating Global Time in Distributed Systems", 1987). If b on machine B came after a on machine A, then

    offset of B - offset of A <= time of b - time of a, each by its own machine's clock

Offsets that fulfil all of these are found as shortest paths, with the notebook's clock at 0.

Left out: making the errors smaller, since they also cover drift, of which single messages tell nothing. If no offsets
fulfil all, they stay as they were measured.
"""

from itertools import permutations

from collectives.timed import Clock
from launch.replay._calls import Call, kind_of, match

NEEDS_ALL = ("all_reduce", "all_gather", "reduce_scatter", "barrier")  # ends on no rank before all have begun
NO_LIMIT = 1 << 62  # nanoseconds


def on_one_clock(runs: list[dict], clocks: tuple[Clock, ...]) -> tuple[list[dict], tuple[Clock, ...]]:
    """The captures with all times by the notebook's clock, and the clocks with the offsets that were used."""
    clocks = agreed(clocks, differences(runs, clocks)) if len(clocks) > 1 else clocks
    ahead = {rank: _ns(clock.offset) for clock in clocks for rank in clock.ranks}
    return [_moved(run, ahead.get(run["rank"], 0)) for run in runs], clocks


def differences(runs: list[dict], clocks: tuple[Clock, ...]) -> dict[tuple[int, int], int]:
    """(index of a machine's clock, index of another's) -> the most that the second can be ahead of the first, in ns."""
    machine = {rank: index for index, clock in enumerate(clocks) for rank in clock.ranks}
    messages, collectives, _ = match(runs)
    found: dict[tuple[int, int], int] = {}
    seen: list[tuple[tuple[Call, ...], tuple[Call, ...]]] = [
        ((message.send,), (message.receive,)) for message in messages
    ]
    seen += [(each.calls, each.calls) for each in collectives if kind_of(each) in NEEDS_ALL]
    for causes, effects in seen:
        begun: dict[int, int] = {}
        for call in causes:
            if (here := machine.get(call.rank)) is not None:
                begun[here] = max(begun.get(here, 0), call.event["times"][0])
        for call in effects:
            over = min((time for time in call.event["times"][3:] if time is not None), default=None)
            if over is not None and (there := machine.get(call.rank)) is not None:
                for here in begun.keys() - {there}:
                    most = over - begun[here]
                    found[here, there] = min(found.get((here, there), most), most)
    return found


def agreed(clocks: tuple[Clock, ...], most: dict[tuple[int, int], int]) -> tuple[Clock, ...]:
    """The clocks, with offsets by which the differences hold, if the errors allow for such."""
    offsets = [_ns(clock.offset) for clock in clocks]
    if all(offsets[there] - offsets[here] <= ns for (here, there), ns in most.items()):
        return clocks
    notebook, all_of = len(clocks), range(len(clocks) + 1)
    paths = dict.fromkeys(permutations(all_of, 2), NO_LIMIT) | most
    for index, clock in enumerate(clocks):
        error = int(1e9 * clock.error)
        paths[notebook, index], paths[index, notebook] = offsets[index] + error, error - offsets[index]
    for via, here, there in permutations(all_of, 3):  # Floyd and Warshall's; `via` changes last
        paths[here, there] = min(paths[here, there], paths[here, via] + paths[via, there])
    if any(paths[here, there] + paths[there, here] < 0 for here, there in paths):
        return clocks
    # The highest offsets that are possible fit together, and the lowest; so do those halfway.
    halfway = [(paths[notebook, index] - paths[index, notebook]) // 2 for index in range(notebook)]
    return tuple(
        Clock(clock.ranks, new / 1e9, clock.error + abs(new - old) / 1e9)
        for clock, old, new in zip(clocks, offsets, halfway, strict=True)
    )


def _moved(run: dict, ahead: int) -> dict:
    if not ahead:
        return run
    times = [[None if time is None else time - ahead for time in event["times"]] for event in run["events"]]
    began = run["began"] - ahead
    return run | {
        "began": began,
        "events": [event | {"times": own} for event, own in zip(run["events"], times, strict=True)],
    }


def _ns(seconds: float) -> int:
    return round(1e9 * seconds)
