"""The calls of a recording as simple objects, with their lines, times and values.

Left out: which calls belong together (`replay._calls`).
"""

from collections import Counter
from typing import Any, NamedTuple

from collectives.timed import TIMES, Match
from launch.replay._calls import Call, Message
from launch.replay._order import Order


class Event(NamedTuple):
    """One call of one rank. Times are seconds since the first call of the recording; None where no wait was seen.

    bytes         what the call sends, or the larger of its two sides for a collective
    before/after  what the tensors it writes (for a send: reads) held when it began and when it was waited for: a list
                  of numbers each, all of a tensor in up to 16 KiB of memory, else its first 32; None if not looked at.
                  Before is whatever was there: for torch.empty that differs from run to run
    match         the call of all ranks together that this is one side of: its number, what it is called and how many
                  ranks it takes; None for a message whose other side was not recorded
    """

    rank: int
    op: str
    group: tuple[int, ...]
    peer: int | None
    bytes: int
    dtype: str
    shape: list
    line: int
    code: str
    file: str
    match: Match | None
    start: float
    issued: float | None
    wait: float | None
    end: float | None
    finished: float | None
    before: list
    after: list


def events_of(runs: list[dict], order: Order) -> list[Event]:
    """All events of all ranks."""
    zero = min((event["times"][0] for run in runs for event in run["events"]), default=0)
    matches = _matches(runs, order)
    calls = [(run, Call(run["rank"], number, event)) for run in runs for number, event in enumerate(run["events"])]
    return [_event(run, call, order, zero, matches.get(call[:2])) for run, call in calls]


def _matches(runs: list[dict], order: Order) -> dict[tuple[int, int], Match]:
    """(rank, number of the call) -> what it is one side of. Numbers count within the recording, from its first call."""
    labels = {key: group["label"] for run in runs for key, group in run["groups"].items()}
    found: dict[tuple[int, int], Match] = {}
    counted: Counter = Counter()
    for number, item in enumerate(order.matched):
        event = item.calls[0].event
        if isinstance(item, Message):
            what, where, sides = "message", f"from rank {item.src} to rank {item.dst}", 2
        else:
            what, where, sides = event["op"], f"of {labels[event['group']]}", len(item.ranks)
        counted[event["group"], where] += 1
        part = "" if event["bucket"] is None else f"bucket {event['bucket']}"
        match = Match(number, f"{what} #{counted[event['group'], where]} {where}", sides, part)
        found |= {(call.rank, call.number): match for call in item.calls}
    return found


def _event(run: dict, call: Call, order: Order, zero: int, match: Match | None) -> Event:
    event, value = call.event, order.ranks[call.rank].snapshots.value
    file, line, code = order.site(call)
    spans = [span for span in event["ins" if event["kind"] == "send" else "outs"] if span]
    dtype = event["dtype"]
    seen = ([value(span, snapshot, dtype) for span in spans] for snapshot in event["looks"])
    before, after = ([None if numbers is None else numbers.tolist() for numbers in each] for each in seen)
    seconds = [None if t is None else (t - zero) / 1e9 for t in event["times"]]
    times: dict[str, Any] = dict(zip(TIMES, seconds, strict=True))
    return Event(
        **{key: event[key] for key in ("op", "peer", "bytes", "dtype", "shape")},
        **times,
        rank=call.rank,
        group=tuple(run["groups"][event["group"]]["ranks"]),
        line=line,
        code=code,
        file=file,
        match=match,
        before=before,
        after=after,
    )


def text_of(value, count: int | None = None) -> str:
    """A chunk's numbers in few characters: "21", "20 21 22", "20 21 22 ...". It has `count` numbers, if that is
    more."""
    if value is None or not len(value):
        return ""
    shown = [f"{number:g}" if value.dtype.kind == "f" else str(number) for number in value[:4].tolist()]
    if len(value) > 1 and len(value) == (count or len(value)) and (value == value[0]).all():
        return shown[0]
    return " ".join(shown[:3] + (["..."] if len(value) > 3 else []))
