"""What went wrong between the ranks, in words a student understands, the same on every run.

    deadlock(diagnosis)    "ranks 0, 1, 3 wait in all_reduce #2 (line 4, float32[4]); rank 2 left the cell after
                           1 collective"
    mismatch(...)          "ranks 0, 1, 3 call all_reduce #2 (line 4); rank 2 calls broadcast #2 (line 6)"

One clause per group of ranks of which the same can be said; first who waits, then who is not coming. Numbers of
collectives count within the cell. No times, process ids or addresses: nbval compares these sentences.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable

from launch.doctor import Diagnosis, Edge
from launch.doctor.snapshot import View
from launch.ledger import Fingerprint, OpenCall

MOST_CLAUSES = 8
LONGEST = 120  # characters of a rank's own message
RING = 3  # so many ranks that wait for their neighbours are told in one clause


def deadlock(diagnosis: Diagnosis) -> str:
    """One clause per group of stuck ranks, then one per group of ranks that they wait for in vain."""
    views = {view.rank: view for view in diagnosis.views}
    steps = collections.Counter(_step(views[rank], len(views)) for rank in diagnosis.stuck)
    waiting = {rank: _waits(views[rank], len(views), steps) for rank in diagnosis.stuck}
    culprits = sorted({edge.other for edge in diagnosis.edges} - waiting.keys())
    ended = {rank: _ended(views[rank], [e for e in diagnosis.edges if e.other == rank]) for rank in culprits}
    return _join([*_grouped(waiting), *_grouped(ended)])


def _step(view: View, size: int) -> int:
    """How far the other side of a message is away, around the ring of all ranks; 0 if it is not about a message."""
    call = view.waits[0] if view.waits else None
    return (call.peer - view.rank) % size if call and call.kind != "collective" and call.peer >= 0 else 0


def _waits(view: View, size: int, steps: collections.Counter) -> str:
    """What follows 'rank 0 waits' and 'ranks 0, 1 wait'; `steps`: how many ranks wait for one that is so far away."""
    if view.state == "meeting":
        return f" in {view.place} ({_line(view.line)}) for the other ranks"
    call = view.waits[0]
    if view.place:
        return f" in {view.place} ({_line(view.line)}) for {_collective(view, call)}"
    if call.kind == "collective":
        return f" in {_collective(view, call)} ({_where(call)})"
    if call.peer < 0:
        return f" in recv from any rank ({_where(call)})"
    towards = "to" if call.kind == "send" else "from"
    step, other = _step(view, size), f"rank {call.peer}"
    if steps[step] >= RING:
        other = {1: "the next rank", size - 1: "the previous rank"}.get(step, other)
    return f" in {call.kind} {towards} {other} ({_where(call)})"


def _collective(view: View, call: OpenCall) -> str:
    """'all_reduce #2', 'all_reduce #1 of ranks 0,2'."""
    tally = view.tally(call.key)
    number = call.seq - (tally.before if tally is not None and tally.cell == view.cell else 0)
    group = f" of {tally.label}" if tally is not None and tally.label != "world" else ""
    return f"{call.op} #{number}{group}"


def _where(call: OpenCall) -> str:
    """'line 4, float32[4]', 'line 12 of train.py, float32[4]'."""
    what, _, file = call.detail.partition(" in ")
    line = _line(call.line) + (f" of {file}" if file else "")
    return f"{line}, {what}" if what else line


def _line(line: int) -> str:
    return f"line {line}" if line else "line unknown"


def _ended(view: View, edges: list[Edge]) -> str:
    """What a rank did last, and how far it had come: 'left the cell after 1 collective'."""
    if view.state == "cut" or "raised" in view.ending or "not run" in view.ending:
        return f" {view.ending}"
    keys = {edge.call.key: edge for edge in edges if edge.call is not None and edge.call.kind == "collective"}
    said = []
    for key in keys:
        tally = view.tally(key)
        begun = tally.begun - tally.before if tally is not None and tally.cell == view.cell else 0
        group = f" of {tally.label}" if tally is not None and tally.label != "world" else ""
        said.append(f"after {begun} collective{'' if begun == 1 else 's'}{group}")
    kinds = {edge.call.kind for edge in edges if edge.call is not None} - {"collective"}
    said += [f"without the matching {'recv' if kind == 'send' else 'send'}" for kind in sorted(kinds)]
    return f" {view.ending} {', '.join(said[:2])}".rstrip()


def _grouped(said: dict[int, str]) -> list[str]:
    """Clauses; ranks of which the same is said share one."""
    groups: dict[str, list[int]] = {}
    for rank, text in said.items():
        groups.setdefault(text, []).append(rank)
    return [_clause(ranks, text) for text, ranks in groups.items()]


def _clause(ranks: list[int], text: str) -> str:
    if text.startswith(" in "):
        return f"{named(ranks)} wait{'s' if len(ranks) == 1 else ''}{text}"
    if text.startswith(" does not"):
        return f"{named(ranks)} {'does' if len(ranks) == 1 else 'do'}{text.removeprefix(' does')}"
    return named(ranks) + text


def _join(clauses: list[str]) -> str:
    more = len(clauses) - MOST_CLAUSES
    return "; ".join(clauses[:MOST_CLAUSES]) + (f"; and {more} more" if more > 0 else "")


def named(ranks: Iterable[int]) -> str:
    """'rank 2', 'ranks 0, 1, 3', 'ranks 0-3, 7': three or more in a row are shortened."""
    ranks, parts = sorted(ranks), []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in parts]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}"


def mismatch(marks: dict[int, Fingerprint], before: dict[int, int]) -> str:
    """Calls that do not fit together, per group of ranks; `before` is what each rank had counted when the cell began.

    Only what differs is told, besides the op: "ranks 0, 1 call all_reduce #2 with SUM (line 4); rank 2 calls ... MAX".
    """
    differ = [
        field for field in ("src", "reduce", "count", "dtype") if len({getattr(m, field) for m in marks.values()}) > 1
    ]
    if len({mark.op for mark in marks.values()}) > 1:
        differ = []  # different ops differ in everything
    said = {
        rank: f"{mark.op} #{mark.seq - before.get(rank, 0)}{_told(mark, differ)} ({_line_of(mark)})"
        for rank, mark in sorted(marks.items())
    }
    groups: dict[str, list[int]] = {}
    for rank, text in said.items():
        groups.setdefault(text, []).append(rank)
    return _join([f"{named(ranks)} call{'s' if len(ranks) == 1 else ''} {text}" for text, ranks in groups.items()])


def _told(mark: Fingerprint, fields: list[str]) -> str:
    per_rank = " per rank" if mark.op.startswith("reduce_scatter") else ""
    words = {
        "src": f"root {mark.src}",
        "reduce": mark.reduce,
        "count": f"{mark.count} elements{per_rank}",
        "dtype": mark.dtype,
    }
    return " with " + " and ".join(words[field] for field in fields) if fields else ""


def message_mismatch(sent: Fingerprint, received: Fingerprint) -> str:
    """'rank 0 sends 32 bytes of float32 to rank 1 (line 3); rank 1 receives 16 bytes of float32 (line 5)'."""
    return (
        f"rank {sent.src} sends {sent.count} bytes of {sent.dtype} to rank {sent.dst} ({_line_of(sent)}); "
        f"rank {sent.dst} receives {received.count} bytes of {received.dtype} ({_line_of(received)})"
    )


def _line_of(mark: Fingerprint) -> str:
    return _line(mark.line) + (f" of {mark.file}" if mark.file else "")


def raised(ename: str, evalue: str) -> str:
    """How an exception ended a rank's cell, in one short line without addresses."""
    if ename == "SystemExit":
        return "called sys.exit"
    first = re.sub(r" at 0x[0-9a-f]+", "", evalue.partition("\n")[0])
    return f"raised {ename}" + (f": {first if len(first) <= LONGEST else first[:LONGEST] + ' ...'}" if first else "")


def swapped(one: tuple[int, int, int], other: tuple[int, int, int]) -> str:
    """A warning about (rank, how-manieth collective, line) of two ranks that make equal calls in another order."""
    (rank, number, line), (rank2, _, line2) = one, other
    return (
        f"warning: as collective #{number} rank {rank} makes the call of line {line}, rank {rank2} that of"
        f" line {line2}; the calls look alike and their data were mixed: make them in the same order on every rank"
    )


def in_short(call: OpenCall | None) -> str:
    """What stands on an arrow of the picture: 'all_reduce, line 4'."""
    return f"{call.op}, line {call.line}" if call is not None else "store"
