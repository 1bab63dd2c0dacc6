"""What a cell's ranks did to each other, found in the shared memory when the cell is over.

Only then has every rank that comes made its call, so that the sentence is the same on every run, whichever rank came
first. Deadlocks are the doctor's; here the calls that the guard refused are put side by side, and equal calls that
ranks have made in different order, which no fingerprint can tell from right ones, are suspected by their lines.
"""

from __future__ import annotations

from launch import ledger
from launch.doctor import Diagnosis, explain
from launch.errors import DeadlockError, MismatchError, Trouble
from launch.ledger import Fingerprint
from launch.rank import guard

COMPARED = ("op", "src", "reduce", "count", "dtype")
MOST_CALLS = 64  # of a group in a cell that are compared; the shared memory holds twice as many


def find_trouble(board, answers: dict, diagnosis: Diagnosis | None) -> Trouble | None:
    """The trouble of a cell whose `answers` are complete; None if no rank disturbed another, or one died."""
    if any(answer.status == "died" for answer in answers.values()):
        return None
    refused = [rank for rank, answer in answers.items() if answer.ename == "MismatchError"]
    sentence = _mismatch(board, refused) if refused else ""
    if sentence:
        return Trouble(MismatchError, sentence, tuple(refused))
    if diagnosis is None:
        return None
    edges = tuple((edge.rank, edge.other, explain.in_short(edge.call)) for edge in diagnosis.edges)
    return Trouble(DeadlockError, explain.deadlock(diagnosis), diagnosis.stuck, edges)


def _mismatch(board, refused: list[int]) -> str:
    """The first collective, or else message, of the refused ranks that does not fit another rank's."""
    marks = {rank: ledger.fingerprints(board, rank) for rank in range(board.ranks)}
    calls: dict[tuple, dict[int, Fingerprint]] = {}
    for rank, posted in marks.items():
        for mark in posted:
            if mark.side == "collective":
                calls.setdefault((mark.key, mark.seq), {})[rank] = mark
    for (key, _), posted in sorted(calls.items(), key=lambda item: item[0][1]):
        if posted.keys() & set(refused) and len({_essence(mark) for mark in posted.values()}) > 1:
            return explain.mismatch(posted, {rank: _before(board, rank, key) for rank in posted})
    messages = [mark for posted in marks.values() for mark in posted if mark.side != "collective"]
    sent = {_address(mark): mark for mark in messages if mark.side == "send"}
    for received in messages:
        fitting = sent.get(_address(received)) if received.side == "recv" else None
        if fitting and (fitting.count, fitting.dtype) != (received.count, received.dtype):
            return explain.message_mismatch(fitting, received)
    return ""


def _essence(mark: Fingerprint) -> tuple:
    return tuple(getattr(mark, field) for field in COMPARED)


def _address(mark: Fingerprint) -> tuple:
    return mark.key, mark.src, mark.dst, mark.tag, mark.seq


def _before(board, rank: int, key: int) -> int:
    """How many collectives of the group the rank had begun when the cell began."""
    cell = board.read(rank).cell
    tally = next((tally for tally in ledger.tallies(board, rank) if tally.key == key), None)
    return 0 if tally is None else tally.before if tally.cell == cell else tally.begun


def find_swapped(board, code: str) -> list[str]:
    """Warnings: groups in which ranks have made the same calls of this cell, but in another order.

    A call is known by the text of its line, so that both branches of an `if rank == 0` may hold it.
    """
    lines = code.split("\n")
    orders: dict[int, dict[int, list[tuple[str, int]]]] = {}
    for rank in range(board.ranks):
        cell = board.read(rank).cell
        for tally in ledger.tallies(board, rank):
            if tally.cell == cell and 2 <= tally.begun - tally.before <= MOST_CALLS:
                orders.setdefault(tally.key, {})[rank] = _texts(board, rank, tally, lines)
    found = []
    for by_rank in orders.values():
        (first, calls), *others = by_rank.items()
        for rank, other in others:
            texts, theirs = [text for text, _ in calls], [text for text, _ in other]
            if texts != theirs and sorted(texts) == sorted(theirs) and "" not in texts:
                at = next(n for n, text in enumerate(texts) if text != theirs[n])
                found.append(explain.swapped((first, at + 1, calls[at][1]), (rank, at + 1, other[at][1])))
                break
    return found


def _texts(board, rank: int, tally, lines: list[str]) -> list[tuple[str, int]]:
    """(text, number) of the cell's lines that made the rank's collectives, in order; ("", 0) if they are elsewhere."""
    made = []
    for seq in range(tally.before + 1, tally.begun + 1):
        mark = guard.posted(board.memory, rank, tally.key, seq)
        known = mark is not None and not mark.file and 0 < mark.line <= len(lines)
        made.append((lines[mark.line - 1].strip(), mark.line) if known else ("", 0))
    return made
