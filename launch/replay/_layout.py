"""A recorded run as a Schedule has it: buffers and chunks for the regions that its moves touch, and steps of transfers.

A variable is a buffer; two variables of the same size that no rank uses both of (`total` on rank 0, `x` on the others)
are one. Where a move on any rank begins or ends inside a buffer, it is cut on every rank; chunks lie between the cuts.
So the chunks are those of the student's program, even if their sizes differ.

A step has its transfers between chunks, a phase, a sentence, and the lines of the cell that made its calls.

A chunk that is read before it is written held something at the start, and gets a symbol of its rank: `c1`. Chunks that
held the same data (copies of each other, as `replay.provenance` knows) get the same symbol; one that holds other data
than the chunk of that number in an earlier buffer is numbered on, on all ranks alike.

Left out: the numbers in the chunks (`Recording.start_values`), and which step a message belongs to (`replay._replay`).
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cached_property
from typing import NamedTuple

from collectives.as_if import Region
from collectives.captions import NAMED, message, sentence
from collectives.schedule import Transfer
from collectives.state import Cell, empty_cells
from launch.replay._calls import Call, Collective, Message
from launch.replay._contents import Contents
from launch.replay._moves import Move
from launch.replay._places import nameless
from launch.replay.provenance import Piece, Pieces, Value, cut, joined

BUILT_IN = " (built-in)"
MANY = 16  # buffers; with more, no symbols are matched across ranks by the names of variables
WAYS = {"sum": "sum", "max": "maximum", "min": "minimum", "avg": "average", "product": "product"}
WAYS |= {"band": "bitwise and", "bor": "bitwise or", "bxor": "bitwise exclusive or"}


class Layout:
    """`buffers`: names, the one that collects results first; `cuts[name]`: where its chunks begin, and its end, in
    bytes.

    `together`: lists of (rank, place) that are one buffer, since the ranks passed them to one call of a built-in.
    `begin` is what places and variables held before the moves.
    """

    def __init__(self, moves: list[Move], together, begin: Contents):
        self.variables, self.begin = begin.variables, begin
        used: Counter = Counter()  # (rank, place) -> moves
        summed: Counter = Counter()
        for move in moves:
            if move.source is not None:
                used[move.src, move.source.place] += 1
            used[move.dst, move.target.place] += 1
            summed[move.dst, move.target.place] += move.op == "reduce"
        self.full = _full(moves)
        self.names = self._merge(used, _labels(used, together))  # (rank, place) -> buffer
        spoken = _spoken(moves, self.names)
        self.names = {key: spoken.get(name, name) for key, name in self.names.items()}
        self.places = {(rank, name): place for (rank, place), name in self.names.items()}
        weights: dict[str, tuple] = {}
        for key, name in self.names.items():
            sums, moved = weights.get(name, (0, 0))
            weights[name] = (sums - summed[key], moved - used[key])
        size = {name: self.variables[rank].size(place) for (rank, place), name in self.names.items()}
        self.buffers = tuple(sorted(weights, key=lambda name: (-size[name], weights[name], name))) or ("data",)
        self.cuts = self._cut(moves, size)
        self._found: dict[tuple[int, Region], tuple[str, int, int]] = {}

    def _merge(self, used, labels) -> dict[tuple[int, str], str]:
        """Places that are one buffer: those of one name, and those of one size and type that stand for each other."""
        members: dict[str, dict[int, str]] = {}  # label -> rank -> place
        kinds: dict[str, tuple] = {}
        for rank, place in used:
            members.setdefault(labels[rank, place], {})[rank] = place
            memory = self.variables[rank]
            kinds.setdefault(labels[rank, place], (memory.size(place), memory.dtype(place)))
        everywhere = {rank for rank, _ in used}
        names: dict[str, str] = {}
        taken: dict[tuple, dict[str, dict[int, str]]] = {}  # kind -> name -> its members; full names are left out
        for label in sorted(members, key=lambda label: (-len(members[label]), nameless(label), label)):
            here, alike = members[label], taken.setdefault(kinds[label], {})
            name = next((name for name, there in alike.items() if self._together(label, here, name, there)), label)
            names[label] = name
            alike[name] = alike.get(name, {}) | here
            if alike[name].keys() == everywhere:
                del alike[name]
        return {key: names[labels[key]] for key in used}

    def _together(self, label: str, here: dict[int, str], name: str, there: dict[int, str]) -> bool:
        """Whether two names are one buffer: no rank uses both, and a rank that also has an unused variable of the other
        name has the same data in it.

        If a rank sums in `total` what the others have in `x`, and its `total` began as something else than its `x`,
        the two are different buffers. A place that was empty at first may be part of any buffer.
        """
        if here.keys() & there.keys():
            return False
        idle = [(rank, place, name) for rank, place in here.items()]
        idle += [(rank, place, label) for rank, place in there.items()]
        return all(self.begin.alike(*each) for each in idle if each[:2] in self.full)

    def _cut(self, moves: list[Move], size: dict[str, int]) -> dict[str, list[int]]:
        cuts = {name: {0, nbytes} for name, nbytes in size.items()}
        links = set()
        for move in moves:
            into = self.names[move.dst, move.target.place]
            cuts[into] |= {move.target.lo, move.target.hi}
            if move.source is not None:
                out_of = self.names[move.src, move.source.place]
                cuts[out_of] |= {move.source.lo, move.source.hi}
                links.add((out_of, move.source.lo, into, move.target.lo, move.source.hi - move.source.lo))
        changed = True
        while changed:  # a cut in a move's source is also a cut in its target
            changed = False
            for name, lo, other, start, length in links:
                here = {cut - lo for cut in cuts[name] if lo <= cut <= lo + length}
                there = {cut - start for cut in cuts[other] if start <= cut <= start + length}
                if here != there:
                    cuts[name] |= {lo + cut for cut in here | there}
                    cuts[other] |= {start + cut for cut in here | there}
                    changed = True
        return {name: sorted(places) for name, places in cuts.items()}

    @cached_property
    def chunks(self) -> int:
        """Chunks of the buffer that has most."""
        return max((len(cuts) - 1 for cuts in self.cuts.values()), default=1)

    @property
    def chunk_bytes(self) -> list[int]:
        """Bytes of each chunk of the first buffer; 0 for chunks that only other buffers have."""
        cuts = self.cuts.get(self.buffers[0], [0, 0])
        sizes = [after - before for before, after in zip(cuts, cuts[1:], strict=False)]
        return sizes + [0] * (self.chunks - len(sizes))

    def buffer(self, rank: int, region: Region) -> str:
        return self.names[rank, region.place]

    def at(self, rank: int, region: Region) -> tuple[str, int, int]:
        """(buffer, first chunk, number of chunks) of a region; a run meets the same ones again and again."""
        found = self._found.get((rank, region))
        if found is None:
            name = self.names[rank, region.place]
            first = bisect_left(self.cuts[name], region.lo)
            found = self._found[rank, region] = (name, first, bisect_left(self.cuts[name], region.hi) - first)
        return found

    def region(self, rank: int, buffer: str, chunk: int, unused: bool = False) -> Region | None:
        """Where a chunk lies on a rank; None if the rank never used that buffer or it has fewer chunks. With `unused`,
        a variable of that name and size will do."""
        place, cuts = self.places.get((rank, buffer)), self.cuts.get(buffer, ())
        if place is None and unused and cuts and self.variables[rank].sizes.get(buffer) == cuts[-1]:
            place = buffer
        if place is None or chunk + 1 >= len(cuts):
            return None
        return Region(place, cuts[chunk], cuts[chunk + 1])


def _full(moves: list[Move]) -> set[tuple[int, str]]:
    """The (rank, place) that held something before the first of the moves: they were read before they were filled."""
    first: dict[tuple[int, str], bool] = {}
    for move in moves:
        if move.source is not None:
            first.setdefault((move.src, move.source.place), True)
        first.setdefault((move.dst, move.target.place), move.op == "reduce")
    return {key for key, read in first.items() if read}


def _spoken(moves: list[Move], names: dict[tuple[int, str], str]) -> dict[str, str]:
    """What to call buffers that no variable reaches, in the order in which they come up: by what is done with them."""
    sent = dict.fromkeys(names[move.src, move.source.place] for move in moves if move.source is not None)
    filled = dict.fromkeys(names[move.dst, move.target.place] for move in moves)
    spoken: dict[str, str] = {}
    alike: Counter = Counter()
    for name in (name for name in {**sent, **filled} if nameless(name)):
        role = "scratch" if name in sent and name in filled else "sent tensor" if name in sent else "received tensor"
        alike[role] += 1
        spoken[name] = role if alike[role] == 1 else f"{role} {alike[role]}"
    return spoken


def _labels(used, together) -> dict[tuple[int, str], str]:
    """A label for each (rank, place). Unnamed memory, which each rank numbers by itself, gets the same label on all
    ranks that passed it to the same call."""
    labels: dict[tuple[int, str], str] = {}
    given: set[tuple[int, str]] = set()  # (rank, label)
    for number, members in enumerate([*together, *([key] for key in sorted(used))]):
        members = [key for key in members if key in used and nameless(key[1])]
        label = next((labels[key] for key in members if key in labels), f"#{number}")
        for rank, place in members:
            if (rank, place) not in labels and (rank, label) not in given:
                labels[rank, place] = label
                given.add((rank, label))
    return {key: labels.get(key, key[1]) for key in used}


class Symbols:
    """`start`: buffer -> array [rank, chunk] of Cells; `stands_for`: (rank, number) -> the pieces of a symbol. `given`:
    rank -> what it had in the input, if the run was a collective."""

    def __init__(self, layout: Layout, begin: Contents, ranks: int, given: dict[int, list[Piece]]):
        self.layout, self.begin, self.ranks = layout, begin, ranks
        self.stands_for: dict[tuple[int, int], Pieces] = {}
        self.start = {name: empty_cells(ranks, layout.chunks) for name in layout.buffers}
        self._numbers: dict[int, dict[Pieces, int]] = {rank: {} for rank in range(ranks)}
        self._number_by_input(given)
        # Full buffers first: a buffer that is partly filled only has a copy of a part, and the rest is still to arrive.
        order = sorted(layout.buffers, key=lambda name: not self._is_full(name))
        for index, buffer in enumerate(order, bool(self.stands_for)):
            for chunk in range(len(layout.cuts.get(buffer, ())) - 1):
                self._number(index, buffer, chunk)
        self.next = {rank: layout.chunks * (len(layout.buffers) + bool(self.stands_for)) for rank in range(ranks)}

    def _number_by_input(self, given: dict[int, list[Piece]]) -> None:
        """Numbers the data of the input of a collective by where they are in it, wherever else they are: rank 2's `x`
        in `parts[2]` is c0."""
        found: dict[tuple[int, Pieces], tuple[int, int]] = {}  # (first byte, last) in the input
        for rank, content in given.items():
            for buffer in self.layout.buffers:
                for chunk in range(len(self.layout.cuts.get(buffer, ())) - 1):
                    pieces = self._first(rank, buffer, chunk)
                    at = _found_at(pieces[0][2], content) if pieces else None
                    if at is not None:
                        found[rank, pieces] = (at, at + pieces[-1][1])
        spans = sorted({*found.values()})
        if len(spans) <= self.layout.chunks and all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False)):
            for (rank, pieces), span in found.items():
                self._name(rank, spans.index(span), pieces)

    def _is_full(self, buffer: str) -> bool:
        cells = range(len(self.layout.cuts.get(buffer, ())) - 1)
        held = [[bool(self._first(rank, buffer, chunk)) for chunk in cells] for rank in range(self.ranks)]
        return all(all(chunks) or not any(chunks) for chunks in held)

    def _first(self, rank: int, buffer: str, chunk: int) -> Pieces:
        """What a chunk held at first, () for nothing."""
        region = self.layout.region(rank, buffer, chunk)
        pieces = self.begin.of(rank, region) if region else ()
        return () if self.begin.places.is_nothing([value for *_, value in pieces]) else pieces

    def _number(self, index: int, buffer: str, chunk: int) -> None:
        """Gives one chunk of a buffer its symbols."""
        new: dict[int, Pieces] = {}
        for rank in range(self.ranks):
            pieces = self._first(rank, buffer, chunk)
            known = self._numbers[rank].get(pieces)
            if pieces and known is None:
                new[rank] = pieces
            elif known is not None:
                self.start[buffer][rank, chunk] = Cell(((rank, known),))
        clash = new and self._clashes(buffer, chunk, new)
        number = chunk + self.layout.chunks * index if clash else chunk
        for rank, pieces in new.items():
            self._name(rank, number, pieces)
            self.start[buffer][rank, chunk] = Cell(((rank, number),))
        if new and not clash:
            for rank in range(self.ranks):  # ranks that do not use this variable may have the same data elsewhere
                cuts = self.layout.cuts[buffer]
                same = self.begin.at_first(rank, buffer, cuts[chunk], cuts[chunk + 1], cuts[-1])
                if same and same not in self._numbers[rank] and (rank, number) not in self.stands_for:
                    self._name(rank, number, same)

    def _name(self, rank: int, number: int, pieces: Pieces) -> None:
        self.stands_for[rank, number] = pieces
        self._numbers[rank][pieces] = number

    def _clashes(self, buffer: str, chunk: int, new: dict[int, Pieces]) -> bool:
        """Whether other ranks use that number for other data. It is the same data if all of them had it in a variable
        of the same name."""
        if any((rank, chunk) in self.stands_for for rank in new):
            return True
        others = [rank for rank in range(self.ranks) if (rank, chunk) in self.stands_for]
        group = new | {rank: self.stands_for[rank, chunk] for rank in others}
        if len(group) == 1 or len(self.layout.buffers) > MANY:
            return False
        return not set.intersection(*[self._names_of(rank, pieces) for rank, pieces in group.items()])

    def _names_of(self, rank: int, pieces: Pieces) -> set[tuple[str, int]]:
        """(variable, first byte) of each variable that held exactly this at first."""
        size = pieces[-1][1]
        found = set()
        for (r, place), held in self.begin.began.items():
            if r == rank and not nameless(place):
                found |= {(place, p.lo) for p in held.pieces if joined(held.read(p.lo, p.lo + size), p.lo) == pieces}
        return found

    def new(self, move: Move) -> int:
        """The number of the first symbol for what a "new" move brings, a symbol for each chunk of its target."""
        rank, (buffer, first, count) = move.dst, self.layout.at(move.dst, move.target)
        number = self.next[rank]
        self.next[rank] += count
        cuts = self.layout.cuts[buffer]
        for i in range(count):
            lo, hi = cuts[first + i] - move.target.lo, cuts[first + i + 1] - move.target.lo
            self.stands_for[rank, number + i] = joined(cut(move.held, lo, hi))
        return number


def _found_at(value: Value, content: list[Piece]) -> int | None:
    """At which byte of some content a value begins; None if it is not in there."""
    for p in content if value.plain else ():
        at = value.terms[0][1] - p.value.terms[0][1]
        if p.value.plain and p.value.terms[0][0] == value.terms[0][0] and p.lo <= at < p.hi:
            return at
    return None


class Label(NamedTuple):
    """A step of an algorithm that is shown in place of a built-in: `words` say so, `phase` and `in_network` are the
    algorithm's, `calls` are the calls that it replaces."""

    words: str
    phase: str
    in_network: bool
    calls: tuple[Call, ...]


