"""What a picture of the run shows: messages, effects of built-ins, and what ranks did with what they had received.

`moves_of` picks, out of everything that happened, the transfers between places that are worth showing:

* A message goes from place to place. If the tensor that it was received into is read only once, to be added or copied
  somewhere in the same step, it is one move to there: a scratch tensor is not worth a row. Likewise, a copy that was
  made only to be sent is shown as the original.
* What a rank did by itself is shown if it changed a place that was in a call, or combined received data. Data that is
  neither a copy nor a reduction of other data is "new".
* Data that nothing reads again is left out. So is a multiplication by 1/p, unless what it divides is a sum of p
  terms: then their average is copied there.

Left out: which buffer a place belongs to, and chunks (`replay._layout`); names (`replay._outcome`).
"""

import re
from collections import defaultdict
from itertools import chain
from typing import NamedTuple

from collectives.as_if import Region
from launch.replay._calls import Call, Message, effect
from launch.replay._contents import Contents
from launch.replay._memory import Write
from launch.replay._places import LocalWrite, Places, Spot, Use, nameless
from launch.replay._replay import Replay
from launch.replay.provenance import Kind, Piece, Ranges, Span, Value, cut, moved

MADE = {
    Kind.EMPTY: "never filled",
    Kind.OUTSIDE: "changed outside torch",
    Kind.LIBRARY: "left by the library",
    Kind.UNSEEN: "changed in a way that was not seen",
}

ARRIVALS, ALL = 1, 2  # what is never left out at a place: arrivals and divisions; also copies that are sent


class Move(NamedTuple):
    """Bytes of `source` at rank `src` replace those of `target` at rank `dst`, or are combined with them (`reducing`).

    `spot` is where the outcome can be seen, `held` are the pieces that the source held, counted from its first byte,
    `origin` is where they could be seen. `calls` is () for the student's own arithmetic.
    """

    step: int
    src: int
    dst: int
    source: Region | None  # None: new data, which `held` describes
    target: Region
    spot: Spot
    held: tuple[Piece, ...] = ()
    origin: Spot | None = None
    calls: tuple[Call, ...] = ()
    nbytes: int = 0
    op: str = "copy"  # "reduce", "new"
    how: str = ""  # "sum", "max" ... of a reduce; of new data, how it came about; "avg" of a copy: see `LocalWrite`
    onto: tuple[Piece, ...] = ()  # what the target of a reduce held
    under: Spot | None = None  # where that could be seen

    def reducing(self, how: str, onto: tuple[Piece, ...], under: Spot | None = None) -> "Move":
        """The same, combined with what was there."""
        return self._replace(op="reduce", how=how, onto=onto, under=under)

    @classmethod
    def new(cls, step: int, target: Region, spot: Spot, how: str, held: tuple[Piece, ...]) -> "Move":
        return cls(step, spot.rank, spot.rank, None, target, spot, held, op="new", how=how)


def moves_of(replay: Replay, wanted: frozenset = frozenset()) -> tuple[list[Move], Places, Contents]:
    """The moves in order of their steps, the places that they go between, and what these hold. `wanted`: (rank, place)
    that are shown even if nothing of them was sent.

    Leaving out the scratch tensor or the copy that a message went through is a claim. `Contents` compares the moves
    with what the ranks really held; for places where they disagree, nothing is left out. If they still do, what was
    really there is put in place."""
    told: dict[tuple[int, str], int] = {}
    while True:
        picker = _Picker(replay, told, wanted)
        moves, places = picker.moves()
        contents = Contents(moves, replay, places)
        wrong = {key for key in contents.wrong if told.get(key, 0) < ALL}
        if not wrong:
            for at, rank, region, spot, held in reversed(contents.put_right):
                step = moves[at].step - bool(moves[at].calls) if at < len(moves) else moves[-1].step
                moves.insert(at, Move.new(step, region, spot._replace(rank=rank), MADE[Kind.UNSEEN], tuple(held)))
            return moves, places, contents
        told |= {key: told.get(key, 0) + 1 for key in wrong}


