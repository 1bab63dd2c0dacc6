"""Replays the op logs of all ranks in causal order.

Each op log is replayed row by row. A receive waits here until its send has begun on the other rank, a collective until
all its ranks have called it. Then it is known exactly what was sent, and it is written where it was received. So every
range of every rank's memory has a `Value` (`replay.provenance`) at any time, and messages carry what was in them.

The step of a message follows from the same order: it comes after everything that was over, on either of its two ranks,
when that rank began its side of the call. Nothing here depends on times.

Left out: what is worth drawing (`_moves`), names (`_outcome`), what torch's ops mean (`_torch_ops`).
"""

from bisect import bisect_left
from itertools import groupby

import numpy as np

from launch.replay._calls import Call, Collective, Effect, Matched, Message, early_uses, match
from launch.replay._memory import Memory
from launch.replay._numbers import EACH, Numbers, Snapshots, in_a_row
from launch.replay._places import Variables, prefer
from launch.replay._torch_ops import Meaning, View, parse
from launch.replay.provenance import OUTSIDE, Kind, Leaves, Piece, Span, Value, meeting, moved
from launch.shared.capture import BEGIN, BLIND, END, LOOK

# At the end of a call that another rank has not begun: a rank never goes on, or it does if it gets no data.
WAITS, GETS_NOTHING = 0, 1


class _Rank:
    """How far one rank's op log has been replayed."""

    def __init__(self, run: dict, variables: Variables, leaves: Leaves):
        op_log, storages = run["op_log"], variables.storages
        self.number, self.events = run["rank"], run["events"]
        self.rows, self.ops = op_log["rows"], [parse(text) for text in op_log["ops"]]
        self.views = [View(s, o, tuple(shape), tuple(stride), *kind) for s, o, shape, stride, *kind in op_log["places"]]
        self.changed, self.early = early_uses(self.rows, self.ops, self.views, self.events)
        kept = {b.span.storage for b in variables.bindings}
        kept |= {span.storage for event in self.events for span in [*event["ins"], *event["outs"]] if span}
        firsts = {number: known["first"] for number, known in storages.items()}
        self.snapshots = Snapshots(run["snapshots"])
        itemsizes = {number: self.snapshots.itemsize(number) for number in storages}
        self.memory = Memory(self.number, leaves, kept, firsts, itemsizes)
        self.meaning = Meaning(self.memory, self.number)
        self.last_snapshot = variables.last_snapshot
        self.first_snapshot = self.events[0]["looks"][0] if self.events else 0
        self.named = [b.span for b in variables.bindings if b.snapshot <= self.first_snapshot]
        self.final = [*variables.final.values()]
        self.begun = False
        self.blind = False
        self.open: dict[int, dict] = {}  # event -> itself, while it is under way
        self.waiting: dict[int, list[int]] = {}  # storage -> events that write there, without a wait so far
        self.spans: dict[int, list] = {number: [None, None] for number in range(len(self.events))}  # event -> rows
        self.looks: list[tuple[int, int]] = []  # (row, snapshot)
        self.seen_at: dict[int, list[tuple[int, int]]] = {}  # storage -> those of them that saw it


