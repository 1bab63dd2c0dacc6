"""Which collective a recorded run was, of which variable, and by whose algorithm: a proof, or no name.

Every variable that the ranks had at their first call may be the input, every one that they have at the end of the cell
may hold the result. A run is an all_reduce if one of the latter is, byte by byte and on every rank, what
an all_reduce makes of one of the former. What variables hold is taken from the replay of the op logs
(`replay._replay`), to the last line of the cell; it does not depend on the numbers, nor on the picture.

The algorithm has a name if its messages are those of `collectives.all_reduce.ring`: the same ranks send each other as
much of the same ranks' data.

Left out: ranks that call their results by different names, but for one that has no variable of the others' name; what
a variable is made of if it is no collective's result (`replay._made_of`).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial
from inspect import signature
from itertools import accumulate, chain
from math import gcd
from operator import mul
from typing import NamedTuple

from collectives.as_if import HELD, REDUCING, ROOTED
from collectives.catalogue import CATALOGUE
from collectives.errors import ScheduleError
from collectives.schedule import Schedule
from collectives.state import State
from launch.replay._calls import Collective, Message, kind_of
from launch.replay._places import Binding, content, elements
from launch.replay._replay import Replay
from launch.replay.provenance import Kind, Piece, Ranges, Value, cut, joined, meeting, moved

HANDING_OUT = ("broadcast", "scatter")
MOST_ROWS = 512  # of a matrix into whose columns something is gathered
VALUE = "the cell's value"

Content = list[Piece]  # of a variable, counted from its first byte
Promise = dict[int, tuple[int, int, Content]]
"""Rank -> the bytes of its variable, at which of them its part begins, and what that is made of."""


class Found(NamedTuple):
    """`of` and `into` are names of variables, `given` is what ranks had in the first. `held[rank]` is (name, first
    byte, end) of what holds a rank's result. `how` is "sum", "average", "max" ... of a collective that reduces."""

    collective: str = "recorded"
    algorithm: str = "recorded"
    root: int | None = None
    of: str = ""
    into: str = ""
    held: dict[int, tuple[str, int, int]] = {}
    given: dict[int, Content] = {}
    how: str = ""