class _Picker:
    def __init__(self, replay: Replay, told: dict[tuple[int, str], int], wanted: frozenset):
        self.replay, self.leaves, self.variables = replay, replay.leaves, replay.variables
        self.told = told  # (rank, place) -> ARRIVALS or ALL
        renewed = {(rank, re.sub(r" \d+$", "", place)) for rank, place in told}
        self.done: dict[int, list[LocalWrite]] = {}
        for rank, writes in replay.writes.items():
            mine = self.done[rank] = []
            for write in writes:
                if write.found and (rank, self._name(write)) not in renewed:
                    continue  # what a name's new memory holds is shown only if the picture has something else there
                if not (mine and mine[-1].takes(write)):
                    mine.append(LocalWrite(write))
        self.at_row: dict[tuple[int, float], list[LocalWrite]] = defaultdict(list)
        for done in chain(*self.done.values()):
            self.at_row[done.rank, done.row].append(done)
        self.uses = self._uses()
        self.places = Places(self.variables, self.uses)
        self._find_steps()
        self.begun: dict[tuple[int, str], float] = {}  # (rank, place) -> the row of its first use in a call
        self.filled: set[tuple[int, str]] = set()  # (rank, place) that changes after the rank's first call
        self.begins: dict[int, float] = {}
        self._sort_places()
        for rank, place in wanted:
            self._show(rank, place, self.begins.get(rank, 0))
        self.places.nothing = self._zeros_that_begin_sums()
        self.scales = {1 / len(self.variables), *(1 / len(item.ranks) for item in replay.collectives)}
        for mine in self.done.values():
            for done in mine:
                self._understand(done)

    def _name(self, write: Write) -> str:
        return self.variables[write.rank].locate(write.span).place

    def _sort_places(self) -> None:
        """What each place is used for."""
        begins = self.begins  # rank -> the row at which its first call reads or writes anything
        for (rank, _), uses in self.uses.items():
            row = next((use.row for use in uses if not isinstance(use.by, LocalWrite)), None)
            if row is not None:
                begins[rank] = min(row, begins.get(rank, row))
        for (rank, _), uses in self.uses.items():
            for use in uses:
                key = (rank, self.places.of(rank, use.span).place)
                if not isinstance(use.by, LocalWrite):
                    self.begun[key] = min(use.row, self.begun.get(key, use.row))
                if use.writes and rank in begins and use.row >= begins[rank]:
                    self.filled.add(key)

    def moves(self) -> tuple[list[Move], Places]:
        self._choose()
        moves = []
        for message in self.replay.messages:
            moves += self._message(message)
        for rank in self.done:
            for done in self.done[rank]:
                if done.drawn:
                    moves += self._own(done)
        for item in self.replay.collectives:
            moves += self._effects(item)
        # Within a step: calls first, then what ranks did themselves, in their order.
        moves.sort(key=lambda move: (move.step, not move.calls, move.src if move.calls else move.spot.row, move.dst))
        return moves, self.places

    def _uses(self) -> dict[tuple[int, int], list[Use]]:
        found: dict[tuple[int, int], list[Use]] = defaultdict(list)
        for item in self.replay.matched:
            for call in item.calls:
                for side, end in (("ins", False), ("outs", True)):
                    for span in filter(None, call.event[side]):
                        found[call.rank, span.storage].append(Use(self.replay.row_of(call, end), end, span, item))
        for rank, mine in self.done.items():
            for done in mine:
                if self._is_empty(done):
                    continue
                found[rank, done.span.storage].append(Use(done.row, True, done.span, done))
                for term in done.terms:
                    found[rank, term.span.storage].append(Use(done.since, False, term.span, done))
        for uses in found.values():
            uses.sort(key=lambda use: (use.row, use.writes))
        return found

    def _find_steps(self) -> None:
        """The step of each local write: as early as possible, but not before its operands are there, nor before the old
        data has been sent."""
        by_rank: dict[int, list[Use]] = defaultdict(list)
        for (rank, _), uses in self.uses.items():
            by_rank[rank] += uses
        for rank, mine in by_rank.items():
            written, read = defaultdict(Ranges), defaultdict(Ranges)  # place -> ranges -> step
            for use in sorted(mine, key=lambda use: use[:2]):
                region = self.places.of(rank, use.span)
                here = (region.lo, region.hi)
                if not isinstance(use.by, LocalWrite):
                    (written if use.writes else read)[region.place].write(*here, use.by.step)
                elif use.writes:
                    from_ = [self.places.of(rank, term.span) for term in use.by.terms]
                    steps = [p.value for each in [*from_, region] for p in written[each.place].read(each.lo, each.hi)]
                    use.by.step = max([0, *steps, *(p.value for p in read[region.place].read(*here))])
                    written[region.place].write(*here, use.by.step)

    def _zeros_that_begin_sums(self) -> set[int]:
        """Zeros that are no data of a rank, and memory that was never filled. Zeros are data if they are sent as they
        were at first, if another rank sends what it has in a variable of that name, or if their variable never
        changes."""
        sent: dict[int, set[int]] = defaultdict(set)  # rank -> leaves
        for item in self.replay.matched:
            for call in item.calls:
                for pieces in item.carries.get(call.rank, ()):
                    if pieces and all(self.leaves.is_own(p.value, call.rank) for p in pieces):
                        sent[call.rank] |= {leaf for p in pieces for leaf, _, _ in p.value.terms}
        first = {rank: [b for b in memory.bindings if b.snapshot == 0] for rank, memory in self.variables.items()}
        at_first = {  # rank -> name -> leaves
            rank: {
                b.path: {leaf for p in self.replay.held_first(rank, b.span) for leaf, _, _ in p.value.terms}
                for b in bindings
            }
            for rank, bindings in first.items()
        }
        names = {name for rank, held in at_first.items() for name, leaves in held.items() if leaves & sent[rank]}
        found = {leaf for held in at_first.values() for name in names & held.keys() for leaf in held[name]}
        for rank, bindings in first.items():
            for b in bindings:
                if (rank, self.variables[rank].locate(b.span).place) not in self.filled:
                    found |= at_first[rank][b.path]
        all_sent = set().union(*sent.values())
        zeros, empty = (
            {n for n, leaf in enumerate(self.leaves.all) if leaf.kind is kind} for kind in (Kind.ZERO, Kind.EMPTY)
        )
        return (zeros - found | empty) - all_sent

    # -- which writes are shown

    def _choose(self) -> None:
        """Marks the local writes that are worth showing; the places that they read are shown too."""
        again = True
        while again:
            again = False
            for rank, mine in self.done.items():
                for done in mine:
                    if not done.drawn and self._worth(rank, done):
                        done.drawn = again = True
                        self._show(rank, done.region.place, done.row)
                        for part in done.parts:
                            self._show(rank, self.places.of(rank, part.span).place, done.since)

    def _show(self, rank: int, place: str, row: float) -> None:
        self.begun[rank, place] = min(row, self.begun.get((rank, place), row))

    def _worth(self, rank: int, done: LocalWrite) -> bool:
        own = all([self.leaves.is_own(write.value, rank) for write in done.pieces])
        begun = self.begun.get((rank, done.region.place))
        if begun is not None:
            early = done.row < (self.begins.get(rank, begun) if len(done.parts) > 1 else begun)
            if own and early or self._unread(done):
                return False
            if self._scales(done):
                self.places.divided[done.step] = round(1 / done.terms[0].times)
                return done.averages
            return not self._is_empty(done)
        if own or not done.tellable:
            return False
        if len(done.parts) > 1 or done.how != "sum" or done.averages:
            return True
        # A copy of received data is worth showing only if it is left at the end and the original is not.
        memory = self.variables[rank]
        if not done.parts or not memory.is_left(done.span):
            return False
        original = done.parts[0].span
        return not memory.is_left(original) or self.places.next_write(Spot(rank, original, done.since)) is not None

    def _is_empty(self, done: LocalWrite) -> bool:
        """Whether this is memory that was allocated and never filled."""
        return all([self.leaves.all[w.value.terms[0][0]].kind is Kind.EMPTY for w in done.pieces])

    def _understand(self, done: LocalWrite) -> None:
        """Its operands, now that it is known which zeros only begin a sum."""
        done.region = self.places.of(done.rank, done.span)
        held = [done.values(term.number) for term in done.terms]
        sums = len(held) > 1 and done.how == "sum"
        done.parts = [t for t in done.terms if not (sums and self.places.is_nothing(held[t.number]))]
        leaves = {leaf for values in held for value in values for leaf, _, _ in value.terms}
        once = bool(held) and all([term.times == 1 for term in done.terms])
        done.averages = len(done.parts) == len(done.terms) and self._averages(done, held)
        filled = not any([self.leaves.all[leaf].kind is Kind.EMPTY for leaf in leaves])
        done.tellable = (once or done.averages) and filled

    def _averages(self, done: LocalWrite, held: list[list[Value]]) -> bool:
        """Whether it divides a sum of n terms by n, where n ranks take part, or puts together n terms in that way."""
        times = {term.times for term in done.terms}
        if len(times - {1}) != 1 or not times <= self.scales or (done.rank, done.region.place) in self.told:
            return False
        count = round(1 / times.pop())
        sums = [self.places.cleaned(value) for values in held for value in values]
        each = {(value.how, *(n for *_, n in value.terms)) for value in sums}
        return len(held) in (1, count) and each == {("sum", *[1] * (count // len(held)))}

    def _scales(self, done: LocalWrite) -> bool:
        """Whether it divides a sum in place by the number of ranks: a mean of the same data."""
        if (done.rank, done.region.place) in self.told or len(done.terms) != 1:
            return False
        times, held = done.terms[0].times, [self.places.cleaned(value) for value in done.values(0)]
        sums = all([value.how == "sum" and len(value.terms) > 1 for value in held])
        return times in self.scales and times != 1 and sums and self._from(done, 0) == done.region

    def _unread(self, done: LocalWrite) -> bool:
        """Whether it is overwritten before anything has read it."""
        for use in self.places.after(done.spot):
            # In the row itself a call may have ended that left it there.
            if use.by is not done and (use.row > done.row or isinstance(use.by, LocalWrite)):
                return use.writes and use.span.holds(done.span)
        return False

    # -- what they look like

    def _message(self, message: Message) -> list[Move]:
        out, into = message.send.event["ins"][0], message.receive.event["outs"][0]
        if out is None or into is None:
            return []
        source = self._sent(message, out)
        target = self.places.of(message.dst, into)
        if source.hi - source.lo != target.hi - target.lo:
            return []
        spot = Spot(message.dst, into, self.replay.row_of(message.receive, True))
        origin = Spot(message.src, out, self.replay.row_of(message.send, False))
        held, ends = tuple(message.carries[message.src][0] or ()), (message.src, message.dst, source, target)
        move = Move(message.step, *ends, spot, held, origin, message.calls, message.nbytes)
        if message.changed:
            return [move, Move.new(message.step, target, spot, "changed while it was being sent", held)]
        if found := self._passed_on(message, spot):
            done, number = found
            done.folded.add(number)
            return [self._combined(move._replace(target=done.region, spot=done.spot), done, number)]
        return [move]

    def _sent(self, message: Message, out: Span) -> Region:
        """Where what is sent is: if it is a copy that was made to be sent, where that was copied from."""
        rank, region = message.src, self.places.of(message.src, out)
        row = self.replay.row_of(message.send, False)
        uses = self.uses[rank, out.storage]
        if len(uses) != 2 or not isinstance(uses[0].by, LocalWrite) or uses[0].row >= row:
            return region  # such a copy is made, sent, and used for nothing else
        done = uses[0].by
        if not done.tellable or done.averages or len(done.terms) != 1 or done.span != out:
            return region
        origin = self._from(done, 0)
        if self.told.get((rank, origin.place)) == ALL:
            return region
        if not nameless(region.place) and (rank, origin.place) not in self.filled:
            return region  # of an input, and with a name: that is what the rank works with
        changed = self.places.next_write(Spot(rank, done.terms[0].span, done.since))
        whole = self.variables[rank].size(origin.place) == out.hi - out.lo
        if (changed is not None and changed < row) or (whole and not nameless(region.place)):
            return region
        done.drawn = False
        return origin

    def _passed_on(self, message: Message, spot: Spot):
        """(what it was put into, as which term) of something received that was read once, in the same step, there."""
        rank, reader = message.dst, None
        if (rank, self.places.of(rank, spot.span).place) in self.told:
            return None
        for use in self.places.after(spot):
            if use.by is message:
                continue
            if use.writes and not (reader and reader.row == use.row and reader is use.by):
                break
            if isinstance(use.by, LocalWrite) and not use.by.drawn:
                continue
            if not isinstance(use.by, LocalWrite) or reader not in (None, use.by):
                return None
            if use.span != spot.span:
                return None
            reader = use.by
        if reader is None or reader.step != message.step or not reader.tellable or not reader.parts:
            return None
        if reader.span.storage == spot.span.storage or (rank, reader.region.place) in self.told:
            return None
        if self._overlaps(reader):
            return None
        number = next((term.number for term in reader.terms if term.span == spot.span), None)
        if number is None:
            return None
        base = self._base(reader)
        if number == base:  # if others are added to it, it is copied there first
            return None if len(reader.parts) > 1 else (reader, number)
        fits = self._from(reader, base) == reader.region or self._is_own(reader, base)
        return (reader, number) if fits else None

    def _from(self, done: LocalWrite, number: int) -> Region:
        """Where one of the terms was read."""
        return self.places.of(done.rank, done.terms[number].span)

    def _is_own(self, done: LocalWrite, number: int) -> bool:
        """Whether a term is the rank's own data."""
        return all([self.leaves.is_own(value, done.rank) for value in done.values(number)])

    def _base(self, done: LocalWrite) -> int:
        """Of what has parts: the term that is there before the others are added to it, what the place held, else the
        rank's own data."""
        numbers = [part.number for part in done.parts]
        there = (number for number in numbers if self._from(done, number) == done.region)
        own = (number for number in numbers if self._is_own(done, number))
        return next(chain(there, own, numbers))

    def _combined(self, move: Move, done: LocalWrite, number: int) -> Move:
        """The move with what that term does to the place: a copy, or a reduction with what was there."""
        base = self._base(done)
        if number == base:
            return move._replace(how="avg") if done.averages and len(done.terms) == 1 else move
        under = Spot(done.rank, done.terms[base].span, done.since)
        return move.reducing(done.how, done.held(base), under)

    def _own(self, done: LocalWrite) -> list[Move]:
        """What a rank did itself, without the parts that are told as messages."""
        rank, region, step = done.rank, done.region, done.step
        result = tuple(moved([Piece(w.span.lo, w.span.hi, w.value) for w in done.pieces], done.span.lo))
        if not done.tellable or not done.parts:
            leaves = [leaf for w in done.pieces for leaf, _, _ in w.value.terms]
            words = [MADE.get(self.leaves.all[leaf].kind, "") for leaf in leaves]
            made = [w.value.terms[0][0] for w in done.pieces if w.value.plain]  # else it was made of such leaves
            words += [f"computed with {by}" for leaf in made if (by := self.leaves.made_by.get(leaf))]
            word = next(filter(None, words), "computed")
            return [Move.new(self._late(done), region, done.spot, word, result)]
        base, moves = self._base(done), []
        through, unseen_there = region, done.spot._replace(span=done.span._replace(storage=-1))
        if self._overlaps(done):
            memory = self.variables[rank]
            size, dtype = memory.size(region.place), memory.dtype(region.place)
            through = region._replace(place=memory.imagine("temporary", size, dtype))
        for number, span, _ in sorted(done.parts, key=lambda part: part.number != base):
            source = self._from(done, number)
            if number in done.folded or (number == base and source == through and len(done.terms) > done.averages):
                continue
            # What a message is added to must be there before: the messages of a step come first in it.
            at = step - (number == base and bool(done.folded))
            alone = number != base or len(done.parts) == 1  # else it never was there
            spot = done.spot if alone else unseen_there
            if through is not region:
                spot = unseen_there._replace(row=min(done.since, done.row - 0.5))  # before any of the op is written
            origin = Spot(rank, span, done.since)
            move = Move(at, rank, rank, source, through, spot, done.held(number), origin)
            moves.append(self._combined(move, done, number))
        if through is not region:
            moves.append(Move(step, rank, rank, through, region, done.spot, result))
        return moves

    def _overlaps(self, done: LocalWrite) -> bool:
        """Whether what it overwrites is read again by the same op: `x[1:-1] = x[:-2] + x[2:]`, `x[:] = x.roll(1)`."""
        others = [other for other in self.at_row[done.rank, done.row] if other is not done] if done.parts else []
        mine = done.region
        sources = [(each, self._from(each, part.number)) for each in [done, *others] for part in each.parts]
        read = [s for each, s in sources if s.place == mine.place and (s != mine or each is not done)]
        return any(s.lo < mine.hi and mine.lo < s.hi for s in read)

    def _late(self, done: LocalWrite) -> int:
        """The step before the one in which new data go out; the earliest that it can be, if they never do."""
        for use in self.places.after(done.spot):
            if use.by is not done:
                late = use.by.step - 1 if not use.writes and not isinstance(use.by, LocalWrite) else 0
                return max(done.step, late)
        return done.step

    def _effects(self, item) -> list[Move]:
        calls, moves = {call.rank: call for call in item.calls}, []
        how = item.calls[0].event["reduce"].lower() or "sum"
        given: dict[tuple[int, Region], tuple] = {}  # (rank, region) -> what a rank gave to the call, and where
        taken: dict[tuple[int, Region], Spot] = {}
        for src, dst, source, target, op in effect(item, self.places.tensor):
            for rank, region in ((src, source), (dst, target)):
                if (rank, region) not in given:
                    given[rank, region] = given_to(self.replay, self.places, item, calls[rank], region)
            if (dst, target) not in taken:
                taken[dst, target] = left_by(self.replay, self.places, calls[dst], target)
            held, origin = given[src, source]
            own = src == dst and item.calls[0].event["reduce"] != ""  # put in its place before others are added to it
            spot = origin if own and origin else taken[dst, target]
            move = Move(item.step - own, src, dst, source, target, spot, held, origin, item.calls)
            moves.append(move.reducing(how, *given[dst, target]) if op == "reduce" else move)
        return moves


def given_to(replay: Replay, places: Places, item, call: Call, region: Region) -> tuple[tuple[Piece, ...], Spot | None]:
    """What a rank held in a region when it made a call, counted from the region's first byte, and where."""
    for span, pieces in zip(call.event["ins"], item.carries.get(call.rank, ()), strict=False):
        if span and pieces and (part := _part(places, call.rank, span, region)):
            held = cut(pieces, part.lo - span.lo, part.hi - span.lo)
            return tuple(held), Spot(call.rank, part, replay.row_of(call, False))
    return (), None


def left_by(replay: Replay, places: Places, call: Call, region: Region) -> Spot:
    """Where what a call has left in a region can be seen."""
    for span in call.event["outs"]:
        if span and (part := _part(places, call.rank, span, region)):
            return Spot(call.rank, part, replay.row_of(call, True))
    return unseen(call.rank, region)


def unseen(rank: int, region: Region) -> Spot:
    """No snapshot shows what came to a region."""
    return Spot(rank, Span(-1, region.lo, region.hi), -1)


def _part(places: Places, rank: int, span: Span, region: Region) -> Span | None:
    """Where in the memory of a call's tensor a region is; None if it does not lie in it."""
    whole = places.of(rank, span)
    by = span.lo - whole.lo
    inside = whole.place == region.place and whole.lo <= region.lo and region.hi <= whole.hi
    return span._replace(lo=region.lo + by, hi=region.hi + by) if inside else None
