"""What the numbers of one trial are like: how many, of which sign and size, and who has the largest.

A wrong answer is often right for the data that its author had in mind: for whole pieces, for positive numbers, for
three tensors. So an exercise is tried on fixed draws, which differ from each other in all of that and give the same
verdict on every run, and on one `at_random`. An exercise's texts (`Exercise.x`, `expected`, `call`) use the names of a
`Draw`.

Left out: the numbers themselves, which the ranks make from it (`course/judge/trial.py`).
"""

import random
from dataclasses import dataclass

SIGNS = ((-999, 1000), (-999, 0), (1, 1000))
"""(low, high) of whole numbers, high excluded: of both signs, negative, positive. The fixed draws have one each."""

LIMITS = (1 / 3, 10, 1.25)
"""How large a limit is, as a share of the norm of one rank's numbers: well below it, above that of all ranks
together, between the two."""

PACES = (0.365, 0.485, 0.565, 0.65, 0.785, 0.95)
"""No (p + 3) / 2 up to 11 ranks is a whole multiple of one: rounding cannot decide when a loss is below its goal.

The second draw has (p + 3) / 16, and a limit that p + 3 divides: after eight epochs all losses are whole numbers, and
their mean is the goal, so not below it."""


@dataclass(frozen=True)
class Draw:
    """One trial's kind of numbers, for `p` ranks; `index` says which of the fixed ones it is, None: at random.

    pieces   a vector for messages has `pieces * p` numbers, so that p divides it
    uneven   that many more where it should not divide
    low, high, scale   whole numbers from low up to high, high excluded, times scale (a power of two: sums stay exact)
    shift, slope, gap  what is added to all numbers, once more for every rank, and to every second number
    lengths  how many numbers each rank has, where they differ
    owners   the ranks that have the largest number
    sizes    into which parts a vector is cut
    counts   counts[s][d]: how many numbers rank s has for rank d; another number than the other way round
    limit, size        a bound for a norm, and about how large the norm of one rank's numbers is
    pace     how fast a loss falls
    """

    index: int | None
    p: int
    dtype: str
    pieces: int
    uneven: int
    low: int
    high: int
    scale: float
    shift: float
    slope: float
    gap: float
    lengths: tuple[int, ...]
    owners: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: tuple[list[int], ...]
    limit: float
    size: float
    pace: float


def fixed(index: int, p: int, dtype: str) -> Draw:
    """The draw for the trial with that number; only the limit and the pace are others every time."""
    low, high = SIGNS[index % len(SIGNS)]
    numbers, second = (p + 1) * p, index % 3 == 1
    limit = float((p + 3) * random.randint(25, 125)) if second else _limit(-1)
    return Draw(
        index,
        p,
        dtype,
        pieces=p + 1,
        uneven=p // 2,  # not 1 on all: who gives all that is left over to rank 0 would be right
        low=low,
        high=high,
        scale=0.25 if second and "int" not in dtype else 1,  # for whole numbers alone an int will do
        shift=(1000, -1000, 0)[index % 3],
        slope=(0, 3000, -20)[index % 3],
        gap=(-400, 0, -400)[index % 3],
        lengths=tuple(5 + (20 * rank if index % 2 == 0 else 7 * (p - rank)) for rank in range(p)),
        owners=((1, p - 1), (0,), (p - 1,))[index % 3],
        sizes=((1, numbers - 3, 2), (numbers,), (2, 1, numbers - 6, 3))[index % 3],
        counts=tuple([(2 * src + 3 * dst + index) % 7 for dst in range(p)] for src in range(p)),
        limit=limit,
        size=limit / LIMITS[index % len(LIMITS)],
        pace=(p + 3) / 16 if second else random.choice(PACES),
    )


def at_random(p: int, dtype: str) -> Draw:
    """Other lengths, signs and sizes every time."""
    low, high = random.choice(SIGNS)
    whole = dtype == "int64"
    pieces, limit = random.randint(1, 9), _limit(-1)
    return Draw(
        None,
        p,
        dtype,
        pieces=pieces,
        uneven=random.randrange(1, p),
        low=low,
        high=high,
        scale=2 ** random.randint(3, 20) if whole else 2.0 ** random.randint(-12, 12),
        shift=random.uniform(-3000, 3000),
        slope=random.choice((random.uniform(-5, 5), -3000, 3000)),
        gap=random.choice((0, -2000, 2000)),
        lengths=tuple(random.randint(1, 60) for _ in range(p)),
        owners=tuple(sorted(random.sample(range(p), random.randint(1, p)))),
        sizes=_parts(pieces * p),
        counts=tuple([random.randint(0, 9) for _ in range(p)] for _ in range(p)),
        limit=limit,
        size=limit / random.choice(LIMITS),
        pace=random.choice(PACES),
    )


def _limit(least: int) -> float:
    """Of every size, and never one that somebody has written into a function. From 10 ** 2 on the square of a norm that
    is well below it is above it."""
    return round(10 ** random.uniform(least, 3), 3)


def _parts(total: int) -> tuple[int, ...]:
    """The total cut into two to six parts, or as many as it has."""
    cuts = sorted(random.sample(range(1, total), min(total, random.randint(2, 6)) - 1)) if total > 1 else []
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))
