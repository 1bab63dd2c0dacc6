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
from launch.replay._numbers import EACH, Numbers, Snapshots
from launch.replay._torch_ops import Meaning, Place, parse
from launch.replay.provenance import OUTSIDE, Kind, Leaves, Piece, Value, meeting
from launch.shared.capture import BEGIN, BLIND, END, LOOK

WAITS, GETS_NOTHING = 0, 1  # whether a rank goes on though another has not come: never, if it gets nothing from it


class _Rank:
    """How far one rank's op log has been replayed."""

    def __init__(self, run: dict, leaves: Leaves):
        op_log, snapshots = run["op_log"], run["snapshots"]
        self.number, self.events = run["rank"], run["events"]
        self.rows, self.ops = op_log["rows"], [parse(text) for text in op_log["ops"]]
        self.places = [
            Place(s, o, tuple(shape), tuple(stride), *kind) for s, o, shape, stride, *kind in op_log["places"]
        ]
        self.changed, self.early = early_uses(self.rows, self.ops, self.places, self.events)
        kept = {binding[3] for binding in snapshots["bindings"]}
        kept |= {place[0] for event in self.events for place in [*event["ins"], *event["outs"]] if place}
        firsts = {int(number): known["first"] for number, known in snapshots["storages"].items()}
        self.snapshots = Snapshots(snapshots)
        itemsizes = {number: self.snapshots.itemsize(number) for number in firsts}
        self.memory = Memory(self.number, leaves, kept, firsts, itemsizes)
        self.meaning = Meaning(self.memory, self.number)
        self.last_snapshot = snapshots["looks"] - 1
        self.first_snapshot = self.events[0]["looks"][0] if self.events else 0
        self.named = [binding[3:6] for binding in snapshots["bindings"] if binding[0] <= self.first_snapshot]
        self.final = [(storage, lo, lo + nbytes) for _, storage, lo, nbytes in snapshots["final"]]
        self.begun = False
        self.blind = False
        self.open: dict[int, dict] = {}  # event -> the places it may be written into while it is under way
        self.waiting: dict[
            int, list[int]
        ] = {}  # storage -> events that nobody has waited for yet, and that write there
        self.spans: dict[int, list] = {number: [None, None] for number in range(len(self.events))}  # event -> rows
        self.looks: list[tuple[int, int]] = []  # (row, snapshot)
        self.seen_at: dict[int, list[tuple[int, int]]] = {}  # storage -> those of them that saw it


