"""Replays what the ranks held: their op logs in causal order (`replay._order`), with the values in their memory.

When a receive is over, it is known exactly what was sent, and it is written where it was received. So every range of
every rank's memory has a `Value` (`replay.provenance`) at any time, and messages carry what was in them.

Left out: what is worth drawing (`_moves`), names (`_outcome`), what torch's ops mean (`_torch_ops`).
"""

from bisect import bisect_left
from itertools import chain, groupby

import numpy as np

from launch.replay._calls import Collective, Effect, Message
from launch.replay._memory import Memory
from launch.replay._numbers import EACH, Numbers, Snapshots, in_a_row
from launch.replay._order import Order, Over, Rank
from launch.replay._places import Variables
from launch.replay._torch_ops import Meaning
from launch.replay.provenance import Kind, Leaves, Piece, Span, moved, within
from launch.shared.capture import BEGIN, BLIND, END, LOOK


class _Rank:
    """How far one rank's op log has been replayed, and what is in its memory then."""

    def __init__(self, run: dict, log: Rank, variables: Variables, leaves: Leaves):
        self.log, self.number, self.events = log, log.number, log.events
        self.snapshots = Snapshots(run["snapshots"])
        self.blind = False
        self.open: dict[int, dict] = {}  # event -> itself, while it is under way
        storages = variables.storages
        kept = {b.span.storage for b in variables.bindings}
        kept |= {span.storage for event in self.events for span in [*event["ins"], *event["outs"]] if span}
        firsts = {number: known["first"] for number, known in storages.items()}
        itemsizes = {number: self.snapshots.itemsize(number) for number in storages}
        self.memory = Memory(self.number, leaves, kept, firsts, itemsizes)
        self.meaning = Meaning(self.memory, self.number)
        self.last_snapshot = variables.last_snapshot
        self.first_snapshot = self.events[0]["looks"][0] if self.events else 0
        self.named = [b.span for b in variables.bindings if b.snapshot <= self.first_snapshot]
        self.final = [last.span for last in chain(*variables.left.values())]
        self.begun = False
        self.looks: list[tuple[int, int]] = []  # (row, snapshot)
        self.seen_at: dict[int, list[tuple[int, int]]] = {}  # storage -> those of them that saw it


