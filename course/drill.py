"""`tell_me_about()`: the interviewer of the last chapter draws a topic, and says how long the last answer took.

Every topic comes once before any comes again, in a new order every time.

Left out: what you said. The chapter has a list of points for each topic.
"""

import random
import time

TOPICS = (
    "all-reduce, to a colleague who trains on one GPU.",
    "ZeRO 1, 2 and 3.",
    "serving: prefill against decode.",
    "a hang: 512 GPUs, no error, no progress since 3 a.m.",
    "twice the GPUs, 1.3 times the speed. Why?",
    "a mixture of experts on 64 GPUs.",
    "a GPU that dies every three hours.",
)

LIMIT = 120
"""Seconds for an answer."""

_left: list[str] = []
_begun: list[float] = []


def tell_me_about(now=time.monotonic) -> None:
    """Print the time of the last answer, if there was one, and the next topic. The clock runs from here."""
    if _begun:
        seconds = round(now() - _begun.pop())
        over = "" if seconds <= LIMIT else f", {seconds - LIMIT} s too long: leave out what nobody asked"
        print(f"You took {seconds // 60}:{seconds % 60:02}{over}.")
    if not _left:
        _left.extend(random.sample(TOPICS, len(TOPICS)))
    print(f"Tell me about {_left.pop()} Two minutes, aloud.")
    _begun.append(now())
