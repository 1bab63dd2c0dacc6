"""Put a student's predictions beside what really happened.

A prediction is a plain dictionary that the student fills in before the run; `None` stands for "not guessed". The
answer is computed in the cell that reveals it, so nothing above that cell can leak it. A guess may be written as one
says it (`course/amount.py`), and a single number may stand where a dictionary should be.

What really happened may be another thing than what was asked, when a cell was run twice: an all_reduce of a sum adds
it up once more. So beside a guess that is off, cells that were run again are named.
"""

from fractions import Fraction

from course import screen
from course.amount import amount, has_p

CLOSE = 0.05
"""How far off, as a share of the actual number, a guess may be to be called close."""

_revealed = 0
"""The execution that revealed something last: cells before it are settled."""


def reveal(guess: dict, title: str = "", p: int | None = None, **actual: float) -> None:
    """Print each actual number beside the guess of the same name: in one line, or line by line if that gets too wide.

    `p` is what p means in a guess like "2(p - 1)"; without it, the number of ranks that run. Of a guess that holds
    others by their titles the one of this title is taken.

    >>> reveal({"messages": 12}, title="naive", messages=6)
    naive        messages 6     (you said 12)
    """
    global _revealed
    p = p or _running()
    guess = _named(guess, title, list(actual))
    wide = len(actual) > 3
    width = max(map(len, actual)) if wide else 0
    parts = [f"{name:{width}} {_number(n):5} ({_verdict(guess.get(name), n, p)})" for name, n in actual.items()]
    between = f"\n{'':12} " if wide else "   "
    print(f"{title:12}", between.join(parts))
    again = screen.rerun(_revealed) if any(not _settled(guess.get(name), n, p) for name, n in actual.items()) else []
    for ran in again:
        first = next((line.strip() for line in ran.source.splitlines()[1:] if line.strip()), "%%ranks")
        print(
            f"{'':12} cell [{ran.number}] ({first[:40]}) was run more than once: if it goes on with what its last run "
            "left, these numbers are those after all its runs; run the cells from the guess on again, each once"
        )
    if not again:
        _revealed = screen.last()


def _named(guess: object, title: str, names: list[str]) -> dict:
    """The guess as a dictionary with these names, whatever form it has; what does not fit is said."""
    if isinstance(guess, dict) and title.strip() in guess and not set(names) & set(guess):
        guess = guess[title.strip()]
    if isinstance(guess, dict):
        return guess
    if guess is None:
        return {}
    if len(names) == 1:
        return {names[0]: guess}
    if isinstance(guess, (list, tuple)) and len(guess) == len(names):
        return dict(zip(names, guess, strict=True))
    example = ", ".join(f'"{name}": ...' for name in names)
    print(f"{guess!r} is one guess and {len(names)} are asked for: guess = {{{example}}}")
    return {}


def _verdict(guess: object, actual: float, p: int | None) -> str:
    if guess is None or guess is ... or guess == "":
        return "not guessed"
    value = amount(guess, p)
    if value is None and has_p(guess) and p is None:
        return f"you said {guess}; put a number in for p"
    if value is None:
        return f"{guess!r} is no number; write one, as in 6 or '2(p - 1)'"
    said = _number(value) if isinstance(guess, (int, float)) else str(guess)
    if has_p(guess):
        said += f", {_number(value)} for p = {p}"
    if abs(value - actual) < 1e-9 or _number(value) == _number(actual):
        return f"as you said{f': {said}' if has_p(guess) else ''}"
    close = "close: " if abs(value - actual) <= CLOSE * abs(actual) else ""
    return f"{close}you said {said}"


def _settled(guess: object, actual: float, p: int | None) -> bool:
    """Whether there is nothing to explain: no guess, or a right one."""
    value = amount(guess, p)
    return value is None or abs(value - actual) <= CLOSE * abs(actual)


def _running() -> int | None:
    from launch import magics  # late: a chapter that only imports `reveal` need not load the launcher

    return magics._session.size or None if magics._session else None


def _number(value: float) -> str:
    """Whole numbers without a point, others with at most three decimals."""
    return f"{float(Fraction(value)):.3f}".rstrip("0").rstrip(".")
