"""The registry of sentences about what went wrong between ranks, which are the same on every run.

    deadlock(diagnosis)    "ranks 0, 1, 3 wait in all_reduce #2 (line 4, float32[4]); rank 2 left the cell after
                           1 collective"
    mismatch(...)          "ranks 0, 1, 3 call all_reduce #2 (line 4); rank 2 calls broadcast #2 (line 6)"

One clause per group of ranks with the same text: first the waiting ranks, then those that do not come. If the two look
as if they should have met, the difference is added: another tag, another group of the same ranks, a call left by an
earlier cell. Collectives are numbered within the cell. No times, process ids or addresses: nbval compares these
sentences.

Left out: differences between messages from any source, which have no certain other side.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable
from typing import NamedTuple

from launch.doctor.proof import Diagnosis, Edge, Loss, alike
from launch.doctor.snapshot import Ending, How, State, View
from launch.shared.errors import name_ranks
from launch.shared.flight_recorder import (
    COMPARED,
    HELD,
    NEW_GROUPS,
    Fingerprint,
    MessageTally,
    OpenCall,
    Tally,
    Unfitting,
)

MOST_CLAUSES = 8
LONGEST = 120  # characters of a rank's own message
RING = 3  # so many ranks that wait for their neighbours share one clause


class Said(NamedTuple):
    """The text for one rank, and for several."""

    one: str
    many: str


def _of_any(text: str) -> Said:
    """The same text for one and for several: "left the cell"."""
    return Said(text, text)


def deadlock(diagnosis: Diagnosis) -> str:
    """One clause per group of stuck ranks, then one per group of ranks that they wait for."""
    views = {view.rank: view for view in diagnosis.views}
    losses = [edge.loss for edge in diagnosis.edges if edge.loss is not None]
    if losses:
        return lost(diagnosis.views, losses)
    failed = {
        rank: call.raised
        for rank in {edge.other for edge in diagnosis.edges}
        for call in views[rank].waits
        if call.after
    }
    apart = _distinctions(views, diagnosis.stuck)
    steps = collections.Counter(_step(views[rank], len(views)) for rank in diagnosis.stuck)
    waits = {rank: _waits(views[rank], len(views), steps, apart.get(rank, "")) for rank in diagnosis.stuck}
    waiting = {rank: text for rank, text in waits.items() if rank not in failed}
    culprits = sorted({edge.other for edge in diagnosis.edges} - waiting.keys())
    ended = {
        rank: _of_any(raised(*failed[rank]))
        if rank in failed
        else _ended(views[rank], [e for e in diagnosis.edges if e.other == rank])
        for rank in culprits
    }
    return _join([*_grouped(waiting), *_grouped(ended), *_remarks(views, diagnosis.stuck)])


def lost(views: tuple[View, ...], losses: list[Loss]) -> str:
    """'rank 0 did not wait for its isend (line 4), so its message to rank 1 was dropped: ...'"""
    by_rank, said = {view.rank: view for view in views}, {}
    for loss in alike(views, losses):
        where = loss.call.kind, _place(loss.call, by_rank[loss.rank])
        said.setdefault(where, {}).setdefault(loss.rank, set()).add(loss.call.peer)
    clauses = [
        f"{named(peers)} did not wait for {'its' if len(peers) == 1 else 'their'} i{kind} ({line}), so "
        f"{_messages(kind, peers)} dropped"
        for (kind, line), peers in said.items()
    ]
    return _join(clauses) + ": keep what it returns, and call wait() on it"


def _messages(kind: str, peers: dict[int, set[int]]) -> str:
    """'its message to rank 1 was'; 'messages were' if it is not known which."""
    others = {peer for of_one in peers.values() for peer in of_one}
    if len(peers) > 1 or len(others) > 1:
        return "messages were"
    (other,) = others
    return f"its message {'to' if kind == 'send' else 'from'} {f'rank {other}' if other >= 0 else 'any rank'} was"


def _step(view: View, size: int) -> int:
    """The distance to the other side of a message around the ring of all ranks; 0 if it waits for no message."""
    call = view.waits[0] if view.waits else None
    return (call.peer - view.rank) % size if call and call.kind != "collective" and call.peer >= 0 else 0


def _waits(view: View, size: int, steps: collections.Counter, apart: str) -> Said:
    """'waits in ...' and 'wait in ...'. `steps` counts ranks by that distance; `apart` tells the call from others."""
    where = _waits_in(view, size, steps, apart)
    return Said(f"waits in {where}", f"wait in {where}")


def _waits_in(view: View, size: int, steps: collections.Counter, apart: str) -> str:
    if view.state is State.MEETING:
        return f"{view.place} ({_line(view.line)}) for the other ranks"
    call = view.waits[0]
    if view.place:
        return f"{view.place} ({_line(view.line)}) for {_collective(view, call)}"
    if call.kind == "collective":
        return f"{_collective(view, call, apart)} ({_where(call, view)})"
    if call.peer < 0:
        return f"recv from any rank{apart} ({_where(call, view)})"
    towards = "to" if call.kind == "send" else "from"
    step, other = _step(view, size), f"rank {call.peer}"
    if steps[step] >= RING:
        other = {1: "the next rank", size - 1: "the previous rank"}.get(step, other)
    return f"{call.kind} {towards} {other}{apart} ({_where(call, view)})"


def _collective(view: View, call: OpenCall, apart: str = "") -> str:
    """'all_reduce #2', 'all_reduce #1 of ranks 0,2'."""
    tally = view.tally(call.key)
    number = call.seq - (tally.before if tally is not None and tally.cell == view.cell else 0)
    group = f" of {tally.label}" if tally is not None and tally.label != "world" else ""
    return f"{call.op}{f' #{number}' if number > 0 else ''}{apart}{group}"


def _where(call: OpenCall, view: View) -> str:
    """'line 4, float32[4]', 'line 12 of train.py, float32[4]'."""
    line = _place(call, view)
    return f"{line}, {call.what}" if call.what else line


def _line(line: int, file: str = "") -> str:
    """'line 4', 'line 4 of train.py', 'line 4 of cell In[2]' if a function from there made the call."""
    return (f"line {line}" if line else "line unknown") + (f" of {file}" if file else "")


def _ended(view: View, edges: list[Edge]) -> Said:
    """What a rank did last, and how far it got: 'left the cell after 1 collective'."""
    ending = view.ending or Ending(How.LEFT)
    if ending.how is How.ABSENT:
        return Said("does not run this cell", "do not run this cell")
    if ending.how is not How.LEFT and ending.name != "SystemExit":
        return _of_any(ended(ending))
    keys = {edge.call.key: edge for edge in edges if edge.call is not None and edge.call.kind == "collective"}
    said = []
    for key in keys:
        tally = view.tally(key)
        begun = tally.begun - tally.before if tally is not None and tally.cell == view.cell else 0
        group = f" of {tally.label}" if tally is not None and tally.label != "world" else ""
        said.append(f"after {begun} collective{'' if begun == 1 else 's'}{group}")
    kinds = {edge.call.kind for edge in edges if edge.call is not None} - {"collective"}
    if kinds:
        said.append(
            f"without the matching {' and '.join('recv' if kind == 'send' else 'send' for kind in sorted(kinds))}"
        )
    return _of_any(f"{ended(ending)} {', '.join(said[:2])}".rstrip())


def _grouped(said: dict[int, Said]) -> list[str]:
    """Clauses; ranks with the same text share one."""
    groups: dict[Said, list[int]] = {}
    for rank, each in said.items():
        groups.setdefault(each, []).append(rank)
    return [f"{named(ranks)} {each.one if len(ranks) == 1 else each.many}" for each, ranks in groups.items()]


def _join(clauses: list[str]) -> str:
    more = len(clauses) - MOST_CLAUSES
    return "; ".join(clauses[:MOST_CLAUSES]) + (f"; and {more} more" if more > 0 else "")


def named(ranks: Iterable[int]) -> str:
    """'rank 2', 'ranks 0, 1, 3', 'ranks 0-3, 7': three or more in a row are shortened."""
    return name_ranks(ranks, ", ", 3)


def mismatch(marks: dict[int, Fingerprint], before: dict[int, int], left: dict[int, int]) -> str:
    """Calls that do not fit together, per group of ranks. `before` is the count of each rank when the cell began,
    `left` the number of the earlier cell whose call it is.

    Besides the op only differences are named: "ranks 0, 1 call all_reduce #2 with SUM (line 4); rank 2 calls ... MAX".
    """
    differ = [field for field in COMPARED if len({getattr(mark, field) for mark in marks.values()}) > 1]
    if "op" in differ:
        differ = []  # different ops differ in everything
    said = {
        rank: _earlier(mark, _details(mark, differ), left[rank])
        if rank in left
        else f"{mark.call(before.get(rank, 0))}{_details(mark, differ)} ({_line_of(mark)})"
        for rank, mark in sorted(marks.items())
    }
    groups: dict[str, list[int]] = {}
    for rank, text in said.items():
        groups.setdefault(text, []).append(rank)
    of_groups = any(mark.key == NEW_GROUPS for mark in marks.values())
    then = "called" if of_groups else "began"
    verbs = {
        text: then if ranks[0] in left else "calls" if len(ranks) == 1 else "call" for text, ranks in groups.items()
    }
    sentence = _join([f"{named(ranks)} {verbs[text]} {text}" for text, ranks in groups.items()])
    if of_groups:
        sentence += "; every rank has to make the same groups, in the same order"
    return sentence


def _earlier(mark: Fingerprint, details: str, number: int) -> str:
    """A group that an earlier cell made, or a collective that it left behind."""
    where = _left_in(mark, number)
    return f"{mark.op} ({where})" if mark.key == NEW_GROUPS else f"{mark.op}{details} in {where}, never waited for"


def split_mismatch(marks: dict[int, Fingerprint], found: Unfitting, before: int) -> str:
    """'rank 1 sends 3 rows to rank 0 in all_to_all_single #1 (line 7); rank 0 expects 2 (line 7)'."""
    src, dst = found.src, found.dst
    return (
        f"rank {src} sends {found.amount} to rank {dst} in {marks[src].call(before)} "
        f"({_line_of(marks[src])}); rank {dst} expects {found.expected} ({_line_of(marks[dst])})"
    )


def _details(mark: Fingerprint, fields: list[str]) -> str:
    per_rank = " per rank" if mark.op.startswith("reduce_scatter") else ""
    words = {
        "src": f"root {mark.src}",
        "reduce": mark.reduce,
        "count": f"{mark.count} element{'' if mark.count == 1 else 's'}{per_rank}",
        "dtype": mark.dtype,
        "order": mark.layout,
    }
    return " with " + " and ".join(words[field] for field in fields) if fields else ""


def message_mismatch(sent: Fingerprint, received: Fingerprint) -> str:
    """'rank 0 sends 32 bytes of float32 to rank 1 (line 3); rank 1 receives 16 bytes of float32 (line 5)'."""
    return (
        f"rank {sent.src} sends {sent.count} bytes of {sent.dtype} to rank {sent.dst} ({_line_of(sent)}); "
        f"rank {sent.dst} receives {received.count} bytes of {received.dtype} ({_line_of(received)})"
    )


def _line_of(call: Fingerprint | OpenCall) -> str:
    return _line(call.line, call.file)


def ended(ending: Ending) -> str:
    """What an ended rank did last: 'left the cell', 'died (killed by SIGKILL)', 'raised ValueError: no'."""
    if ending.how is How.RAISED:
        return raised(ending.name, ending.message)
    return "left the cell" if ending.how is How.LEFT else f"died ({ending.name})"


def raised(ename: str, evalue: str = "") -> str:
    """How an exception ended a rank's cell, in one short line without addresses."""
    if ename == "SystemExit":
        return "called sys.exit"
    first = re.sub(r" at 0x[0-9a-f]+", "", evalue.partition("\n")[0])
    if len(first) > LONGEST:
        first = first[: LONGEST + 1].rsplit(" ", 1)[0] + " ..."  # no number is cut in two
    return f"raised {ename}" + (f": {first}" if first else "")


