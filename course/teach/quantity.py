"""Read seconds and bytes with their units, "3 ms" or "12 MB", and say whether a number is the one that is asked for.

The same as widgets/js/quantity.js and the judge of numbers in widgets/js/grade.js, for answers that are handed in: the
tests hold one against the other.
"""

import re

from course.questions.question import Number
from course.teach.amount import IN_DIGITS, WORD, amount

LONG = {"nano": "n", "micro": "u", "milli": "m", "kilo": "k", "mega": "M", "giga": "G", "tera": "T"}
LONG |= {"kibi": "Ki", "mebi": "Mi", "gibi": "Gi"}
LONG_NAME = re.compile(rf"^({'|'.join(LONG)})(?=sec|bit|byte)", re.IGNORECASE)
SECONDS = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "": 1.0}
BYTES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZES = {"s": 1.0, "bytes": 1.0, "bytes/s": 1.0, "GB": 1e9}

EXACT, ROUNDED = 1e-9, 0.005
LONGEST = 100  # characters of an answer


def quantity(said: str, unit: str, p: int | None) -> float | None:
    """The number in `unit`; None if it is none, or one of another unit."""
    if unit not in SIZES:
        return amount(said.replace("%", "") if unit == "%" else said, p)
    digits = WORD.sub(lambda word: IN_DIGITS[word[0].lower()], re.sub(r"^(an?\s+)?(?=half|third|quarter)", "1 ", said))
    per = re.search(r"\s*(/|p(er)?\s*)s(ec(ond)?)?$", digits)
    if per and unit.endswith("/s"):
        digits = digits[: per.start()]
    split = re.fullmatch(r"(.*?)\s*([µμA-Za-z]+)", digits, re.DOTALL)
    if split and split[2] != "p":
        factor = (_seconds if unit == "s" else _bytes)(LONG_NAME.sub(lambda long: LONG[long[0].lower()], split[2]))
        if factor is not None:
            value = amount(split[1], p)
            return None if value is None else value * factor / SIZES[unit]
    bare = re.sub(r"e[-+]?\d|log2?|sqrt|ceil|p", "", digits, flags=re.IGNORECASE)
    return None if re.search(r"[A-Za-zµμ]", bare) else amount(digits, p)


def _seconds(name: str) -> float | None:
    if re.fullmatch(r"min(ute)?s?", name, re.IGNORECASE):
        return 60.0
    found = re.fullmatch(r"([nuµμm]?)(s|secs?|seconds?)", name.lower())
    return SECONDS[found[1]] if found else None


def _bytes(name: str) -> float | None:
    found = re.fullmatch(r"([kmgt]?i?)(b|bits?|bytes?)", name, re.IGNORECASE)
    size = BYTES.get(found[1].lower()) if found else None
    if found is None or size is None:
        return None
    bits = found[2].lower().startswith("bit") or (found[2] == "b" and found[1][:1] in ("K", "M", "G", "T"))
    return size / 8 if bits else size


def is_right(question: Number, said: str) -> bool | None:
    """Whether it is the number that is asked for; None where the number needs the p of a picture."""
    asked = quantity(question.right.text, question.unit, question.p)
    if asked is None:
        return None
    value = quantity(said, question.unit, question.p) if len(said) <= LONGEST else None
    share = question.within or (EXACT if asked == int(asked) else ROUNDED)
    return value is not None and abs(value - asked) <= share * abs(asked)
