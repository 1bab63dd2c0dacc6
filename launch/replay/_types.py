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
        self.narrow: dict[int, tuple] = {}  # that leaf, or a number below 0 in exprs -> (what it was, type, wider type)

    def converted(self, p, at: int, before: str, after: str) -> tuple:
        """(value, expr) of numbers of another type: of a wider one they are the same, and are again when they are made
        what they were. None where that cannot be told."""
        was, size = SIZES.get(before, 1), SIZES.get(after, 1)
        if size > was and before.lstrip("b")[:3] == after.lstrip("b")[:3] in ("flo", "int"):
            inside = p.value.shifted(-p.value.terms[0][1])
            if (inside, before) not in self.same:
                leaf = self.leaves.computed(self.rank, self.leaves.ranks_of(p.value)).terms[0][0]
                self.same[inside, before], self.narrow[leaf] = leaf, (inside, before, after)
            wide = self.same[inside, before]
            value = Value("sum", ((wide, (p.lo + p.value.terms[0][1]) // was * size - at, 1),))
            if p.expr is None or not p.expr.value.terms:
                return value, None
            by = p.expr.value.terms[0][1]
            number = -1 - len(self.narrow)  # stands for a storage, until it is made narrow again
            self.narrow[number] = p.expr.shifted(-by), before, after
            itself = Value("sum", ((number, (p.lo + by) // was * size - at, 1),))
            return value, p.expr._replace(value=itself, held=(value,))

        def narrowed(terms):
            for number, shift, times in terms:
                inside, *types = self.narrow.get(number, (None,))
                if number >= 0 and self.leaves.all[number].kind is Kind.ZERO and len(terms) > 1:
                    continue
                if types != [after, before]:
                    return None
                operands.append((inside.shifted((p.lo + shift) // was * size - at), times))
            return operands

        operands: list = []
        if narrowed(p.value.terms) is None:
            return None, None
        value, operands = self.leaves.combined(p.value.how, operands, self.rank), []
        if p.expr is None or narrowed(p.expr.value.terms) is None:
            return value, None
        return value, self.memory.expr(p.expr.value.how, operands)