class Namer:
    """`find` names the run; `nothing`: leaves of zeros that only begin sums, and of memory that was never filled."""

    def __init__(self, replay: Replay, nothing: set[int], last_written: Callable):
        self.replay, self.variables, self.nothing = replay, replay.variables, nothing
        self.last_written = last_written
        self.ranks = sorted(self.variables)
        self.starts = {rank: self._starts(rank) for rank in self.ranks}
        self.wider: dict[tuple[int, str], int] = {}  # (rank, variable) -> see `Types.as_before`
        self.ends = {rank: self._ends(rank) for rank in self.ranks}
        self._promised: dict[tuple, list] = {}

    def find(self) -> list[Found]:
        """What the run was, once for each variable that holds the result: first the one that the cell shows, then the
        one that was written last; [] if it was no collective."""
        complete = self.ranks == [*range(len(self.ranks))] and all(map(self.replay.seen, self.ranks))
        if not self.replay.matched or not complete:
            return []
        rootless = [(name, None) for name in HELD if name not in ROOTED]
        for collective, root in [*rootless, *((name, root) for name in ROOTED for root in self.ranks)]:
            if found := [*self._as(collective, root)]:
                return found
        return []

    def _as(self, collective: str, root: int | None) -> Iterator[Found]:
        for result in self.results:
            for name in self.names if collective in HANDING_OUT else self.inputs:
                held, how = self._holds(collective, root, name, result)
                keeps = held[root][0] if held and root is not None and collective == "reduce" else ""
                scan = bool(keeps) and self._is_scan(name, keeps)
                if held and self._nothing_else(collective, root, name) and not (scan and self._sends_twice(name)):
                    how = "prefix sums" if scan and how == "sum" else how
                    algorithm = self._algorithm(collective, root, name, held)
                    given = {rank: self.starts[rank][name] for rank in self.ranks if name in self.starts[rank]}
                    stays = all(where[0] == name or self._stays(rank, name, result) for rank, where in held.items())
                    into = name if stays else result
                    held = {r: (v, lo * self.wider[r, v], hi * self.wider[r, v]) for r, (v, lo, hi) in held.items()}
                    yield Found(collective, algorithm, root, name, into, held, given, how)

    @cached_property
    def results(self) -> list[str]:
        """The largest come first, since a part of the result is none. Of several, the one that the cell shows, by the
        name that it has; then the one that was written last, and a tensor before a list of its parts."""
        names = sorted({name for rank in self.ranks for name in self.ends[rank]})
        shown = [name for name in names if all(self._memory(r, name) == self._memory(r, VALUE) for r in self.ranks)]
        names = [name for name in names if name != VALUE or shown == [VALUE]]
        return sorted(names, key=lambda name: self._late(name, name in shown), reverse=True)

    def _memory(self, rank: int, name: str) -> list:
        return elements(self.variables[rank].last(name))

    def _stays(self, rank: int, name: str, result: str) -> bool:
        """Whether the result is in the memory that `name` had at the first call."""
        first = self._bound_first(rank)
        return name in first and elements(first[name]) == self._memory(rank, result)

    def _late(self, name: str, shown: bool) -> tuple[int, bool, int, bool]:
        here = [rank for rank in self.ranks if name in self.ends[rank]]
        nbytes = max(self.ends[rank][name][-1].hi for rank in here)
        written = max(self.last_written(rank, name) for rank in here)
        return nbytes, shown, written, any(self.variables[rank].last(name)[0].index is None for rank in here)

    # -- what variables held

    def _starts(self, rank: int) -> dict[str, Content]:
        found = {}
        for name, bound in self._bound_first(rank).items():
            held = content(elements(bound), partial(self.replay.held_first, rank))
            if held and sum(p.hi - p.lo for p in held) == sum(hi - lo for _, lo, hi in elements(bound)):
                found[name] = held
        return found

    def _bound_first(self, rank: int) -> dict[str, list[Binding]]:
        return self.variables[rank].at(self.replay.ranks[rank].first_snapshot)

    def _ends(self, rank: int) -> dict[str, Content]:
        held, before = self.replay.ends[rank].held, self.replay.ranks[rank].meaning.types.as_before
        found = {
            name: before(content(elements(b), held), self._begun_with) for name, b in self.variables[rank].left.items()
        }
        self.wider |= {(rank, name): by for name, (_, by) in found.items()}
        return {name: pieces for name, (pieces, _) in found.items() if pieces}

    @cached_property
    def _begun_with(self) -> set[int]:
        starts = chain(*(start.values() for start in self.starts.values()))
        return {t[0] for pieces in starts for p in pieces for t in p.value.terms}

    @cached_property
    def names(self) -> list[str]:
        return [*dict.fromkeys(name for rank in self.ranks for name in self.starts[rank])]

    @cached_property
    def inputs(self) -> list[str]:
        """Variables of which each rank's may be its part of one input. One that copies another variable on most ranks
        and was made otherwise on the rest is none: `y = x.clone()`, and then `y += x` on rank 0."""
        return [name for name in self.names if not any(self._tampered(name, other) for other in self.names)]

    def _tampered(self, name: str, other: str) -> bool:
        copied = made = 0
        for rank in self.ranks if other != name else ():
            mine, theirs = (self.starts[rank].get(each, []) for each in (name, other))
            if not mine or not theirs or mine[-1].hi != theirs[-1].hi:
                continue
            if joined(mine) == joined(theirs):  # a list of chunks, too
                copied += 1
            else:  # the one that was made later, or, if factors cancel, of what the other was made of
                first, last = ([t[0] for p in parts for t in p.value.terms] for parts in (theirs, mine))
                inside = [self.replay.leaves.inside[leaf] for leaf in first if leaf in self.replay.leaves.inside]
                filled = all(
                    self.replay.leaves.all[leaf].kind not in (Kind.ZERO, Kind.EMPTY) for leaf in first[:1] + last[:1]
                )
                made += filled and (max(last) > max(first) or any(max(last) == t[0] for v in inside for t in v.terms))
        return 0 < made <= copied

    # -- whether a variable holds what a collective makes of another

    def _holds(self, collective: str, root: int | None, name: str, result: str) -> tuple[dict, str]:
        """Where each rank holds its part of the result, and how it was reduced; {} if one of them does not."""
        for parts in self._promises(collective, root, name, self._rows(result) if "gather" in collective else ()):
            found: dict[int, tuple[str, int, int]] = {}
            scales: set[float] = set()
            ways: set[str] = set()
            for rank, (size, at, expected) in parts.items():
                for variable in self._may_hold(rank, collective, root, name, result):
                    content = self.ends[rank][variable]
                    end = at + expected[-1].hi
                    fits = content[-1].hi == size
                    if fits and collective == "scatter":
                        fits = self._rest_stayed(name, content, at, end)
                    if fits and (scale := self._is(content, at, expected, ways)):
                        found[rank] = (variable, at, end)
                        scales.add(scale)
                        break
                else:
                    break
            if collective in ("scatter", "reduce_scatter") and self._all_have_more(root, parts, found):
                continue
            mean = 1 / len(self.ranks) if collective in REDUCING else 1
            if len(found) == len(parts) and len(scales) == 1 and len(ways) <= 1 and scales <= {1, round(mean, 9)}:
                return found, "average" if scales == {round(mean, 9)} != {1} else min(ways, default="")
        return {}, ""

    def _may_hold(self, rank: int, collective: str, root: int | None, name: str, result: str) -> list[str]:
        """The variables that may hold a rank's part: that of the common name; any, where there is none, or where the
        others work in the input; and what a root hands out may stay where it was."""
        here = self.ends[rank]
        first = [result] if result in here else []
        if result not in here or (result == name and collective not in HANDING_OUT):
            return [*first, *(each for each in here if each != result)]
        return [*first, name] if rank == root and name in here and not self._put(rank, name, result) else first

    def _put(self, rank: int, name: str, result: str) -> bool:
        """Whether a root has put some of what it hands out into its own `result`: then the whole part must be there. A
        view of it, which the loop that sends leaves behind, is no such thing."""
        memory = {span.storage for span in self._memory(rank, name)}
        there = {span.storage for span in self._memory(rank, result)}
        given = {t[0] for p in self.starts[rank].get(name, ()) for t in p.value.terms}
        return not memory & there and any(t[0] in given for p in self.ends[rank].get(result, ()) for t in p.value.terms)

    def _rest_stayed(self, name: str, content: Content, at: int, end: int) -> bool:
        """Whether what lies around a rank's part lies where it lay in the input: a tensor that was put together, by
        `torch.stack([received, x])`, holds no part of a scatter in place."""
        there = {t[:2] for r in self.ranks for p in self.starts[r].get(name, ()) for t in p.value.terms}
        leaves = {leaf for leaf, _ in there}
        rest = [t for p in content if p.hi <= at or p.lo >= end for t in p.value.terms]
        return all(t[:2] in there for t in rest if t[0] in leaves)

    def _all_have_more(self, root: int | None, parts: Promise, found: dict[int, tuple[str, int, int]]) -> bool:
        """Whether every rank has, beside its part, some of what others have in theirs: then it is a broadcast, or an
        all_reduce, of which a rank has lost something. In a scatter along a tree or a chain the last ones have none."""
        whole = [p for _, at, part in parts.values() for p in moved(part, -at)]

        def more(rank: int, variable: str, at: int, end: int) -> bool:
            content = self.ends[rank][variable]
            cuts = [(max(p.lo, lo), min(p.hi, hi)) for p in content for lo, hi in ((0, at), (end, p.hi))]
            return any(self._is(content, lo, cut(whole, lo, hi), set()) for lo, hi in cuts if lo < hi)

        return {True} == {more(rank, *where) for rank, where in found.items() if rank != root}

    def _rows(self, result: str) -> tuple[int, ...]:
        """Of how many rows a variable is, seen as a matrix: (2, 6) for the shape 2, 3, 5."""
        shapes = (b.shape for memory in self.variables.values() for b in memory.bindings if b.path == result)
        return tuple(rows for rows in accumulate(next(shapes, ())[:-1], mul) if 1 < rows <= MOST_ROWS)

    def _givers(self, collective: str, root: int | None) -> list[int]:
        """The ranks whose data the collective is about."""
        return [root] if root is not None and collective in HANDING_OUT else self.ranks

    def _promises(self, collective: str, root: int | None, name: str, rows: tuple[int, ...]) -> list[Promise]:
        """In place and out of place."""
        key = (collective, root, name, rows)
        if key not in self._promised:
            self._promised[key] = [*self._all_promises(*key)]
        return self._promised[key]

    def _all_promises(self, collective: str, root: int | None, name: str, rows: tuple[int, ...]) -> Iterator[Promise]:
        givers = self._givers(collective, root)
        given = {rank: self.starts[rank].get(name) for rank in givers}
        sizes = {content[-1].hi for content in given.values() if content}
        p = len(self.ranks)
        if len(sizes) != 1 or not all(given.values()):
            return
        nbytes = sizes.pop()
        block = nbytes // p
        mine = {rank: content for rank, content in given.items() if content}
        if collective in ("all_reduce", "reduce"):
            whole = _together([*mine.values()])
            yield {rank: (nbytes, 0, whole) for rank in (self.ranks if root is None else [root])}
        elif collective == "broadcast":
            yield {rank: (nbytes, 0, mine[givers[0]]) for rank in self.ranks}
        elif collective in ("all_gather", "gather"):
            takers = self.ranks if root is None else [root]
            vectors = [mine[rank] for rank in self.ranks]
            for whole in (_gathered(vectors, nbytes, count) for count in (1, *rows) if nbytes % count == 0):
                yield {rank: (p * nbytes, 0, whole) for rank in takers}
            if nbytes % p == 0:
                own = [cut(mine[rank], rank * block, (rank + 1) * block) for rank in self.ranks]
                yield {rank: (nbytes, 0, _after_another(own, block)) for rank in takers}
        elif nbytes % p == 0:
            if collective == "all_to_all":
                blocks = {r: [cut(mine[s], r * block, (r + 1) * block) for s in self.ranks] for r in self.ranks}
                yield {rank: (nbytes, 0, _after_another(blocks[rank], block)) for rank in self.ranks}
                return
            whole = mine[givers[0]] if collective == "scatter" else _together([*mine.values()])
            parts = {rank: cut(whole, rank * block, (rank + 1) * block) for rank in self.ranks}
            out = {rank: (block, 0, part) for rank, part in parts.items()}
            inside = {rank: (nbytes, rank * block, part) for rank, part in parts.items()}
            yield out
            yield inside
            if root is not None:
                yield out | {root: inside[root]}  # what the root keeps stays where it was

    def _is(self, content: Content, at: int, expected: Content, ways: set[str]) -> float | None:
        """By what all of that was multiplied; None if the bytes from `at` on are something else."""
        scales: set[float] = set()
        for part in expected:
            for p in meeting(content, part.lo + at, part.hi + at):
                there = {(leaf, shift + at): times for leaf, shift, times in p.value.terms}
                wanted = {(leaf, shift): times for leaf, shift, times in part.value.terms}
                extra = there.keys() - wanted.keys()
                if len(there) - len(extra) < len(wanted) or not all(self._is_zero(leaf) for leaf, _ in extra):
                    return None
                if extra and p.value.how != "sum":
                    return None
                scales |= {round(there[term] / times, 9) for term, times in wanted.items()}
                if len(scales) > 1:
                    return None
                if len(wanted) > 1:
                    ways.add(p.value.how)
        return scales.pop() if scales else None

    def _is_zero(self, leaf: int) -> bool:
        """Whether it only begins a sum. Memory that nobody has filled may hold anything."""
        return leaf in self.nothing and self.replay.leaves.all[leaf].kind is Kind.ZERO

    # -- whether that is all that the ranks exchanged, and how

    def _nothing_else(self, collective: str, root: int | None, name: str) -> bool:
        """Whether no other data went from rank to rank. The root of a gather sends none of its own data."""
        if collective == "gather" and root is not None:
            own = {leaf for p in self.starts[root][name] for leaf, *_ in p.value.terms}
            sent = [p for m in self.replay.messages if m.src == root for p in m.carries[root][0] or ()]
            if any(leaf in own for p in sent for leaf, *_ in p.value.terms):
                return False
        if collective == "reduce" and self._is_on_others(root, name):
            return False
        known: dict[int, Ranges] = {}
        for p in chain(*(self.starts[rank][name] for rank in self._givers(collective, root))):
            for leaf, shift, _ in p.value.terms:
                known.setdefault(leaf, Ranges()).write(p.lo + shift, p.hi + shift, p.value)
        return all(leaf in known and not known[leaf].gaps(lo, hi) for leaf, lo, hi in self.carried)

    def _is_on_others(self, root: int | None, name: str) -> bool:
        """Whether the finished sum went on to several ranks, or is left on others: then it is an all_reduce that one of
        them has lost."""
        if any(kind_of(item) == "all_reduce" for item in self.replay.collectives):
            return True
        owner = {t[0]: rank for rank in self.ranks for p in self.starts[rank][name] for t in p.value.terms}
        sent: Counter = Counter()
        for m in self.replay.messages:
            for p in m.carries[m.src][0] or ():
                finished = {owner[t[0]] for t in p.value.terms if t[0] in owner} == {*self.ranks}
                sent[m.src] += (p.hi - p.lo) * finished
        (((_, (whole, _, total)),),) = [promise.items() for promise in self._promises("reduce", root, name, ())]
        idle = chain(*(self.ends[r].values() for r in self.ranks if r != root and sent[r] < whole))
        left = any(held[-1].hi == whole and self._is(held, 0, total, set()) for held in idle)
        return left or any(nbytes > (0 if rank == root else whole) for rank, nbytes in sent.items())

    def _is_scan(self, name: str, result: str) -> bool:
        """Whether each of three or more ranks ends with the sum of the ranks up to its own, which a chain leaves."""
        if len(self.ranks) < 3 or not all(result in end for end in self.ends.values()):
            return False
        sums = (_together([self.starts[r][name] for r in self.ranks[: rank + 1]]) for rank in self.ranks)
        return all(self._is(self.ends[rank][result], 0, total, set()) == 1 for rank, total in enumerate(sums))

    def _sends_twice(self, name: str) -> bool:
        """Whether a rank sends more than its vector: a chain, which leaves prefix sums, does not."""
        sent: Counter = Counter()
        for m in self.replay.messages:
            sent[m.src] += m.nbytes
        return max(sent.values(), default=0) > self.starts[0][name][-1].hi

    @cached_property
    def carried(self) -> set[tuple[int, int, int]]:
        """(leaf, its first byte, the one after the last) of all that was sent, or given to a built-in."""
        found = set()
        for item in self.replay.matched:
            hands_out = isinstance(item, Collective) and kind_of(item) in HANDING_OUT
            root = item.calls[0].event["peer"] if hands_out else None
            for call in [item.send] if isinstance(item, Message) else item.calls:
                for p in chain(*filter(None, item.carries[call.rank])) if root in (None, call.rank) else ():
                    found |= {(t[0], p.lo + t[1], p.hi + t[1]) for t in p.value.terms if t[0] not in self.nothing}
        return found

    def _algorithm(self, collective: str, root: int | None, name: str, held: dict) -> str:
        """The name of the textbook's algorithm that sends the same messages, else "recorded"; of several the one that
        sends them in the same steps, else the simplest, as the module has them."""
        whole = max(
            self.starts[self._givers(collective, root)[0]][name][-1].hi,
            *(self.ends[r][v][-1].hi for r, (v, *_) in held.items()),
        )
        owner = {t[0]: rank for rank in self.ranks for p in self.starts[rank].get(name, ()) for t in p.value.terms}
        sent: dict[tuple[int, tuple[int, int]], tuple[int, set]] = {}
        for m in self.replay.messages:
            nbytes, ranks = sent.get((m.step, (m.src, m.dst)), (0, set()))
            ranks = ranks | {owner[t[0]] for p in m.carries[m.src][0] or () for t in p.value.terms if t[0] in owner}
            sent[m.step, (m.src, m.dst)] = (nbytes + m.nbytes, ranks)
        chunks, uneven = _cut({n for n, _ in sent.values()} or {whole}, whole, len(self.ranks))
        mine = Counter(
            (ends, round(1 / chunks if uneven else n / whole, 6), frozenset(by)) for (_, ends), (n, by) in sent.items()
        )
        pairs = [{ends for step, ends in sent if step == each} for each in sorted({step for step, _ in sent})]
        alike = (
            (theirs.pairs != pairs, how)
            for how, make in CATALOGUE[collective].items()
            for theirs in _textbook(make, len(self.ranks), root, min(chunks, len(sent)))
            if theirs.messages == mine
        )
        return min(alike, key=lambda each: each[0], default=(False, "recorded"))[1]