def swapped(one: tuple[int, int, int], other: tuple[int, int, int]) -> str:
    """A warning about two ranks that make equal calls in another order; each (rank, number of collective, line)."""
    (rank, number, line), (rank2, _, line2) = one, other
    return (
        f"warning: as collective #{number} rank {rank} makes the call of line {line}, rank {rank2} that of"
        f" line {line2}; the calls look alike and their data were mixed: make them in the same order on every rank"
    )


def missing_group(made: dict[int, tuple[str, int, str]], others: list[int]) -> str:
    """A warning about a group that some ranks made, ("new_group([0,1])", line, file), and others did not."""
    call, line, file = made[min(made)]
    return (
        f"warning: {named(made)} called {call} ({_line(line, file)}), {named(others)} did not: every rank has to call "
        "it, also those that are not in the group, or later groups will not fit"
    )


def in_short(call: OpenCall | Fingerprint | None) -> tuple[str, int]:
    """The op and the line of an arrow in the picture."""
    return (call.op, call.line) if call is not None else ("store", 0)


def _distinctions(views: dict[int, View], stuck: tuple[int, ...]) -> dict[int, str]:
    """By rank, what tells its call from the other waiting calls: ' with tag 1', ' of one group'."""
    waits = {rank: views[rank].waits[0] for rank in stuck if views[rank].waits}
    messages = {rank: call for rank, call in waits.items() if call.kind != "collective"}
    tags = {call.tag for call in messages.values()} | {half.tag for _, half, _ in _other_halves(views, messages)}
    found = {rank: f" with tag {call.tag}" if tags - {0} else "" for rank, call in messages.items()}
    for group in (messages, *_of_the_same_ranks(views, waits)):
        keys = list(dict.fromkeys(call.key for call in group.values()))
        for rank, call in group.items() if len(keys) > 1 else ():
            found[rank] = found.get(rank, "") + (" of one group" if call.key == keys[0] else " of another group")
    return found


