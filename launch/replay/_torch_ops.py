"""What torch's ops do to values: which copy, which add, which take a maximum. The result of any other is "computed".

A row of a rank's op log names an op and the views that it read and wrote (`rank._op_log`). For the ops below the new
values are worked out range by range, whatever the shapes and strides; a view that falls into too many runs of memory,
and an op that is not here, give data that is computed from all that went in.

Left out: the values themselves (`replay.provenance`); when each row happens (`replay._replay`).
"""

from functools import cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from launch.replay._memory import Types
from launch.replay._numbers import SIZES
from launch.replay.provenance import Kind, Piece, Span, Value, moved

MOST_RUNS = 512  # runs of memory that one op is followed through
MOST_SUMMED = 256  # rows that are added up by one op
MOST_RUNNING = 32  # rows of a running sum
COPIES = (
    *("clone", "copy", "_to_copy", "contiguous", "lift_fresh_copy", "detach_copy", "view_copy", "expand_copy"),
    *("all_reduce", "broadcast"),  # the functional collectives work on a copy, and their row comes before the call
)
FOLDS = {"maximum": "max", "fmax": "max", "max": "max", "minimum": "min", "fmin": "min", "min": "min"}
FOLDS |= {"mul": "product", "multiply": "product", "bitwise_and": "band", "bitwise_or": "bor", "bitwise_xor": "bxor"}
FOLDS |= {"logical_and": "band", "logical_or": "bor", "logical_xor": "bxor"}
ALONG = {"sum": "sum", "nansum": "sum", "mean": "sum", "amax": "max", "amin": "min", "prod": "product"}
FILLED = ("ones", "ones_like", "new_ones", "full", "full_like", "new_full", "fill")
PRODUCTS = ("mv", "mm", "bmm", "dot", "addmv", "addmm")
ROWS = ("index", "index_select", "gather", "index_add", "scatter_add", "index_copy", "index_put")
ZEROS = ("zeros", "zeros_like", "new_zeros", "zero")
VIEWS = ("resize", "set", "squeeze", "unsqueeze", "t", "transpose", "lift_fresh")  # of a tensor in place: no data move
MAKERS = tuple(
    """empty ones full rand arange eye linspace normal uniform bernoulli exponential new_ random cauchy geometric
    log_normal tril_indices scalar_tensor from_ _efficient""".split()
)


class View(NamedTuple):
    """Where a tensor lies: offset and strides in elements."""

    storage: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    lazy: bool  # conjugated or negated when read: its numbers are not those in memory

    @property
    def itemsize(self) -> int:
        return SIZES.get(self.dtype, 1)

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def span(self) -> Span:
        """From its first byte to its last, including the gaps."""
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        return Span(self.storage, self.offset * self.itemsize, (last + 1) * self.itemsize)

    def part(self, dim: int, first: int, count: int) -> "View":
        """`narrow(dim, first, count)`."""
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :])
        return self._replace(offset=self.offset + first * self.stride[dim], shape=shape)

    def at(self, index: dict[int, int]) -> "View":
        """The view with some dimensions taken at one index each."""
        offset = self.offset + sum(self.stride[dim] * i for dim, i in index.items())
        left = [dim for dim in range(len(self.shape)) if dim not in index]
        return self._replace(
            offset=offset, shape=tuple(self.shape[d] for d in left), stride=tuple(self.stride[d] for d in left)
        )

    def unsqueeze(self, dim: int) -> "View":
        """The view with one more dimension, of size 1."""
        shape, stride = ((*of[:dim], 1, *of[dim:]) for of in (self.shape, self.stride))
        return self._replace(shape=shape, stride=stride)


class Op(NamedTuple):
    """`aten.add_.Tensor` is name "add", overload "Tensor"."""

    name: str
    overload: str


@cache
def parse(text: str) -> Op:
    name, _, overload = text.split(".", 1)[1].partition(".")
    return Op(name if name.startswith("__") else name.rstrip("_"), overload)


