"""Numbers as students write them: the browser reads what `course.teach.amount` reads, and refuses what that refuses."""

import math
import random

from course.teach.amount import IN_DIGITS, amount
from tests.course.test_amount import WRITTEN
from tests.widgets.conftest import ask

PARTS = ["0", "6", "2.5", "1,000", "1e3", "p", "N", "+", "-", "−", "*", "/", "^", "**", "·", "(", ")", " "]
PARTS += ["log2", "sqrt", "ceil", "messages", "%", "3/4", "(p - 1)", "2(p-1)/p N", "_", "?", "100"]
PARTS += ["six", "Twelve", "half", "a quarter", "thirds", "million", "per cent"]
READ = """async (texts) => {
    const { readNumber } = await import("/js/amount.js");
    return texts.map((text) => readNumber(text, 4));
}"""


def test_both_read_the_same(modules):
    rng = random.Random(5)
    texts = ["", "many", "2(p", "1/0", "2**1000000", "(" * 5000, "12 messages", "1,5", "6N", "log2(0)", "sqrt(-1)"]
    texts += [*WRITTEN, *IN_DIGITS, *(f"2 {word} N" for word in IN_DIGITS)]
    texts += ["".join(rng.choice(PARTS) for _ in range(rng.randint(1, 6))) for _ in range(5000)]
    read = 0
    for text, there in zip(texts, ask(modules, READ, texts), strict=True):
        here = amount(text, p=4)
        read += here is not None
        assert (here is None) == (there is None), (text[:40], here, there)
        assert here is None or math.isclose(here, there, rel_tol=1e-9), (text, here, there)
    assert read > 500