class Replay:
    """The run, carried out. Everything about it that pictures and names are made of:

    messages, collectives, unmatched   of all ranks, with their steps; `matched` are the first two
    writes                             by rank: what it wrote itself, in order
    starts                             by rank: storage -> pieces, as they were when it made its first call
    ends                               by rank: the `Memory` it ended with
    variables                          by rank: its `Variables`
    """

    def __init__(self, runs: list[dict]):
        self.variables = {run["rank"]: Variables(run["snapshots"]) for run in runs}
        prefer(self.variables, runs)
        self._replay(runs, EACH)
        if self.contradicted:  # again, with a check at every call, to find where it began
            self._replay(runs, 1)

    def _replay(self, runs: list[dict], each: int) -> None:
        """Checks what ranks held against the numbers at the end, and at every `each`-th call."""
        self.each, self.contradicted = each, False
        self.leaves = Leaves()
        self.numbers = Numbers(self.leaves)
        self.messages, self.collectives, self.unmatched = match(runs)
        self.matched: list[Matched] = [*self.messages, *self.collectives]
        self.ranks = {run["rank"]: _Rank(run, self.variables[run["rank"]], self.leaves) for run in runs}
        self.items = {(call.rank, call.number): item for item in self.matched for call in item.calls}
        self.effects: dict[int, Effect] = {}  # id of a collective -> its effect, until all its ranks have gone on
        self.taken: dict[int, int] = {}
        self.pairs: dict[tuple[int, int], int] = {}
        self.groups: dict[tuple, int] = {}
        self.starts: dict[int, dict[int, list[Piece]]] = {}
        self._run()
        for rank in self.ranks.values():
            self._close(rank)
        for rank in self.ranks.values():
            self._check(rank, rank.final)
        self.writes = {number: rank.memory.writes for number, rank in self.ranks.items()}
        self.ends = {number: rank.memory for number, rank in self.ranks.items()}

    def row_of(self, call: Call, end: bool) -> int:
        """The row at which a call began, or its wait was over (the last one if it was not waited for)."""
        rank = self.ranks[call.rank]
        row = rank.spans[call.number][end]
        return len(rank.rows) if row is None else row

    def snapshot_after(self, rank: int, row: float, storage: int) -> tuple[int, int] | None:
        """(row, snapshot): the first snapshot of a storage that shows what was written at that row."""
        looks = self.ranks[rank].seen_at.get(storage, [])
        at = bisect_left(looks, (row, 0))
        return looks[at] if at < len(looks) else None

    def held_first(self, rank: int, span: Span) -> list[Piece]:
        """The pieces of a range when the rank made its first call."""
        storage, lo, hi = span
        inside = meeting(self.starts.get(rank, {}).get(storage, ()), lo, hi)
        return [p._replace(lo=max(p.lo, lo), hi=min(p.hi, hi)) for p in inside]

    def seen(self, rank: int) -> bool:
        """Whether the op log of the rank reaches to the end of the cell."""
        return not self.ranks[rank].blind

    def _run(self) -> None:
        cursors = {number: 0 for number in self.ranks}
        forced = WAITS
        while True:
            moved = False
            for number, rank in self.ranks.items():
                at = cursors[number]
                while at < len(rank.rows) and self._step(rank, at, forced):
                    at, forced = at + 1, WAITS
                moved |= at > cursors[number]
                cursors[number] = at
            if all(cursors[number] == len(rank.rows) for number, rank in self.ranks.items()):
                return
            # No rank can go on. Then the root of a broadcast may, since it gets nothing from the others. If there is
            # none, a rank has read data before they had arrived, and the first rank goes on.
            forced = WAITS if moved else forced + 1

    def _step(self, rank: _Rank, at: int, forced: int) -> bool:
        """Carries out one row; False if it has to wait for another rank."""
        row, memory = rank.rows[at], rank.memory
        memory.row = at
        if row[0] == BEGIN:
            self._begin(rank, row[1], at)
        elif row[0] == END:
            item = self.items.get((rank.number, row[1]))
            if item is not None and not self._ready(item):
                if forced == WAITS or forced == GETS_NOTHING and not _gets_nothing(rank, row[1]):
                    return False
            rank.spans[row[1]][1] = at
            self._end(rank, row[1])
            self._take_snapshot(rank, at, rank.events[row[1]]["looks"][1])
        elif row[0] == LOOK:
            self._take_snapshot(rank, at, row[1])
        elif row[0] == BLIND:
            rank.blind = True
        else:
            op, outs, ins, numbers, alpha, memory.line = row
            outs, ins = ([rank.views[n] for n in views if n >= 0] for views in (outs, ins))
            for view in [*outs, *ins] if rank.waiting else ():
                for event in rank.waiting.get(view.storage, ())[:]:
                    if not self._ready(self.items[rank.number, event]) and forced <= GETS_NOTHING:
                        return False
                    self._end(rank, event)  # read without a wait: DDP waits in C++
            aliases = {view.storage for view in ins} if rank.ops[op].name in ("_unsafe_view", "wait_tensor") else ()
            outs = [view for view in outs if view.numel and view.storage not in aliases]
            rank.meaning.carry_out(rank.ops[op], outs, [view for view in ins if view.numel], numbers, alpha)
        return True

    def _ready(self, item) -> bool:
        return item.begun == len(item.calls)

    def _begin(self, rank: _Rank, number: int, at: int) -> None:
        event, memory = rank.events[number], rank.memory
        rank.spans[number][0] = at
        memory.row = at
        if not rank.begun:
            for span in filter(None, [*event["ins"], *event["outs"], *rank.named]):
                memory.held(span)
        memory.row = at - 0.5  # what changed outside torch until now changed before the call
        self._take_snapshot(rank, at, event["looks"][0])
        if not rank.begun:
            rank.begun = True
            memory.settle()
            everything = [Span(s, p.lo, p.hi) for s, r in memory.storages.items() for p in r.pieces]
            self._learn(rank, everything)
            self._check(rank, everything, Kind.OWN)  # a copy that a thread changed is other data, but the rank's own
            self.starts[rank.number] = {s: list(r.pieces) for s, r in memory.storages.items() if s in memory.kept}
        sent = [span for span in event["ins"] if span]
        if number % self.each == 0:
            self._check(rank, sent)
        memory.row = at
        self._learn(rank, sent)
        rank.open[number] = event
        item = self.items.get((rank.number, number))
        if item is None:
            for span in sent if not rank.blind else ():
                memory.held(span)
            return
        item.carries[rank.number] = [self._held(rank, span) for span in event["ins"]]
        if sent and number in rank.changed:
            item.changed = True  # which numbers went out is not known
            item.carries[rank.number] = [[Piece(0, sent[0].hi - sent[0].lo, self._unseen(rank.number))]]
        item.after = max(item.after, memory.step)
        item.begun += 1
        if event["times"][3] is None or event["native"]:
            for span in event["outs"] if event["kind"] != "send" else ():
                if span:
                    rank.waiting.setdefault(span.storage, []).append(number)
        if self._ready(item):
            self._put_in_order(item)

    def _learn(self, rank: _Rank, spans) -> None:
        """Keeps the numbers of the leaves in this memory, except where a receive is in flight."""
        for span in spans:
            for p in rank.memory.held(span):
                if not p.value.plain or self.numbers.knows(p.value, p.lo, p.hi):
                    continue
                if _is_coming(rank, span):
                    break
                if raw := rank.snapshots.bytes_at(span._replace(lo=p.lo, hi=p.hi)):
                    self.numbers.learn(p.value, p.lo, raw, rank.snapshots.dtype(span.storage))

    def _check(self, rank: _Rank, spans, kind: Kind = Kind.UNSEEN) -> None:
        """Compares memory with the numbers that it should hold; where they differ, it was changed in an unseen way."""
        for span in spans if not rank.blind else ():
            if _is_coming(rank, span):
                continue
            for value, pieces in groupby(rank.memory.held(span), key=lambda p: p.value):
                first, *others = pieces
                raw = rank.snapshots.bytes_at(span._replace(lo=first.lo, hi=(others or [first])[-1].hi))
                for a, b in self.numbers.differing(value, first.lo, raw) if raw else ():
                    self.contradicted |= kind is Kind.UNSEEN
                    wrong = span._replace(lo=first.lo + a, hi=first.lo + b)
                    rank.memory.write(wrong, self._unseen(rank.number, kind))

    def _unseen(self, rank: int, kind: Kind = Kind.UNSEEN) -> Value:
        return self.leaves.fresh(rank, kind, frozenset((rank,) if kind is Kind.OWN else (rank, OUTSIDE)))

    def _held(self, rank: _Rank, span: Span | None) -> list[Piece] | None:
        """What is there now, counted from its first byte; None where that is not known."""
        if span is None:
            return None
        if rank.blind:
            return [Piece(0, span.hi - span.lo, self._unseen(rank.number))]
        found = []
        for p in rank.memory.held(span):
            value = self.leaves.settled(p.value, rank.number)
            if value is not p.value:
                rank.memory.storages[span.storage].write(p.lo, p.hi, value)
            found.append(p._replace(value=value))
        return moved(found, span.lo)

    def _put_in_order(self, item) -> None:
        """Gives a call its step, once all its sides have begun."""
        step = 1 + item.after
        if isinstance(item, Collective):
            step = max(step, self.groups.get(item.ranks, 0))
            # Collectives of a group never share a step, even if nothing waits for them, as in DDP.
            self.groups[item.ranks] = step + 1
        else:
            pair = (item.src, item.dst)
            step = max(step, self.pairs.get(pair, 0))
            self.pairs[pair] = step + 1  # messages from one rank to another never share a step
        item.step = step

    def _end(self, rank: _Rank, number: int) -> None:
        """The call is over for this rank: what it receives is in its memory now."""
        event = rank.open.pop(number, None)
        if event is None:
            return
        for span in event["outs"]:
            if span and number in rank.waiting.get(span.storage, ()):
                rank.waiting[span.storage].remove(number)
        item = self.items.get((rank.number, number))
        if item is not None and self._ready(item):
            rank.memory.step = max(rank.memory.step, item.step)
        if event["kind"] == "send":
            return
        if rank.memory.first_arrival is None and event["outs"]:
            rank.memory.first_arrival = event["looks"][1]
        arrived = self._arrived(rank, item) if item is not None and self._ready(item) else {}
        for index, span in enumerate(event["outs"]):
            pieces = arrived.get(index)
            if span is None:
                continue
            if pieces is None and isinstance(item, Collective) and span in event["ins"]:
                # A rank that is not the root of a reduce keeps its data, or finds what the library left there.
                rank.memory.left.append(span)
                continue
            if pieces is None:
                kind = Kind.LIBRARY if isinstance(item, Collective) else Kind.UNSEEN
                left = self.leaves.fresh(rank.number, kind, frozenset((rank.number, OUTSIDE)))
                pieces = [Piece(0, span.hi - span.lo, left)]
            for p in moved(pieces, -span.lo):
                if p.hi <= span.hi:
                    rank.memory.put(span._replace(lo=p.lo, hi=p.hi), p.value)

    def _arrived(self, rank: _Rank, item) -> dict[int, list[Piece]]:
        """What is in each tensor that a receive or a collective has written, counted from the tensor's first
        byte."""
        if isinstance(item, Message):
            sent = item.carries[item.src][0]
            return {0: sent} if sent is not None else {}
        if id(item) not in self.effects:
            self.effects[id(item)] = Effect(item, self.leaves)
        found = self.effects[id(item)].on(rank.number)
        self.taken[id(item)] = self.taken.get(id(item), 0) + 1
        if self.taken[id(item)] == len(item.calls):
            del self.effects[id(item)]
        return found

    def _take_snapshot(self, rank: _Rank, at: int, snapshot: int) -> None:
        """Bytes that changed since the last snapshot, and that no op has written, were changed outside torch."""
        rank.looks.append((at, snapshot))
        memory = rank.memory
        for storage, differs in rank.snapshots.changed(snapshot) if not rank.blind else ():
            coming = [span for event in rank.open.values() for span in event["outs"] if span]
            covered = [*memory.dirty.get(storage, ()), *((lo, hi) for s, lo, hi in coming if s == storage)]
            if not rank.snapshots.whole(storage):
                a, b = int(differs[0]), int(differs[1]) + 1
                if any(lo < b and a < hi for lo, hi in covered):
                    continue  # which of the bytes changed is not known
                changed = [(a, b)]
            else:
                for lo, hi in covered:
                    differs = differs[(differs < lo) | (differs >= hi)]
                size = rank.snapshots.itemsize(storage)
                changed = in_a_row(np.unique(differs // size), size)
            spans = [Span(storage, a, b) for a, b in changed]
            # Of all that a reduce may have changed nothing is promised, so it is no rank's own data any more.
            by_library = [left for left in memory.left if any(map(left.meets, spans))]
            for span in [*by_library, *(span for span in spans if not any(map(span.meets, by_library)))]:
                kind = Kind.LIBRARY if span in by_library else Kind.OUTSIDE
                memory.write(span, self.leaves.fresh(rank.number, kind, frozenset((rank.number, OUTSIDE))))
        for storage in rank.snapshots.looked[snapshot]:
            rank.seen_at.setdefault(storage, []).append((at, snapshot))
            memory.dirty.pop(storage, None)
            if memory.left:
                memory.left = [left for left in memory.left if left.storage != storage]

    def _close(self, rank: _Rank) -> None:
        """After the last row: ends the calls that were not waited for, and reads the last snapshot."""
        rank.memory.row = len(rank.rows)
        for number in list(rank.open):
            self._end(rank, number)
        self._take_snapshot(rank, len(rank.rows), rank.last_snapshot)


def _is_coming(rank: _Rank, span: Span) -> bool:
    """Whether a call that is under way writes there."""
    receiving = (event for event in rank.open.values() if event["kind"] != "send")
    return any(there and there.meets(span) for event in receiving for there in event["outs"])


def _gets_nothing(rank: _Rank, number: int) -> bool:
    """Whether a call brings nothing in: a send, the root of a broadcast, one that gathers for another rank."""
    event = rank.events[number]
    root = event["op"] == "broadcast" and event["peer"] == rank.number
    return event["kind"] == "send" or not event["outs"] or root
