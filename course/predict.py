"""Put a student's predictions beside what really happened.

A prediction is a plain dictionary that the student fills in before the run; `None` stands for "not guessed". The
answer is computed in the cell that reveals it, so nothing above that cell can leak it.
"""

from fractions import Fraction


def reveal(guess: dict, title: str = "", **actual: float) -> None:
    """Print each actual number beside the guess of the same name.

    >>> reveal({"messages": 12}, title="naive", messages=6)
    naive        messages 6     (you said 12)
    """
    parts = [f"{name} {_number(value):5} ({_verdict(guess.get(name), value)})" for name, value in actual.items()]
    print(f"{title:12}", "   ".join(parts))


def _verdict(guess: float | None, actual: float) -> str:
    if guess is None:
        return "not guessed"
    return "as you said" if abs(guess - actual) < 1e-9 else f"you said {_number(guess)}"


def _number(value: float) -> str:
    """Whole numbers without a point, others with at most three decimals."""
    return f"{float(Fraction(value)):.3f}".rstrip("0").rstrip(".")
