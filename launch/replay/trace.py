"""A Recording's measured times as a file for Perfetto (ui.perfetto.dev) and chrome://tracing.

The Chrome trace event format: per rank one process with two tracks, the calls under way and, below them, when they held
the rank. Times are microseconds since the recording's first call. Calls that overlap on one rank are given further
tracks, since a track's complete events may only nest.

Left out: what the ranks computed; torch.profiler knows that, and its trace can be opened beside this one.
"""

import json
from pathlib import Path

from launch.replay.recorded import Event

HELD = 0  # the track for time in which the rank could do nothing else; calls under way are on tracks from 1


def save(events: list[Event], path) -> None:
    """Writes the trace of `events` to `path`."""
    Path(path).write_text(json.dumps({"traceEvents": traced(events), "displayTimeUnit": "ms"}), encoding="utf-8")


def traced(events: list[Event]) -> list[dict]:
    """The trace's entries: names of processes and tracks, then complete events ("X") in order of rank and begin."""
    entries = []
    for rank in sorted({event.rank for event in events}):
        mine = sorted((event for event in events if event.rank == rank), key=lambda event: event.start)
        tracks: list[float] = []  # end of the last call on each
        spans = [span for event in mine for span in _spans(event, tracks)]
        entries += [
            _named("process_name", rank, HELD, f"rank {rank}"),
            _named("thread_name", rank, HELD, "held by a call"),
            *(_named("thread_name", rank, 1 + i, f"under way {1 + i}") for i in range(len(tracks))),
            *spans,
        ]
    return entries


def _spans(event: Event, tracks: list[float]) -> list[dict]:
    until = next((time for time in (event.finished, event.end, event.issued) if time is not None), event.start)
    free = next((i for i, end in enumerate(tracks) if end <= event.start), len(tracks))
    tracks[free : free + 1] = [until]
    said = {"bytes": event.bytes, "line": event.line, "code": event.code, "group": list(event.group)}
    if event.peer is not None:
        said["peer"] = event.peer
    found = [_complete(event, event.op, 1 + free, event.start, until) | {"args": said}]
    if event.issued is not None:
        found.append(_complete(event, f"in {event.op}", HELD, event.start, event.issued))
    if event.wait is not None and event.end is not None:
        found.append(_complete(event, f"waits for {event.op}", HELD, event.wait, event.end))
    return found


def _complete(event: Event, name: str, track: int, start: float, until: float) -> dict:
    times = {"ts": round(1e6 * start, 3), "dur": round(1e6 * max(0.0, until - start), 3)}
    return {"name": name, "cat": event.op, "ph": "X", "pid": event.rank, "tid": track, **times}


def _named(what: str, rank: int, track: int, name: str) -> dict:
    return {"name": what, "ph": "M", "pid": rank, "tid": track, "args": {"name": name}}