class Replay:
    """The run, carried out. Everything about it that pictures and names are made of:

    messages, collectives, unmatched   of all ranks, with their steps; `matched` are the first two
    writes                             by rank: what it wrote itself, in order
    starts                             by rank: storage -> pieces, as they were when it made its first call
    ends                               by rank: the `Memory` it ended with
    """

    def __init__(self, runs: list[dict]):
        self._replay(runs, EACH)
        if self.contradicted:  # once more, looking at every call, to find where it began
            self._replay(runs, 1)

    def _replay(self, runs: list[dict], each: int) -> None:
        """Checks what ranks held against the numbers at the end, and at every `each`-th call."""
        self.each, self.contradicted = each, False
        self.leaves = Leaves()
        self.numbers = Numbers(self.leaves)
        self.messages, self.collectives, self.unmatched = match(runs)
        self.matched: list[Matched] = [*self.messages, *self.collectives]
        self.ranks = {run["rank"]: _Rank(run, self.leaves) for run in runs}
        self.items = {(call.rank, call.number): item for item in self.matched for call in item.calls}
        self.effects: dict[int, Effect] = {}  # id of a collective -> what it leaves, until all its ranks have gone on
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
        """(row, snapshot): the first look at a storage at which what was written at that row can have been seen."""
        looks = self.ranks[rank].seen_at.get(storage, [])
        at = bisect_left(looks, (row, 0))
        return looks[at] if at < len(looks) else None

    def held_first(self, rank: int, storage: int, lo: int, hi: int) -> list[Piece]:
        """The pieces of a range when the rank made its first call."""
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
            # No rank can go on. The root of a broadcast may go on before the others have come, since it gets nothing
            # from them. A rank may also have read data that were still on their way: then the first one goes on.
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
            outs, ins = ([rank.places[n] for n in places if n >= 0] for places in (outs, ins))
            for place in [*outs, *ins] if rank.waiting else ():
                for event in rank.waiting.get(place.storage, ())[:]:
                    if not self._ready(self.items[rank.number, event]) and forced <= GETS_NOTHING:
                        return False
                    self._end(rank, event)  # read without a wait: DDP waits in C++
            aliases = {place.storage for place in ins} if rank.ops[op].name in ("_unsafe_view", "wait_tensor") else ()
            outs = [place for place in outs if place.numel and place.storage not in aliases]
            rank.meaning.carry_out(rank.ops[op], outs, [p for p in ins if p.numel], numbers, alpha)
        return True

    def _ready(self, item) -> bool:
        return item.begun == len(item.calls)

    def _begin(self, rank: _Rank, number: int, at: int) -> None:
        event, memory = rank.events[number], rank.memory
        rank.spans[number][0] = at
        memory.row = at
        if not rank.begun:
            for place in [*event["ins"], *event["outs"], *rank.named]:
                if place:
                    memory.held(place[0], place[1], place[1] + place[2])
        memory.row = at - 0.5  # what was changed outside torch until now was changed before the call
        self._take_snapshot(rank, at, event["looks"][0])
        if not rank.begun:
            rank.begun = True
            memory.settle()
            everything = [(s, p.lo, p.hi) for s, r in memory.storages.items() for p in r.pieces]
            self._learn(rank, everything)
            self._check(rank, everything, Kind.OWN)  # a copy that a thread has changed: other data, but its own
            self.starts[rank.number] = {s: list(r.pieces) for s, r in memory.storages.items() if s in memory.kept}
        places = [(place[0], place[1], place[1] + place[2]) for place in event["ins"] if place]
        if number % self.each == 0:
            self._check(rank, places)
        memory.row = at
        self._learn(rank, places)
        rank.open[number] = event
        item = self.items.get((rank.number, number))
        if item is None:
            for place in event["ins"]:
                if place and not rank.blind:
                    memory.held(place[0], place[1], place[1] + place[2])
            return
        item.carries[rank.number] = [self._held(rank, place) for place in event["ins"]]
        if isinstance(item, Message) and event["kind"] == "send" and event["ins"][0] and number in rank.changed:
            item.changed = True  # which numbers went out is not known
            item.carries[rank.number] = [[Piece(0, event["ins"][0][2], self._unseen(rank.number))]]
        item.after = max(item.after, memory.step)
        item.begun += 1
        if event["times"][3] is None or event["native"]:
            for place in event["outs"] if event["kind"] != "send" else ():
                if place:
                    rank.waiting.setdefault(place[0], []).append(number)
        if self._ready(item):
            self._put_in_order(item)

    def _learn(self, rank: _Rank, places) -> None:
        """Keeps the numbers of leaves that are there as they were, except where a receive is under way."""
        for storage, lo, hi in places:
            for p in rank.memory.held(storage, lo, hi):
                if not p.value.plain or self.numbers.knows(p.value, p.lo, p.hi):
                    continue
                if _is_coming(rank, storage, lo, hi):
                    break
                if raw := rank.snapshots.bytes_at(storage, p.lo, p.hi):
                    self.numbers.learn(p.value, p.lo, raw, rank.snapshots.dtype(storage))

    def _check(self, rank: _Rank, places, kind: Kind = Kind.UNSEEN) -> None:
        """Memory that does not hold what it is said to be made of was changed in a way that was not seen."""
        for storage, lo, hi in places if not rank.blind else ():
            if _is_coming(rank, storage, lo, hi):
                continue
            for value, pieces in groupby(rank.memory.held(storage, lo, hi), key=lambda p: p.value):
                first, *others = pieces
                raw = rank.snapshots.bytes_at(storage, first.lo, (others or [first])[-1].hi)
                for a, b in self.numbers.differing(value, first.lo, raw) if raw else ():
                    self.contradicted |= kind is Kind.UNSEEN
                    rank.memory.write(storage, first.lo + a, first.lo + b, self._unseen(rank.number, kind))

    def _unseen(self, rank: int, kind: Kind = Kind.UNSEEN) -> Value:
        return self.leaves.fresh(rank, kind, frozenset((rank,) if kind is Kind.OWN else (rank, OUTSIDE)))

    def _held(self, rank: _Rank, place) -> list[Piece] | None:
        """What a place holds now, counted from its first byte; None where that is not known."""
        if place is None:
            return None
        if rank.blind:
            return [Piece(0, place[2], self._unseen(rank.number))]
        found = []
        for p in rank.memory.held(place[0], place[1], place[1] + place[2]):
            value = self.leaves.settled(p.value, rank.number)
            if value is not p.value:
                rank.memory.storages[place[0]].write(p.lo, p.hi, value)
            found.append(Piece(p.lo - place[1], p.hi - place[1], value.shifted(place[1])))
        return found

    def _put_in_order(self, item) -> None:
        """All its sides have begun: now it is known what it comes after."""
        step = 1 + item.after
        if isinstance(item, Collective):
            step = max(step, self.groups.get(item.ranks, 0))
            self.groups[item.ranks] = step + 1  # one after the other, even if a call is not waited for, as in DDP
        else:
            pair = (item.src, item.dst)
            step = max(step, self.pairs.get(pair, 0))
            self.pairs[pair] = step + 1  # messages from one rank to another never share a step
        item.step = step

    def _end(self, rank: _Rank, number: int) -> None:
        """The rank may go on: what it was to receive is there."""
        event = rank.open.pop(number, None)
        if event is None:
            return
        for place in event["outs"]:
            if place and number in rank.waiting.get(place[0], ()):
                rank.waiting[place[0]].remove(number)
        item = self.items.get((rank.number, number))
        if item is not None and self._ready(item):
            rank.memory.step = max(rank.memory.step, item.step)
        if event["kind"] == "send":
            return
        if rank.memory.first_arrival is None and event["outs"]:
            rank.memory.first_arrival = event["looks"][1]
        arrived = self._arrived(rank, item) if item is not None and self._ready(item) else {}
        for index, place in enumerate(event["outs"]):
            if place is None:
                continue
            kind = Kind.LIBRARY if isinstance(item, Collective) else Kind.UNSEEN
            pieces = arrived.get(index)
            if pieces is None and isinstance(item, Collective) and place in event["ins"]:
                # All but the root of a reduce keep what they have, or find there what the library has left.
                rank.memory.left.append((place[0], place[1], place[1] + place[2]))
                continue
            if pieces is None:
                left = self.leaves.fresh(rank.number, kind, frozenset((rank.number, OUTSIDE)))
                pieces = [Piece(0, place[2], left)]
            for p in pieces:
                if p.hi <= place[2]:
                    value = p.value.shifted(-place[1])
                    rank.memory.put(place[0], place[1] + p.lo, place[1] + p.hi, value)

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
            coming = [place for event in rank.open.values() for place in event["outs"] if place]
            covered = [*memory.dirty.get(storage, ()), *((p[1], p[1] + p[2]) for p in coming if p[0] == storage)]
            if not rank.snapshots.whole(storage):
                a, b = int(differs[0]), int(differs[1]) + 1
                if any(lo < b and a < hi for lo, hi in covered):
                    continue  # which of the bytes changed is not known
                spans = [(a, b)]
            else:
                if any(lo <= differs[0] and differs[-1] < hi for lo, hi in covered):
                    continue
                for lo, hi in covered:
                    differs = differs[(differs < lo) | (differs >= hi)]
                size = rank.snapshots.itemsize(storage)
                items = np.unique(differs // size)
                runs = np.split(items, np.flatnonzero(np.diff(items) > 1) + 1) if len(items) else ()
                spans = [(int(run[0]) * size, (int(run[-1]) + 1) * size) for run in runs]
            for a, b in spans:
                by_library = any(s == storage and lo < b and a < hi for s, lo, hi in memory.left)
                kind = Kind.LIBRARY if by_library else Kind.OUTSIDE
                memory.write(storage, a, b, self.leaves.fresh(rank.number, kind, frozenset((rank.number, OUTSIDE))))
        for storage in rank.snapshots.looked[snapshot]:
            rank.seen_at.setdefault(storage, []).append((at, snapshot))
            memory.dirty.pop(storage, None)
            if memory.left:
                memory.left = [left for left in memory.left if left[0] != storage]

    def _close(self, rank: _Rank) -> None:
        """After the last row: calls that were not waited for are over by now, and the last snapshot is read."""
        rank.memory.row = len(rank.rows)
        for number in list(rank.open):
            self._end(rank, number)
        self._take_snapshot(rank, len(rank.rows), rank.last_snapshot)


def _is_coming(rank: _Rank, storage: int, lo: int, hi: int) -> bool:
    """Whether a call that is under way writes there."""
    coming = (place for event in rank.open.values() if event["kind"] != "send" for place in event["outs"] if place)
    return any(s == storage and a < hi and lo < a + nbytes for s, a, nbytes in coming)


def _gets_nothing(rank: _Rank, number: int) -> bool:
    """Whether a call brings nothing in: a send, the root of a broadcast, one that gathers for another rank."""
    event = rank.events[number]
    root = event["op"] == "broadcast" and event["peer"] == rank.number
    return event["kind"] == "send" or not event["outs"] or root