class Shown(NamedTuple):
    """The moves, messages and collectives of a run as shown. `labels`: step -> the what-if calls that it shows."""

    moves: list[Move]
    messages: list[Message]
    collectives: list[Collective]
    labels: dict[int, list[Label]]

    @property
    def numbers(self) -> list[int]:
        """The steps in which anything happens, also if it moves no memory that a snapshot shows."""
        steps = {each.step for some in (self.moves, self.messages, self.collectives) for each in some}
        return sorted({*self.labels, *steps})

    def only(self, steps: set[int]) -> "Shown":
        """What is in those steps."""
        return Shown(
            [move for move in self.moves if move.step in steps],
            [message for message in self.messages if message.step in steps],
            [item for item in self.collectives if item.step in steps],
            {step: labels for step, labels in self.labels.items() if step in steps},
        )


class Steps(NamedTuple):
    """`steps` is what `Schedule.from_steps` takes. Per step: `wrote`, the (rank, buffer, chunk, Spot) of each chunk,
    and `ways`, what each transfer does: "sum", "max" ..., for a new one how it came about, "" for a copy."""

    steps: list[tuple]
    wrote: list[list[tuple]]
    ways: list[list[str]]


def steps_of(shown: Shown, layout: Layout, new, code, divided: dict[int, int]) -> Steps:
    """`new(move)` is the number of the first symbol for what a move brings that has no source, `code(call)` is (line,
    text) of the line that made a call, `divided`: step -> by what ranks divide its outcome, which has no move."""
    labels = shown.labels
    by_step, calls, built_in = defaultdict(list), defaultdict(list), defaultdict(list)
    for move in shown.moves:
        by_step[move.step].append(move)
    for item in (*shown.messages, *shown.collectives):
        calls[item.step] += item.calls
        if isinstance(item, Collective):
            built_in[item.step].append(item.calls[0].event["op"])
    steps, wrote, ways = [], [], []
    for number in shown.numbers:
        transfers, last, here = [], {}, {}
        for move in by_step[number]:
            transfers.append(_transfer(move, layout, new))
            last.pop((move.dst, move.target), None)
            last[move.dst, move.target] = move
        for move in last.values():
            buffer, first, count = layout.at(move.dst, move.target)
            cuts, span = layout.cuts[buffer], move.spot.span
            at = span.lo - move.target.lo
            for i in range(first, first + count):
                part = span._replace(lo=at + cuts[i], hi=at + cuts[i + 1])
                here[move.dst, buffer, i] = move.spot._replace(span=part)
        phase = " and ".join(dict.fromkeys(built_in[number])) + BUILT_IN if built_in[number] else _phase(transfers)
        for each in labels.get(number, ()):
            phase, calls[number] = each.phase, calls[number] + [*each.calls]
        effect = bool(built_in[number]) and number not in labels
        sources = sorted({(call.rank, *code(call)) for call in calls[number]})
        ways.append([move.how for move in by_step[number]])
        caption = _caption(phase, effect, transfers, ways[-1], layout.chunks)
        words = dict.fromkeys(each.words for each in labels.get(number, ()))
        caption = f"{' and '.join(words)}: {caption}" if words else caption
        if number in divided:
            shows = "." if "avg" in ways[-1] else "; the picture shows the sum."
            caption += f" Then the sum is divided by {divided[number]}{shows}"
        in_network = any(each.in_network for each in labels.get(number, ()))
        steps.append((phase, caption, transfers, sources, effect, in_network))
        wrote.append([(*cell, spot) for cell, spot in here.items()])
    return Steps(steps, wrote, ways)


