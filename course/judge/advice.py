"""What to do about a fault, as lines below the verdict: what a student of these exercises usually has to change then.

The doctor says which rank waits for which and which calls do not match; it does not know the exercise. This module
knows that the function sends messages: so a ring of sends needs isend, and a receive that waits for a rank that sent to
another one has the wrong neighbour. It reads the run (`Trial.calls`), the edges of the deadlock, and the source.

Left out: what a single error says (launch/hints); results that are wrong (diagnosis.py).
"""

import ast
import signal

from course.exercises.exercise import MESSAGES_ONLY
from launch.shared.errors import DeadlockError, MismatchError

ISEND = (
    "each of them waits until its message is received, and none gets as far as its recv: begin with isend, then recv, "
    "then wait()"
)
RECV_FIRST = (
    "each of them waits for a message, and none gets as far as its send: one rank has to send first, or all of them "
    "begin with isend"
)
SIZE = "both tensors must have as many numbers, of the same dtype: torch.empty_like(x) makes one like x"
UNEVEN = (
    "the chunks are not all of one length here: the tensor that a chunk arrives in has to be as long as that chunk, on "
    "every rank"
)
LENGTHS = (
    "the lists of all_to_all_single(out, x, what comes from each, what goes to each) do not fit together on all ranks: "
    "what comes only the others know, so each rank first sends every other its count"
)


def advice(trial) -> list[str]:
    """Lines for a `course.judge.trial.Trial` with a fault; [] if nothing is known."""
    notes = [note for note in trial.notes if not any(note in hint for hint in trial.hints)]
    return [
        *notes,
        *filter(None, (_who_waits(trial), _size(trial), _lengths(trial), _number_of_ranks(trial), _too_few(trial))),
    ]


def _who_waits(trial) -> str:
    """For ranks that each wait for another waiting rank."""
    error = trial.error
    if not isinstance(error, DeadlockError) or trial.calls is None or not trial.exercise.allowed <= MESSAGES_ONLY:
        return ""
    stuck = {rank for rank, *_ in error.edges}
    if not stuck or not all(other in stuck for _, other, *_ in error.edges):
        return ""
    events = sorted(trial.calls.events, key=lambda event: event.start)
    waits_in = {event.rank: event.op for event in events if event.rank in stuck}  # the last one of each
    if {*waits_in.values()} == {"send"}:
        return ISEND
    if {*waits_in.values()} != {"recv"}:
        return _past_each_other(error.edges, waits_in)
    begun = [event for event in events if event.op == "send"]
    if not begun:
        return RECV_FIRST
    for rank, other, *_ in error.edges:
        sent = [event for event in begun if event.rank == other and event.match is None]
        if sent and all(event.peer != rank for event in sent):
            return (
                f"rank {rank} waits for rank {other}, which has sent to rank {sent[0].peer} (line {sent[0].line}): "
                "receive from the rank that sends to you"
            )
    return ""


def _past_each_other(edges, waits_in: dict[int, str]) -> str:
    """For a rank that sends to a rank that waits for another one."""
    waits_for = {rank: other for rank, other, *_ in edges}
    for rank, other in waits_for.items():
        if waits_in.get(rank) == "send" and waits_in.get(other) == "recv" and waits_for[other] != rank:
            return (
                f"rank {rank} sends to rank {other}, and rank {other} waits for rank {waits_for[other]}: in each round "
                "sender and receiver have to name each other, and a rank that has no part in it does nothing"
            )
    return ""


def _size(trial) -> str:
    """For a send and a receive that do not match: these exercises have no other calls."""
    if not isinstance(trial.error, MismatchError) or not trial.exercise.allowed <= MESSAGES_ONLY:
        return ""
    return UNEVEN if "uneven" in trial.exercise.x else SIZE


def _lengths(trial) -> str:
    """For pieces that are not as long as their receivers expect. If the guard is late, gloo kills ranks for it."""
    unfit = isinstance(trial.error, MismatchError) or any(
        answer.ename == MismatchError.__name__ or answer.signal == signal.SIGABRT for answer in trial.last
    )
    return LENGTHS if unfit and "all_to_all_single" in trial.exercise.allowed else ""


def _number_of_ranks(trial) -> str:
    """For a number in the function that is right for the first world size only."""
    first = trial.exercise.world_sizes[0]
    if trial.draw.index == 0 or trial.p == first:  # later trials come only after it was right there
        return ""
    for node in ast.walk(ast.parse(trial.source)):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in (first, first - 1):
            meant = "world_size" if node.value == first else "world_size - 1"
            return f"line {node.lineno} has the number {node.value}: should that be {meant}?"
    return ""


def _too_few(trial) -> str:
    """For a wrong result of fewer messages than it takes."""
    bound, sent = trial.exercise.messages, trial.calls.counts().messages if trial.calls else 0
    if trial.failure or bound is None or not 0 < sent < bound(trial.p):
        return ""
    return f"{sent} messages were sent, and by the book it takes {bound(trial.p)}: is there a step too few?"
