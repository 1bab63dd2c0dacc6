"""The types of numbers: how many bytes each has, and what a conversion leaves of a value.

Numbers of a wider type are the same numbers, and are again what they were when they are converted back.

Left out: conversions that round, or that change the kind of number.
"""

from launch.replay.provenance import Kind, Value

SIZES = {"float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "complex32": 4, "float32": 4, "int32": 4}
SIZES |= {"uint64": 8, "uint32": 4, "qint32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}


class Types:
    """Conversions in the memory of one rank."""

    def __init__(self, memory, rank: int):
        self.memory, self.leaves, self.rank = memory, memory.leaves, rank
        self.same: dict[tuple[Value, str], int] = {}  # (value, type) -> the leaf of the same numbers in a wider type
        self.values: dict[int, tuple] = {}  # that leaf -> (value, type, wider type)
        self.exprs: dict[int, tuple] = {}  # a number below 0, in place of a storage -> (expr, type, wider type)

    def converted(self, p, at: int, before: str, after: str) -> tuple:
        """(value, expr) of numbers of another type: of a wider one they are the same, and are again when they are made
        what they were. None where that cannot be told."""
        if SIZES.get(after, 1) > SIZES.get(before, 1) and _family(before) == _family(after) in ("flo", "int"):
            return self._widened(p, at, before, after)
        value = self._narrowed(self.values, p.value, p.lo, at, before, after)
        if value is None:
            return None, None
        expr = self._narrowed(self.exprs, p.expr.value, p.lo, at, before, after) if p.expr else None
        return self.leaves.combined(p.value.how, value, self.rank), expr and self.memory.expr(p.expr.value.how, expr)

    def _widened(self, p, at: int, before: str, after: str) -> tuple:
        def itself(number: int, by: int) -> Value:
            return Value("sum", ((number, (p.lo + by) // SIZES.get(before, 1) * SIZES[after] - at, 1),))

        by = p.value.terms[0][1]
        inside = p.value.shifted(-by)
        if (inside, before) not in self.same:
            leaf = self.leaves.computed(self.rank, self.leaves.ranks_of(p.value)).terms[0][0]
            self.same[inside, before], self.values[leaf] = leaf, (inside, before, after)
        value = itself(self.same[inside, before], by)
        if p.expr is None or not p.expr.value.terms:
            return value, None
        by, number = p.expr.value.terms[0][1], -1 - len(self.exprs)
        self.exprs[number] = p.expr.shifted(-by), before, after
        return value, p.expr._replace(value=itself(number, by), held=(value,))

    def _narrowed(self, known: dict, wide: Value, lo: int, at: int, before: str, after: str) -> list | None:
        """[(value or expr, times)] of what was made wider; zeros in a sum are ignored."""
        found = []
        for number, shift, times in wide.terms:
            inside, *types = known.get(number, (None,))
            if types == [after, before]:
                by = (lo + shift) // SIZES[before] * SIZES.get(after, 1) - at
                found.append((inside.shifted(by), times))
            elif known is self.exprs or len(wide.terms) == 1 or self.leaves.all[number].kind is not Kind.ZERO:
                return None
        return found or None


def _family(dtype: str) -> str:
    """ "flo" for floats, "int" for integers."""
    return dtype.lstrip("b")[:3]