@cache
def runs(view: View, shape: tuple[int, ...]) -> tuple[list[int], int] | None:
    """(first element of each run, elements of a run) of the view, seen in that shape; None if there are too many."""
    missing = len(shape) - len(view.shape)
    if missing < 0:
        return None
    sizes = (1,) * missing + view.shape
    strides = [0] * missing + list(view.stride)
    for dim, (want, have) in enumerate(zip(shape, sizes, strict=True)):
        if have != want:
            if have != 1:
                return None
            strides[dim] = 0
    length, outer = 1, len(shape)
    while outer and (shape[outer - 1] == 1 or strides[outer - 1] == length):
        outer -= 1
        length *= shape[outer]
    if prod(shape[:outer]) > MOST_RUNS:
        return None
    starts = [view.offset]
    for dim in range(outer):
        starts = [start + i * strides[dim] for start in starts for i in range(shape[dim])]
    return starts, length


def spans(view: View) -> list[Span] | None:
    """The memory of a view, run by run; None if it falls into too many."""
    size, cut = view.itemsize, runs(view, view.shape)
    return cut and [Span(view.storage, start * size, (start + cut[1]) * size) for start in cut[0]]


class Meaning:
    """Carries out rows on the memory of one rank: `memory` has `read`, `write` and `leaves`, see `_memory.Memory`."""

    def __init__(self, memory, rank: int):
        self.memory, self.leaves, self.rank = memory, memory.leaves, rank
        self.types = Types(memory, rank)

    def carry_out(self, op: Op, outs: list[View], ins: list[View], numbers: list, alpha) -> None:
        """One row. `outs` and `ins` have no empty ones; `ins` of an op in place begins with what it works on."""
        name = op.name
        if not outs or name in VIEWS:
            return
        if name.startswith("_foreach_") and len(ins) in (len(outs), 2 * len(outs)):
            for i, out in enumerate(outs):  # optimisers work on lists of tensors
                mine = numbers[i : i + 1] if len(numbers) == len(outs) else numbers
                self.carry_out(Op(name[9:], "Tensor"), [out], ins[i :: len(outs)], mine, alpha)
            return
        if name in ("max", "min") and op.overload == "dim" and len(outs) == 2:
            self._computed(outs[1:], ins)  # the indices
            outs, name = outs[:1], "a" + name
        followed = len(outs) == 1 and self._followed(op._replace(name=name), outs[0], ins, numbers, alpha)
        if not followed:
            made = makes(name)
            own = Kind.EMPTY if "empty" in name else Kind.OWN
            self._computed(outs, [] if made else ins, own, "" if made else name.strip("_"))
            known = runs(outs[0], outs[0].shape) is not None
            constant = name in FILLED or name == "arange" or (bool(ins) and all(map(self._is_constant, ins)))
            number = 1 if "ones" in name else _given(numbers[::-1], int, float) or 0
            for p in self.memory.held(outs[0].span) if constant and known else ():
                if outs[0].storage in self.memory.kept:
                    self.leaves.given.add(p.value.terms[0][0])
                else:
                    self.leaves.constants[p.value.terms[0][0]] = number if name in FILLED else None

    def _followed(self, op: Op, out: View, ins: list[View], numbers: list, alpha) -> bool:
        """Carries out the op if its meaning is known here; False if not."""
        name, scalar = op.name, _given(numbers, int, float)
        if name in ZEROS or (name in ("fill", "full", "new_full", "full_like") and numbers[-1:] == [0]):
            zeros = self.leaves.fresh(self.rank, Kind.ZERO)
            return runs(out, out.shape) is not None and self._fill(out, zeros)
        if name in COPIES and ins:
            source = ins[-1]
            return source == out or self._elementwise("sum", out, [(source, 1)])
        if name in ("cat", "stack", "concat") and ins:
            return self._joined(name, out, ins, numbers)
        if name == "repeat" and len(ins) == 1:
            return self._repeated(out, ins[0], numbers)
        if name in ("roll", "flip") and len(ins) == 1 and ins[0].numel == 1:
            return self._elementwise("sum", out, [(ins[0], 1)])
        if name in ("roll", "flip") and len(ins) == 1:
            return self._rolled(out, ins[0], numbers) if name == "roll" else self._flipped(out, ins[0], numbers)
        if name in ("add", "sub", "subtract") and op.overload != "Tensor_mode":
            sign = (1 if name == "add" else -1) * (alpha if type(alpha) in (int, float) else 1)
            if len(ins) == 2:
                return self._elementwise("sum", out, [(ins[0], 1), (ins[1], sign)])
            return len(ins) == 1 and scalar == 0 and self._elementwise("sum", out, [(ins[0], 1)])
        if (
            name in ("mul", "multiply", "div", "divide", "neg")
            and len(ins) == 1
            and op.overload in ("Tensor", "Scalar", "default")
        ):
            times = -1 if name == "neg" else scalar
            if times is None or times == 0:
                return False
            return self._elementwise("sum", out, [(ins[0], 1 / times if name.startswith("div") else times)])
        if name in ("mul", "multiply", "addcmul") and len(ins) > 1 and (parts := self._factors(name, ins, alpha)):
            return self._elementwise("sum", out, parts)
        if name in ROWS and len(ins) in (2, 3):
            return self._indexed(name, out, ins, numbers, alpha)
        if name in PRODUCTS and len(ins) == 2 + name.startswith("add"):
            added = [(view, 1.0 if scalar is None else scalar) for view in ins[:-2]]
            return self._multiplied((out, *ins[-2:]), added, alpha)
        if name == "where" and len(ins) == 3:
            return self._chosen(out, ins, numbers)
        if name == "cumsum" and len(ins) == 1 and ins[0].shape:
            return self._running(out, ins[0], _given(numbers, int) or 0)
        if name == "lerp" and len(ins) == 2 and scalar is not None:
            return self._elementwise("sum", out, [(ins[0], 1 - scalar), (ins[1], scalar)])
        if name in FOLDS and len(ins) == 2:
            return self._elementwise(FOLDS[name], out, [(ins[0], 1), (ins[1], 1)])
        if name in ALONG and len(ins) == 1:
            return self._along(name, out, ins[0], numbers)
        return False

    # -- ops that depend on numbers: those of an index that the rank noted, or of a constant of the program

    def _constant(self, view: View) -> float | None:
        """The number that fills a view, if it is a constant of the program such as `torch.ones(p)`.

        Whatever was in a variable or in a call is data, and not a constant.
        """
        found = set()
        for p in self.memory.held(view.span):
            found.add(self.leaves.constants.get(p.value.terms[0][0]) if p.value.plain else None)
        return found.pop() if len(found) == 1 else None

    def _is_constant(self, view: View, given: bool = False) -> bool:
        """Whether nothing in a view is a rank's data, as in `torch.arange(n) > 2`; or, if `given`, Python's own list.

        If data chose the rows, another run would choose others.
        """
        leaves = [leaf for p in self.memory.held(view.span) for leaf, _, _ in p.value.terms]
        return all([leaf in self.leaves.constants or (given and leaf in self.leaves.given) for leaf in leaves])

    def _factors(self, name: str, ins: list[View], alpha) -> list[tuple[View, float]]:
        """[(operand, times)] of a product of which one factor is such a constant."""
        for factor, other in (ins[-2:], ins[:-3:-1]) if len(ins) > 1 else ():
            if constant := self._constant(factor):
                times = constant * (alpha if name == "addcmul" else 1)
                return [*((view, 1) for view in ins[:-2]), (other, times)]
        return []

    def _multiplied(self, views: tuple[View, ...], added: list[tuple[View, float]], alpha: float) -> bool:
        """`views` are out, left and right. A factor is a constant: sums of columns or rows, and what is added."""
        out, left, right = views
        if max(left.shape[-1], *out.shape, 1) > MOST_SUMMED or any([view.shape != out.shape for view, _ in added]):
            return False
        if len(left.shape) == 3:
            batches = [tuple(view.at({0: i}) for view in views) for i in range(left.shape[0])]
            return len(batches) * out.shape[2] <= MOST_SUMMED and all(
                [self._multiplied(batch, added, alpha) for batch in batches]
            )
        if len(right.shape) == 1:
            right, last = right.unsqueeze(1), len(out.shape)
            out, added = out.unsqueeze(last), [(view.unsqueeze(last), times) for view, times in added]
        if len(left.shape) == 1:
            left, out = left.unsqueeze(0), out.unsqueeze(0)
        if times := self._constant(right):
            dim, parts = 1, [(left.at({1: k}), times * alpha) for k in range(left.shape[1])]
        elif times := self._constant(left):
            dim, parts = 0, [(right.at({0: k}), times * alpha) for k in range(left.shape[1])]
        else:
            return False
        sums = [(out.at({dim: i}), [*parts, *((v.at({dim: i}), n) for v, n in added)]) for i in range(out.shape[dim])]
        return all([self._elementwise("sum", *each) for each in sums])

    def _indexed(self, name: str, out: View, ins: list[View], numbers: list, times: float) -> bool:
        """Rows of a source added to, or put into, those rows that the index names; or those rows themselves."""
        whole, source, taken = ins[0], ins[-1], len(ins) == 2
        rows = _given(numbers, list)
        if rows is None or not self._is_constant(ins[1], given=True):
            return False
        if not whole.shape or (name in ("scatter_add", "gather") and len(whole.shape) > 1):
            return False
        dim = (_given(numbers, int) or 0) % len(whole.shape)
        if (out if taken else source).shape != (*whole.shape[:dim], len(rows), *whole.shape[dim + 1 :]):
            return False
        if taken:
            return self._rows(out, dim, [(i, 1, [(whole, row % whole.shape[dim], 1)]) for i, row in enumerate(rows)])
        adds = name.endswith("_add") or True in [n for n in numbers if type(n) is bool]
        put: dict[int, list] = {}
        for i, row in enumerate(rows):
            row %= whole.shape[dim]
            there = put.get(row, [(whole, row, 1)]) if adds else []
            put[row] = [*there, (source, i, times)]
        parts = [(row, 1, operands) for row, operands in sorted(put.items())]
        return self._rows(out, dim, parts, None if out == whole else whole)

    def _chosen(self, out: View, ins: list[View], numbers: list) -> bool:
        """`where` of vectors: copies."""
        mask, one, other = ins
        rows = _given(numbers, list)
        if not self._is_constant(mask, given=True):
            return False
        if rows is not None and mask.numel == 1:
            return self._elementwise("sum", out, [(one if rows else other, 1)])
        if rows is None or not one.shape == other.shape == out.shape or len(out.shape) != 1:
            return False
        return self._rows(out, 0, [(row, 1, [(one, row, 1)]) for row in rows], other)

    def _rows(self, out: View, dim: int, parts: list, rest: View | None = None) -> bool:
        """Puts `out` together from rows, each of which is written once: `parts` are (first row, how many, [(a view, its
        first row, times)] that are added up there), in order. All other rows are those of `rest`."""
        joined: list[tuple] = []
        at = 0
        for to, count, operands in [*parts, (out.shape[dim], 0, [])]:
            if rest is not None and at < to:
                joined.append((at, to - at, [(rest, at, 1)]))
            at = to + count
            first, before, same = joined[-1] if joined else (0, 0, [])
            if before and first + before == to and [(v, row + before, n) for v, row, n in same] == operands:
                joined[-1] = (first, before + count, same)
            elif count:
                joined.append((to, count, operands))
        puts = [(out.part(dim, to, n), [(v.part(dim, row, n), k) for v, row, k in each]) for to, n, each in joined]
        return all([self._elementwise("sum", *put) for put in puts])

    def _running(self, out: View, source: View, dim: int) -> bool:
        """`cumsum`: row i is the sum of all up to it."""
        dim = dim % len(source.shape)
        rows = [(source, i, 1) for i in range(source.shape[dim])]
        return len(rows) <= MOST_RUNNING and self._rows(out, dim, [(i, 1, rows[: i + 1]) for _, i, _ in rows])

    def _joined(self, name: str, out: View, ins: list[View], numbers: list) -> bool:
        dim, at = (_given(numbers, int) or 0) % len(out.shape), 0
        for source in ins:
            if source.numel == 0:
                continue
            size = 1 if name == "stack" else source.shape[dim]
            if name == "stack":
                source = source.unsqueeze(dim)
            target = out.part(dim, at, size)
            if not self._elementwise("sum", target, [(source, 1)]):
                self._computed([target], [source])
            at += size
        return True

    def _repeated(self, out: View, source: View, numbers: list) -> bool:
        """`repeat`: the whole of it, copied so many times along each dimension."""
        times = _given(numbers, list) or []
        shape = (1,) * (len(out.shape) - len(source.shape)) + source.shape
        if prod(times) > MOST_SUMMED:
            return False
        targets = []
        for index in np.ndindex(*times):
            target = out
            for dim, (at, size) in enumerate(zip(index, shape, strict=True)):
                target = target.part(dim, at * size, size)
            targets.append(target)
        return all([self._elementwise("sum", target, [(source, 1)]) for target in targets])

    def _rolled(self, out: View, source: View, numbers: list) -> bool:
        """`roll` along one dimension: two copies."""
        shifts, dims = [*(n if type(n) is list else [n] for n in numbers), []][:2]
        if not dims:  # as if it were a vector
            out, source = (p._replace(shape=(p.numel,), stride=(1,)) if _dense(p) else p for p in (out, source))
        if len(shifts) != 1 or len(dims or source.shape) > 1:
            return False
        dim = dims[0] % len(source.shape) if dims else 0
        size = source.shape[dim]
        by = shifts[0] % size
        return self._rows(out, dim, [(0, by, [(source, size - by, 1)]), (by, size - by, [(source, 0, 1)])])

    def _flipped(self, out: View, source: View, numbers: list) -> bool:
        """`flip` along one dimension: as many copies as it is long."""
        dims = _given(numbers, list) or []
        size = source.shape[dims[0]] if len(dims) == 1 else MOST_RUNS + 1
        if size > MOST_RUNS:
            return False
        parts = [(i, 1, [(source, size - 1 - i, 1)]) for i in range(size)]
        return self._rows(out, dims[0] % len(source.shape), parts)

    def _along(self, name: str, out: View, source: View, numbers: list) -> bool:
        """Rows added up: `stack(parts).sum(0)`."""
        given = _given(numbers, list)
        if given is None:
            one = numbers and type(numbers[0]) is int
            given = [numbers[0]] if one else [*range(len(source.shape))]
        dims = sorted({dim % len(source.shape) for dim in given}) if source.shape else []
        sizes = [source.shape[dim] for dim in dims]
        if not dims or prod(sizes) > MOST_SUMMED:
            return False
        parts = [source.at(dict(zip(dims, index, strict=True))) for index in np.ndindex(*sizes)]
        kept = tuple(source.shape[dim] for dim in range(len(source.shape)) if dim not in dims)
        target = out
        if out.shape != kept:  # keepdim
            target = out.at({dim: 0 for dim in dims}) if len(out.shape) == len(source.shape) else out
        times = 1 / len(parts) if name == "mean" else 1
        return self._elementwise(ALONG[name], target, [(part, times) for part in parts])

    def _elementwise(self, how: str, out: View, operands: list[tuple[View, float]]) -> bool:
        """out = the operands put together, element by element, with broadcasting. False if it falls into too many
        runs."""
        here = runs(out, out.shape)
        there = [cut for view, _ in operands if (cut := runs(view, out.shape)) is not None]
        if here is None or len(there) < len(operands):
            return False
        length = gcd(here[1], *(n for _, n in there))
        if out.numel > MOST_RUNS * length:
            return False
        size, found = out.itemsize, []
        starts = _cut(*here, length)
        columns = [_cut(*each, length) for each in there]
        for i, start in enumerate(starts):
            lo = start * size
            parts = []
            for (view, times), column in zip(operands, columns, strict=True):
                parts.append((self._read(view, column[i], length, lo, out), times))
            found += self._combined(how, lo, lo + length * size, parts)
        if len(found) > len(starts) and (len(operands) > 1 or operands[0][1] != 1) and self._made_here(found):
            return self._fill(out, self.leaves.fresh(self.rank, Kind.OWN))
        return self._write(out, found)

    def _made_here(self, found: list) -> bool:
        """Whether it is all the rank's own data, without zeros: then it is not followed number by number."""
        leaves = [self.leaves.all[leaf] for _, _, value, _ in found for leaf, _, _ in value.terms]
        return all([leaf.ranks == {self.rank} and leaf.kind is not Kind.ZERO for leaf in leaves])

    def _read(self, view: View, first: int, length: int, lo: int, out: View) -> list:
        """(lo, hi, value, expr) in the bytes of `out` of a run of another view."""
        size = view.itemsize
        start = first * size
        pieces = self.memory.read(Span(view.storage, start, start + length * size))
        if view.dtype == out.dtype and view.lazy == out.lazy:
            return moved(pieces, start - lo)
        found = []
        for p in pieces:
            a = lo + (p.lo - start) // size * out.itemsize
            b = lo + (p.hi - start) // size * out.itemsize
            value, expr = (None, None) if view.lazy or out.lazy else self.types.converted(p, a, view.dtype, out.dtype)
            if value is None:  # the numbers are rounded, or they are the conjugates
                value = self.leaves.computed(self.rank, self.leaves.ranks_of(p.value))
            found.append((a, b, value, expr))
        return found

    def _combined(self, how: str, lo: int, hi: int, operands: list) -> list:
        """[(lo, hi, value, expr)] of one run, cut wherever one of the operands is."""
        cuts = [lo, hi]
        if not all([len(pieces) == 1 for pieces, _ in operands]):
            cuts = sorted({lo, hi, *(piece[0] for pieces, _ in operands for piece in pieces)})
        at, found = [0] * len(operands), []
        for a, b in zip(cuts, cuts[1:], strict=False):
            values, exprs = [], []
            for number, (pieces, times) in enumerate(operands):
                while pieces[at[number]][1] <= a:
                    at[number] += 1
                _, _, value, expr = pieces[at[number]]
                values.append((value, times))
                exprs.append((expr, times))
            value = self.leaves.combined(how, values, self.rank)
            found.append((a, b, value, self.memory.expr(how, exprs)))
        return found

    def _write(self, out: View, found: list) -> bool:
        for lo, hi, value, expr in found:
            self.memory.write(Span(out.storage, lo, hi), value, expr)
        return True

    def _fill(self, view: View, value: Value) -> bool:
        for span in self._spans(view, MOST_RUNS):
            self.memory.write(span, value)
        return True

    def _spans(self, view: View, most: int) -> list[Span]:
        """Its memory, run by run; of more than that many runs everything between its ends."""
        found = spans(view)
        return [view.span] if found is None or len(found) > most else found

    def _computed(self, outs: list[View], ins: list[View], own: Kind = Kind.OWN, by: str = "") -> None:
        """The outs depend on all ins in some other way, or are new data (of kind `own`)."""
        ranks = frozenset().union(*map(self._ranks_in, ins)) or frozenset({self.rank})
        for out in outs:
            between: list[Piece] = []
            if runs(out, out.shape) is None and out.storage in self.memory.storages:
                between = self.memory.storages[out.storage].read(*out.span[1:])  # counts as an input, too
            there = ranks.union(*[self.leaves.ranks_of(p.value) for p in between])
            self._fill(out, self.leaves.computed(self.rank, there, own, by))

    def _ranks_in(self, view: View) -> frozenset:
        pieces = [p for span in self._spans(view, 64) for p in self.memory.held(span)]
        return frozenset().union(*(self.leaves.ranks_of(p.value) for p in pieces))


def makes(name: str) -> bool:
    """Whether an op makes new data, whatever tensor it is given as a pattern."""
    return name.startswith(MAKERS) or name.endswith("_like")


def _dense(view: View) -> bool:
    """Whether a view lies in memory without gaps, row after row."""
    cut = runs(view, view.shape)
    return cut is not None and len(cut[0]) == 1


def _given(numbers: list, *kinds: type):
    """The first of an op's numbers of such a kind; None if there is none."""
    return next((n for n in numbers if type(n) in kinds), None)


def _cut(starts: list[int], length: int, piece: int) -> list[int]:
    """Runs cut into smaller ones."""
    return [start + at for start in starts for at in range(0, length, piece)]
