"""A Recording's measured times as a file for Perfetto (ui.perfetto.dev) and chrome://tracing.

The Chrome trace event format: per rank one process with two kinds of tracks, the calls under way and, below them, when
they held the rank; arrows ("s", "f") from a send to its receive. Times are microseconds since the recording's first
call. What the programs that read it ask for, beyond the format's own text:

* Slices of one track may only nest, so calls that overlap on one rank stand on further tracks.
* Perfetto cuts times to whole nanoseconds, so a track's next slice begins later than its last one ended, not at once.
* Perfetto finds the thread that a name belongs to by its tid alone, and gives every pid a thread with that number: so
  no two tracks share a tid, whatever their rank, and none is a rank's number.
* An arrow's ends belong to the slices that are under way on their track at that time and stand before them in the file.

Left out: what the ranks computed; torch.profiler knows that, and its trace can be opened beside this one.
"""

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from collectives.timed import Clock
from collectives.units import duration
from launch.replay._events import Event


def save(events: list[Event], path, clocks: Sequence[Clock] = ()) -> None:
    """Writes the trace of `events` to `path`; ranks on several machines bear in their names how sure their clock is."""
    trace = {"traceEvents": traced(events, clocks), "displayTimeUnit": "ms"}
    Path(path).write_text(json.dumps(trace), encoding="utf-8")


def traced(events: list[Event], clocks: Sequence[Clock] = ()) -> list[dict]:
    """The trace's entries: names of processes and tracks, complete events ("X") rank by rank, then the arrows."""
    errors = {rank: clock.error for clock in clocks for rank in clock.ranks} if len(clocks) > 1 else {}
    ranks = sorted({event.rank for event in events})
    tids = count(1 + max(ranks, default=0))
    names, slices, messages = [], [], {}
    for rank in ranks:
        mine = sorted((event for event in events if event.rank == rank), key=lambda event: event.start)
        held, away = _Tracks(rank, tids), _Tracks(rank, tids)
        for start, until, name, op in sorted(span for event in mine for span in _held(event)):
            held.put(name, op, start, until)
        for event in mine:
            entry = away.put(event.op, event.op, event.start, _until(event))
            entry["args"] = _said(event)
            if event.match and event.op in ("send", "recv"):
                messages.setdefault(event.match, {})[event.op] = entry
        clock = f" (its clock ± {duration(errors[rank])})" if rank in errors else ""
        names.append(_named("process_name", rank, rank, name=f"rank {rank}{clock}"))
        names.append(_named("process_sort_index", rank, rank, sort_index=rank))
        names += [*held.names("held by a call"), *away.names("under way")]
        slices += held.slices + away.slices
    return names + slices + [end for match, sides in messages.items() for end in _arrow(match, **sides)]


class _Tracks:
    """Tracks of one kind of one rank, as many as it takes for the slices of each to stand one after the other."""

    def __init__(self, rank: int, tids):
        self.rank, self.more = rank, tids
        self.tids: list[int] = []
        self.ends: list[int] = []  # of the last slice on each, in nanoseconds
        self.slices: list[dict] = []

    def put(self, name: str, op: str, start: float, until: float) -> dict:
        """A slice in seconds, on the first track that is free; slices come in the order of their begin."""
        begin = round(1e9 * start)
        end = max(begin, round(1e9 * until))
        track = next((i for i, last in enumerate(self.ends) if last < begin), len(self.ends))
        if track == len(self.ends):
            self.tids.append(next(self.more))
        self.ends[track : track + 1] = [end]
        place = {"pid": self.rank, "tid": self.tids[track], "ts": begin / 1e3, "dur": (end - begin) / 1e3}
        self.slices.append({"name": name, "cat": op, "ph": "X", **place})
        return self.slices[-1]

    def names(self, kind: str) -> list[dict]:
        """What the tracks are called, and that they stand in this order."""
        found = []
        for number, tid in enumerate(self.tids):
            found.append(_named("thread_name", self.rank, tid, name=kind + (f" {number + 1}" if number else "")))
            found.append(_named("thread_sort_index", self.rank, tid, sort_index=tid))
        return found


def _held(event: Event):
    """When the rank could do nothing else: (begin, end, name, op)."""
    if event.issued is not None:
        yield event.start, event.issued, f"in {event.op}", event.op
    if event.wait is not None and event.end is not None:
        yield event.wait, event.end, f"waits for {event.op}", event.op


def _until(event: Event) -> float:
    return next((time for time in (event.finished, event.end, event.issued) if time is not None), event.start)


def _said(event: Event) -> dict:
    said = {"bytes": event.bytes, "line": event.line, "code": event.code, "group": list(event.group)}
    if event.peer is not None:
        said["peer"] = event.peer
    if event.match is not None:
        said["call"] = ", ".join(filter(None, (event.match.label, event.match.part)))
    return said


def _arrow(match, send: dict, recv: dict) -> list[dict]:
    """From the send to the receive, at the time when both sides were there; none if the receive's end was not seen."""
    met = max(send["ts"], recv["ts"])
    if met >= recv["ts"] + recv["dur"]:
        return []
    arrow = {"name": "message", "cat": "message", "id": 1 + match.number}
    ends = [("s", send, send["ts"], {}), ("f", recv, met, {"bp": "e"})]
    return [{**arrow, "ph": ph, "pid": at["pid"], "tid": at["tid"], "ts": ts, **more} for ph, at, ts, more in ends]


def _named(what: str, rank: int, track: int, **args) -> dict:
    return {"name": what, "ph": "M", "pid": rank, "tid": track, "args": args}