def _transfer(move: Move, layout: Layout, new) -> Transfer:
    here, target, count = layout.at(move.dst, move.target)
    if move.source is None:
        return Transfer(move.src, move.dst, new(move), "new", count, target, here, here)
    there, chunk, _ = layout.at(move.src, move.source)
    return Transfer(move.src, move.dst, chunk, move.op, count, target, there, here)


def _phase(transfers) -> str:
    if transfers and all(transfer.op == "new" for transfer in transfers):
        return "compute"
    return "reduce" if any(transfer.op == "reduce" for transfer in transfers) else "copy"


def _caption(phase: str, effect: bool, transfers, ways: list[str], chunks: int) -> str:
    """One sentence: what the step does, and its first messages."""
    reductions = {way for way, t in zip(ways, transfers, strict=True) if t.op == "reduce"}
    result = "" if reductions <= {"sum"} else " or ".join(f"the {WAYS.get(way, way)}" for way in sorted(reductions))
    if effect:
        says = f"The library's {phase.removesuffix(BUILT_IN)}, as its effect: what the library sends cannot be seen."
        return f"{says} It takes {result}." if result else says
    says = f"What arrives is {'added' if reductions else 'kept'}"
    if result:
        says = f"Each rank keeps {result} of what arrives and what it has"
    sent = [t for t in transfers if t.src != t.dst]
    if not sent:
        if phase == "compute":
            return "Ranks put data of their own making in place."
        return f"Ranks take {result} of what they have." if result else "Ranks add or copy what they have."
    messages = [message(t.src, t.dst, [(t.chunk, t.count)], chunks) for t in sent[:NAMED]]
    return sentence(says, messages, len(sent) > NAMED)


def listed(ops: list[str]) -> str:
    """ "all_gather, broadcast and all_reduce"; of more than four only the first three."""
    named = ops if len(ops) <= 4 else [*ops[:3], f"{len(ops) - 3} more"]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