def _together(vectors: list[Content]) -> Content:
    """All of them combined, byte by byte."""
    cuts = sorted({edge for parts in vectors for p in parts for edge in (p.lo, p.hi)})
    found = []
    for lo, hi in zip(cuts, cuts[1:], strict=False):
        terms: dict[tuple[int, int], float] = {}
        for parts in vectors:
            for p in meeting(parts, lo, hi):
                terms |= {(leaf, shift): times for leaf, shift, times in p.value.terms}
        found.append(Piece(lo, hi, Value("sum", tuple([(*key, times) for key, times in terms.items()]))))
    return found


def _after_another(vectors: list[Content], nbytes: int) -> Content:
    return [p for number, parts in enumerate(vectors) for p in moved(parts, -number * nbytes)]


def _gathered(vectors: list[Content], nbytes: int, rows: int) -> Content:
    """One after the other; with more than one row side by side, as the columns of a matrix."""
    row = nbytes // rows
    return _after_another([cut(parts, at, at + row) for at in range(0, nbytes, row) for parts in vectors], row)


def _cut(sizes: set[int], whole: int, ranks: int) -> tuple[int, bool]:
    """Into how many chunks messages of these sizes cut a vector of `whole` bytes, and whether each of them is one chunk
    of two lengths: as tensor_split cuts it for the ranks, or as split does, whose last one is shorter."""
    unit, longest = gcd(*sizes) or 1, max(*sizes, 1)
    short = whole // unit // ranks * unit
    for chunks, lengths in (
        (ranks, {short, short + unit * (short * ranks < whole)}),
        (-(-whole // longest), {longest, whole % longest}),
    ):
        if sizes == lengths:
            return chunks, True
    return whole // (min(sizes) or 1), False


class _Known(NamedTuple):
    """What is compared of a textbook's algorithm: its messages are (ends, share of the vector, whose data)."""

    messages: Counter
    pairs: list[set[tuple[int, int]]]


@lru_cache(maxsize=256)  # of the few that a notebook's runs are held against, one after the other
def _textbook(make: Callable[..., Schedule], ranks: int, root: int | None, chunks: int) -> list[_Known]:
    """The algorithm, in so many chunks if it may have any number, and the same with its partners in the other order; []
    if it is not for this number of ranks. Which chunk a ring begins with, and how many steps it takes, is left open."""
    found, takes = [], signature(make).parameters.keys()
    where = {name: value for name, value in (("root", root), ("chunks", chunks)) if name in takes}
    orders = {"near_first", "far_first"} & takes
    for order in ({}, *({name: True} for name in orders)):
        try:
            found.append(_compared(make(ranks, **where, **order)))
        except (ScheduleError, TypeError, ValueError):
            pass
    return found


def _compared(schedule: Schedule) -> _Known:
    state, messages, pairs = State({n: c.copy() for n, c in schedule.start().cells.items()}), Counter(), []
    for step in schedule.steps:
        sent: dict[tuple[int, int], tuple[int, set]] = {}
        for t in step.transfers:
            if t.src != t.dst:
                count, by = sent.get((t.src, t.dst), (0, set()))
                held = state.cells[t.src_buffer][t.src, t.chunk : t.chunk + t.count]
                sent[t.src, t.dst] = (count + t.count, by | {rank for cell in held for rank in cell.contributors})
        for ends, (count, by) in sent.items():
            messages[ends, round(count / schedule.chunks, 6), frozenset(by)] += 1
        if sent:
            pairs.append({*sent})
        state.apply(step.moves)
    return _Known(messages, pairs)