def _of_the_same_ranks(views: dict[int, View], waits: dict[int, OpenCall]) -> list[dict[int, OpenCall]]:
    """The collectives among them, by groups with the same label."""
    by_label: dict[str, dict[int, OpenCall]] = {}
    for rank, call in waits.items():
        tally = views[rank].tally(call.key)
        if call.kind == "collective" and tally is not None:
            by_label.setdefault(tally.label, {})[rank] = call
    return list(by_label.values())


def _other_halves(views: dict[int, View], waits: dict[int, OpenCall]) -> list[tuple[int, OpenCall, int]]:
    """(rank, call, other): messages in flight to or from a rank that waits for one with another tag."""
    found = []
    for rank, call in waits.items():
        for half in views[call.peer].open if call.peer >= 0 else ():
            opposite = half.kind == ("recv" if call.kind == "send" else "send") and half.peer == rank
            if opposite and half.dropped == HELD and half.tag != call.tag and not half.waiting:
                found.append((call.peer, half, rank))
    return found


def _remarks(views: dict[int, View], stuck: tuple[int, ...]) -> list[str]:
    """Clauses about calls that explain why two halves did not meet."""
    waits = {rank: views[rank].waits[0] for rank in stuck if views[rank].waits}
    messages = {rank: call for rank, call in waits.items() if call.kind != "collective"}
    said = [
        f"rank {rank}'s i{half.kind} {'to' if half.kind == 'send' else 'from'} rank {other} "
        f"({_place(half, views[rank])}) has tag {half.tag}"
        for rank, half, other in _other_halves(views, messages)
    ]
    for rank, call in waits.items():
        took = "message" if call.kind == "recv" else "place"
        name = call.op if call.kind == "collective" else f"i{call.kind}"
        for left in _left_behind(views, rank, call):
            said.append(f"rank {rank}'s {name} of {_place(left, views[rank])}, never waited for, took its {took}")
    return said or _met_before(views, {rank: call for rank, call in waits.items() if call.kind == "collective"})