class Replay:
    """The run, carried out: everything about it that pictures and names are made of; what an `Order` knows, and:

    writes                             by rank: what it wrote itself, in order
    starts                             by rank: storage -> pieces, as they were when it made its first call
    ends                               by rank: the `Memory` it ended with
    """

    def __init__(self, order: Order):
        self.variables, self.items, self.row_of = order.variables, order.items, order.row_of
        self.messages, self.collectives, self.matched = order.messages, order.collectives, order.matched
        self._replay(order, EACH)
        if self.contradicted:  # again, with a check at every call, to find where it began
            self._replay(order, 1)

    def _replay(self, order: Order, each: int) -> None:
        """Checks what ranks held against the numbers at the end, and at every `each`-th call."""
        self.each, self.contradicted = each, False
        self.leaves = Leaves()
        self.numbers = Numbers(self.leaves)
        self.ranks = {
            run["rank"]: _Rank(run, order.ranks[run["rank"]], self.variables[run["rank"]], self.leaves)
            for run in order.runs
        }
        self.effects: dict[int, Effect] = {}  # id of a collective -> its effect, until all its ranks have gone on
        self.taken: dict[int, int] = {}
        self.starts: dict[int, dict[int, list[Piece]]] = {}
        for number, at, over in order.rows:
            self._carry_out(self.ranks[number], at, over)
        for rank in self.ranks.values():
            self._check(rank, rank.final)
        self.writes = {number: rank.memory.writes for number, rank in self.ranks.items()}
        self.ends = {number: rank.memory for number, rank in self.ranks.items()}

    def snapshot_after(self, rank: int, row: float, storage: int) -> tuple[int, int] | None:
        """(row, snapshot): the first snapshot of a storage that shows what was written at that row."""
        looks = self.ranks[rank].seen_at.get(storage, [])
        at = bisect_left(looks, (row, 0))
        return looks[at] if at < len(looks) else None

    def held_first(self, rank: int, span: Span) -> list[Piece]:
        """The pieces of a range when the rank made its first call."""
        return within(self.starts.get(rank, {}).get(span.storage, ()), span.lo, span.hi)

    def seen(self, rank: int) -> bool:
        """Whether the op log of the rank reaches to the end of the cell."""
        return not self.ranks[rank].blind

    def _carry_out(self, rank: _Rank, at: int, over: Over) -> None:
        """One row; at last what was not waited for, and the last snapshot."""
        row: list = rank.log.rows[at] if at < len(rank.log.rows) else [LOOK, rank.last_snapshot]
        rank.memory.row = at
        for number, complete in over:
            self._end(rank, number, complete)
        if row[0] == BEGIN:
            self._begin(rank, row[1], at)
        elif row[0] in (LOOK, END):
            self._look(rank, at, row[1] if row[0] == LOOK else rank.events[row[1]]["looks"][1])
        elif row[0] == BLIND:
            rank.blind = True
        else:
            number, outs, ins, numbers, alpha, rank.memory.line = row
            op, views = rank.log.ops[number], rank.log.views
            outs, ins = ([views[n] for n in each if n >= 0 and views[n].numel] for each in (outs, ins))
            aliases = {view.storage for view in ins} if op.name in ("_unsafe_view", "wait_tensor") else ()
            rank.meaning.carry_out(op, [view for view in outs if view.storage not in aliases], ins, numbers, alpha)

    def _begin(self, rank: _Rank, number: int, at: int) -> None:
        event, memory = rank.events[number], rank.memory
        if not rank.begun:
            for span in filter(None, [*event["ins"], *event["outs"], *rank.named]):
                memory.held(span)
        memory.row = at - 0.5  # what changed outside torch until now changed before the call
        self._look(rank, at, event["looks"][0])
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
        item = self.items.get((rank.number, number))
        if item is not None:
            item.carries[rank.number] = [self._held(rank, span) for span in event["ins"]]
            if sent and number in rank.log.changed:  # which numbers went out is not known
                item.carries[rank.number] = [
                    [Piece(0, sent[0].hi - sent[0].lo, self.leaves.fresh(rank.number, Kind.UNSEEN))]
                ]
        elif not rank.blind:
            for span in sent:
                memory.held(span)
        rank.open[number] = event

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
                    rank.memory.write(wrong, self.leaves.fresh(rank.number, kind))

    def _held(self, rank: _Rank, span: Span | None) -> list[Piece] | None:
        """What is there now, counted from its first byte; None where that is not known."""
        if span is None:
            return None
        if rank.blind:
            return [Piece(0, span.hi - span.lo, self.leaves.fresh(rank.number, Kind.UNSEEN))]
        found = []
        for p in rank.memory.held(span):
            value = self.leaves.settled(p.value, rank.number)
            if value is not p.value:
                rank.memory.storages[span.storage].write(p.lo, p.hi, value)
            found.append(p._replace(value=value))
        return moved(found, span.lo)

    def _end(self, rank: _Rank, number: int, complete: bool) -> None:
        """What a call receives is in its rank's memory now."""
        event = rank.open.pop(number)
        if event["kind"] == "send":
            return
        item = self.items.get((rank.number, number))
        if rank.memory.first_arrival is None and event["outs"]:
            rank.memory.first_arrival = event["looks"][1]
        arrived = self._arrived(rank, item) if complete else {}
        for index, span in enumerate(event["outs"]):
            pieces = arrived.get(index)
            if span is None:
                continue
            if pieces is None and isinstance(item, Collective) and span in event["ins"] and item.complete:
                # A rank that is not the root of a reduce keeps its data, or finds what the library left there.
                rank.memory.left.append(span)
                continue
            if pieces is None:
                left = self.leaves.fresh(rank.number, Kind.LIBRARY if isinstance(item, Collective) else Kind.UNSEEN)
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

    def _look(self, rank: _Rank, at: int, snapshot: int) -> None:
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
                kind = Kind.LIBRARY if span in by_library else Kind.OUTSIDE if rank.begun else Kind.OWN
                memory.write(span, self.leaves.fresh(rank.number, kind))
        for storage in rank.snapshots.looked[snapshot]:
            rank.seen_at.setdefault(storage, []).append((at, snapshot))
            memory.dirty.pop(storage, None)
            if memory.left:
                memory.left = [left for left in memory.left if left.storage != storage]


def _is_coming(rank: _Rank, span: Span) -> bool:
    """Whether a call that is under way writes there."""
    receiving = (event for event in rank.open.values() if event["kind"] != "send")
    return any(there and there.meets(span) for event in receiving for there in event["outs"])
