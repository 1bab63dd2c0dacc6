"""Read a number as a student writes it: 6, "six", "6 N", "2(p - 1)", "N - N/4", "50 %", "half", "12 messages".

N is the unit of what is asked, so it counts as 1; p is the number of ranks that is meant. Words after the number are
its unit and are ignored. Nothing is evaluated as Python.

The same as widgets/js/amount.js, for answers that are handed in: the tests hold one against the other.
"""

import math
import re
from fractions import Fraction
from numbers import Real

TOKEN = re.compile(
    r"\s*(?:(\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(log2?|ceil|sqrt)\b|(\*\*|[-+*/^()×·÷−%])|([A-Za-zµ]\w*))"
)
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
FACTORS = {
    "half": "/2",
    "third": "/3",
    "thirds": "/3",
    "quarter": "/4",
    "quarters": "/4",
    "thousand": "*1e3",
    "million": "*1e6",
    "billion": "*1e9",
    "percent": "%",
    "per cent": "%",
}
IN_DIGITS = {word: str(number) for number, word in enumerate(WORDS)} | FACTORS
WORD = re.compile(rf"\b({'|'.join(IN_DIGITS)})\b", re.ASCII | re.IGNORECASE)


def amount(said: object, p: int | None = None) -> float | None:
    """The number; None if it is none, or needs a p that nobody knows."""
    if isinstance(said, Real):
        return float(said) if math.isfinite(said) else None
    if hasattr(said, "item"):  # of numpy
        try:
            return amount(said.item(), p)
        except (TypeError, ValueError):
            return None
    if not isinstance(said, str):
        return None
    try:
        value = _Reader(said.strip(), p).all()
        return float(value) if math.isfinite(value) else None
    except (ValueError, TypeError, ArithmeticError, RecursionError):  # TypeError: the root of -2 is complex
        return None


class _Reader:
    """A formula, read from left to right; ValueError where it is none."""

    def __init__(self, text: str, p: int | None):
        self.p, self.tokens, at = p, [], 0
        text = re.sub(r"^(an?\s+)?(?=(half|third|quarter)\b)", "1 ", text, flags=re.ASCII | re.IGNORECASE)
        text = WORD.sub(lambda word: IN_DIGITS[word[0].lower()], text)
        text = re.sub(r"(?<=\d)([pN])\b", r" \1", text)  # 2p, 6N
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise ValueError(text)
            self.tokens.append(match)
            at = match.end()

    def all(self) -> Fraction | float:
        value = self.sum()
        while self.tokens and self.tokens[0][4]:  # a unit
            self.tokens.pop(0)
        if self.tokens:
            raise ValueError("more than a number")
        return value

    def sign(self, *signs: str) -> str:
        """The next token if it is one of these."""
        if self.tokens and self.tokens[0][3] in signs:
            return self.tokens.pop(0)[3]
        return ""

    def sum(self) -> Fraction | float:
        value = self.product()
        while sign := self.sign("+", "-", "−"):
            value = value + self.product() if sign == "+" else value - self.product()
        return value

    def product(self) -> Fraction | float:
        value = self.power()
        while self.tokens:
            if sign := self.sign("*", "/", "×", "·", "÷"):
                value = value * self.power() if sign in "*×·" else value / self.power()
            elif self.tokens[0][2] or self.tokens[0][3] == "(" or self.tokens[0][4] in ("p", "N"):
                value *= self.power()  # 2(p - 1), 3 N
            else:
                return value
        return value

    def power(self) -> Fraction | float:
        if sign := self.sign("-", "+", "−"):
            return self.power() if sign == "+" else -self.power()
        value = self.atom()
        value = value / 100 if self.sign("%") else value
        if not self.sign("^", "**"):
            return value
        exponent = self.power()
        if not -64 <= exponent <= 64:
            raise ValueError("too large")
        if isinstance(value, Fraction) and max(value.numerator, value.denominator, key=abs).bit_length() > 1024:
            raise ValueError("too many digits")
        return value**exponent

    def atom(self) -> Fraction | float:
        if self.sign("("):
            value = self.sum()
            if not self.sign(")"):
                raise ValueError("a bracket is open")
            return value
        if not self.tokens:
            raise ValueError("nothing there")
        token = self.tokens.pop(0)
        if token[1]:
            number = token[1].replace("_", "")
            if abs(int((number.lower().partition("e")[2] or "0")[:9])) > 400:
                raise ValueError("too large")
            thousands = re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", number)
            return Fraction(number.replace(",", "" if thousands else "."))
        if token[2]:
            inside = self.atom()
            return {"log": math.log2, "log2": math.log2, "ceil": math.ceil, "sqrt": math.sqrt}[token[2]](inside)
        if token[4] == "N":
            return Fraction(1)
        if token[4] == "p" and self.p is not None:
            return Fraction(self.p)
        raise ValueError(token[0])