def _met_before(views: dict[int, View], waits: dict[int, OpenCall]) -> list[str]:
    """A clause about collectives that ranks began in an earlier cell and others met in this one."""
    early: dict[tuple[int, ...], list[int]] = {}
    for rank, call in waits.items():
        mine = views[rank].tally(call.key)
        theirs = {other: views[other].tally(call.key) for other in views if other not in waits}
        now = {other: tally for other, tally in theirs.items() if tally and tally.cell == views[other].cell}
        if mine and mine.cell == views[rank].cell:
            met = tuple(other for other, tally in now.items() if tally.before < min(tally.begun, mine.before))
            early.setdefault(met, []).append(rank)
    return [
        f"what {named(ranks)} began in an earlier cell has met the first collective of {named(met)} in this one"
        for met, ranks in early.items()
        if met
    ]


def _left_behind(views: dict[int, View], rank: int, call: OpenCall) -> list[OpenCall]:
    """Calls like this one that the rank began in an earlier cell and another rank met in this cell."""
    view = views[rank]
    like = [c for c in view.open if (c.kind, c.key, c.tag, c.peer) == (call.kind, call.key, call.tag, call.peer)]
    earlier = [c for c in like if c.seq < call.seq and c.cell < view.cell and c.dropped == HELD]
    return [c for c in earlier[:1] if any(_met_now(other, c, rank) for other in views.values() if other is not view)]


def _met_now(other: View, left: OpenCall, rank: int) -> bool:
    """Whether the other rank began its part of that call in the cell under way."""
    tallies: list[Tally | MessageTally] = []
    if left.kind == "collective":
        tallies += [tally for tally in other.groups if tally.key == left.key]
    elif other.rank == left.peer:
        kind = "recv" if left.kind == "send" else "send"
        wanted = (kind, left.key, left.tag, rank)
        tallies += [row for row in other.messages if (row.kind, row.key, row.tag, row.peer) == wanted]
    return any(tally.cell == other.cell and tally.before < left.seq <= tally.begun for tally in tallies)


def _place(call: OpenCall, view: View) -> str:
    """'line 4', 'line 4 of train.py', 'line 4 of cell In[7]' if that is not the running cell."""
    return _line_of(call) if call.cell == view.cell else _left_in(call, call.number)


def _left_in(call: Fingerprint | OpenCall, number: int) -> str:
    """The place of a call in an earlier cell: 'line 4 of cell In[7]', 'line 4 of train.py in cell In[7]'. A thread
    whose target is torch's function has no line."""
    where = _line_of(call) if call.line else "a thread"
    return f"{where} {'in' if call.file else 'of'} cell In[{number}]"
