"""What stands below a verdict: typical mistakes on real ranks, each with the line that says what to change."""

import importlib
import inspect

import pytest

from course.exercises import EXERCISES
from course.judge import trial

ISEND = "none gets as far as its recv: begin with isend, then recv, then wait()"
SIZE = "both tensors must have as many numbers, of the same dtype: torch.empty_like(x) makes one like x"
SHIFT, SWAP, RING = "shift", "swap", "ring_reduce_scatter"
SENT, WAIT = "sending = dist.isend", "\n    sending.wait()"
MISTAKES = {  # exercise, what of its solution is written otherwise, and what is said
    "a ring of sends": (SHIFT, {SENT: "dist.send", WAIT: ""}, ISEND),
    "waits too soon": (SHIFT, {"\n    dist.recv": WAIT + "\n    dist.recv"}, ISEND),
    "pairs of sends": (SWAP, {SENT: "dist.send", WAIT: ""}, ISEND),
    "pairs of recvs": (
        SWAP,
        {"    sending = dist.isend(x, partner)\n": "", WAIT: "\n    dist.send(x, partner)"},
        "none gets as far as its send: one rank has to send first, or all of them begin with isend",
    ),
    "from the wrong side": (
        SHIFT,
        {"(rank - 1)": "(rank + 1)"},
        "rank 0 waits for rank 1, which has sent to rank 2 (line 5): receive from the rank that sends to you",
    ),
    "too short": (SHIFT, {"empty_like(x)": "empty(3)"}, SIZE),
    "of another dtype": (SHIFT, {"empty_like(x)": "empty(len(x))"}, SIZE),
    "for four ranks": (
        SHIFT,
        {
            "rank, world_size = dist.get_rank(), dist.get_world_size()": "rank, p = dist.get_rank(), 4",
            "world_size": "p",
        },
        "line 3 has the number 4: should that be world_size?",
    ),
    "for three steps": (
        RING,
        {"range(world_size - 1)": "range(3)"},
        "has the number 3: should that be world_size - 1?",
    ),
    "a step too few": (
        RING,
        {"range(world_size - 1)": "range(world_size - 2)"},
        "8 messages were sent, and by the book it takes 12: is there a step too few?",
    ),
    "what recv returns": (
        "running_sum",
        {"        dist.recv(so_far": "        so_far = dist.recv(so_far"},
        "dist.recv returns the number of the sender; what came is in so_far: write dist.recv(so_far, rank - 1) without "
        "so_far =",
    ),
    "a round that is not for all": (
        "tree_broadcast",
        {"elif distance <= rank < 2 * distance": "else"},
        "in each round sender and receiver have to name each other",
    ),
    "chunks of other lengths": (
        "ring_any_length",
        {"torch.empty_like(mine)": "torch.empty_like(chunks[0])"},
        "the chunks are not all of one length here",
    ),
    "what goes is what comes": (
        "uneven_all_to_all",
        {"    dist.all_to_all_single(incoming, outgoing)\n": "    incoming.copy_(outgoing)\n"},
        "each rank first sends every other its count",
    ),
    "wait without ()": (SHIFT, {"sending.wait()": "sending.wait"}, "sending.wait without () does not wait"),
}


def advice(name, source) -> list[str]:
    for tried in trial.trials(EXERCISES[name], source):
        if tried.fault():
            return tried.hints
    return []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_says_what_to_change(mistake):
    name, parts, words = MISTAKES[mistake]
    source = inspect.getsource(getattr(importlib.import_module(f"course.solutions.{name}"), name))
    for part, instead in parts.items():
        assert part in source
        source = source.replace(part, instead)
    told = [line for line in advice(name, source) if words in line]
    assert len(told) == 1


def test_a_built_in_that_must_not_be_used_needs_no_more_words():
    assert advice(SHIFT, "def shift(x):\n    dist.all_reduce(x)\n    return dist.recv(x, 4)\n") == []


@pytest.mark.parametrize(
    "parts, words",
    [
        ({SENT: "dist.isend", WAIT: ""}, "rank 0 never waits for its isend to rank 1 (line 5)"),
        ({WAIT: ""}, "rank 0 never waits for its isend to rank 1 (line 5)"),
        ({WAIT: WAIT[:-2]}, "rank 0 never waits for its isend to rank 1 (line 5)"),
        ({"dist.recv": "coming = dist.irecv"}, "rank 0 never waits for its irecv from rank 3 (line 6)"),
    ],
)
def test_a_dropped_message_is_told_in_the_same_words_whoever_loses_it(parts, words):
    source = inspect.getsource(importlib.import_module("course.solutions.shift").shift)
    for part, instead in parts.items():
        source = source.replace(part, instead)
    for _ in range(3):
        tried = next(trial.trials(EXERCISES[SHIFT], source))
        assert tried.fault() == f"{words}: keep what it returns, and wait()"
