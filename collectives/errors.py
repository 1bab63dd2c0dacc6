"""The one exception of this package, and the checks of arguments that every algorithm shares."""

import operator
from typing import Any


class ScheduleError(ValueError):
    """A schedule that does not do what its collective promises, or that cannot be built from these arguments.

    `step` (counted from 1, as in the message), `rank` and `chunk` (from 0) say where; None where that has no meaning.
    """

    def __init__(self, message: str, step: int | None = None, rank: int | None = None, chunk: int | None = None):
        super().__init__(message)
        self.step, self.rank, self.chunk = step, rank, chunk


def whole(name: str, value: object, what: str, least: int) -> int:
    """`value` as an int of at least `least`, or a ScheduleError that names the algorithm."""
    number = _integer(value)
    if number is None:
        raise ScheduleError(f"{name} needs a whole number of {what}, got {value!r}")
    if number < least:
        raise ScheduleError(f"{name} needs at least {least} {what}, got {number}")
    return number


def check_ranks(name: str, ranks: object) -> int:
    return whole(name, ranks, "ranks", 2)


def check_root(name: str, root: object, ranks: int) -> int:
    number = _integer(root)
    if number is None or not 0 <= number < ranks:
        raise ScheduleError(f"{name}: root must be one of the ranks 0 to {ranks - 1}, got {root!r}")
    return number


def within(name: str, what: str, value: object, least: int, end: int) -> int:
    """`value` as an int from `least` up to, not including, `end`, or a ScheduleError that says which are allowed."""
    number = _integer(value)
    if number is None or not least <= number < end:
        there_are = f"{what} must be {least} to {end - 1}" if end > least else f"there is no {what}"
        raise ScheduleError(f"{name}: {there_are}, got {value!r}")
    return number


def check_power_of_two(name: str, ranks: int, instead: str) -> None:
    """For algorithms whose partners are found by flipping one bit of the rank."""
    if ranks & (ranks - 1):
        takes = f"a power of two of ranks (2, 4, 8, ...), got {ranks}; {instead} takes any number"
        raise ScheduleError(f"{name} needs {takes}")


def _integer(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None
