"""Put a student's predictions beside what really happened.

A prediction is a plain dictionary that the student fills in before the run; `None` stands for "not guessed". The
answer is computed in the cell that reveals it, so nothing above that cell can leak it.
"""

from fractions import Fraction

CLOSE = 0.05
"""How far off, as a share of the actual number, a guess may be to be called close."""


def reveal(guess: dict, title: str = "", **actual: float) -> None:
    """Print each actual number beside the guess of the same name: in one line, or line by line if that gets too wide.

    >>> reveal({"messages": 12}, title="naive", messages=6)
    naive        messages 6     (you said 12)
    """
    wide = len(actual) > 3
    width = max(map(len, actual)) if wide else 0
    parts = [f"{name:{width}} {_number(n):5} ({_verdict(guess.get(name), n)})" for name, n in actual.items()]
    between = f"\n{'':12} " if wide else "   "
    print(f"{title:12}", between.join(parts))


def _verdict(guess: float | None, actual: float) -> str:
    if guess is None:
        return "not guessed"
    if abs(guess - actual) < 1e-9:
        return "as you said"
    close = "close: " if abs(guess - actual) <= CLOSE * abs(actual) else ""
    return f"{close}you said {_number(guess)}"


def _number(value: float) -> str:
    """Whole numbers without a point, others with at most three decimals."""
    return f"{float(Fraction(value)):.3f}".rstrip("0").rstrip(".")
