"""What went wrong between the ranks of a cell, found in the flight recorder when the cell is over.

By then each rank has made its call, so the sentence is the same on every run, whichever rank was first. Deadlocks are
the doctor's. Here the calls that the guard refused are compared; and ranks that made equal calls in different orders,
which no fingerprint can tell from right ones, are suspected by the lines of these calls.
"""

from __future__ import annotations

from launch.doctor import explain
from launch.doctor.proof import Diagnosis, lost_receives
from launch.doctor.snapshot import How, take
from launch.shared import flight_recorder
from launch.shared.errors import DeadlockError, LostMessageError, MismatchError, Trouble
from launch.shared.flight_recorder import COMPARED, NEW_GROUPS, Fingerprint

ALL_TO_ALL = "all_to_all_single"
MOST_CALLS = 64  # of a group in a cell that are compared; the shared memory holds twice as many


def find_trouble(board, answers: dict, diagnosis: Diagnosis | None, late: bool = False) -> Trouble | None:
    """The trouble of a cell whose `answers` are complete; None if no rank disturbed another, or one died.

    `late` as in kernel.site.Site: the guard may have missed calls that do not fit.
    """
    if any(answer.how is How.DIED for answer in answers.values()):
        return None
    # A rank that was freed has lost count of the others' calls.
    refused = [rank for rank, a in answers.items() if a.ename == "MismatchError" and a.how is not How.FREED]
    if late and all(answer.how in (How.LEFT, How.FREED) for answer in answers.values()):
        refused = sorted(answers)
    if refused and (found := mismatch(board, refused)):
        return found
    if diagnosis is None:
        return _lost(board) if all(answer.how is How.LEFT for answer in answers.values()) else None
    edges = tuple((edge.rank, edge.other, *explain.in_short(edge.call)) for edge in diagnosis.edges)
    return Trouble(DeadlockError, explain.deadlock(diagnosis), diagnosis.stuck, edges)


def _lost(board) -> Trouble | None:
    """Messages that were lost though no rank has waited for them."""
    views = take(board, {rank: board.read(rank) for rank in range(board.ranks)}, {}, {})
    lost = lost_receives(views)
    return Trouble(LostMessageError, explain.lost(views, lost), tuple(loss.rank for loss in lost)) if lost else None


def mismatch(board, refused: list[int]) -> Trouble | None:
    """The first collective, or else message, of the refused ranks that does not fit another rank's."""
    marks = {rank: flight_recorder.fingerprints(board, rank) for rank in range(board.ranks)}
    calls: dict[tuple, dict[int, Fingerprint]] = {}
    for rank, last in marks.items():
        for mark in last:
            if mark.side == "collective":
                calls.setdefault((mark.key, mark.seq), {})[rank] = mark
    for (key, _), posted in sorted(calls.items(), key=lambda item: item[0][1]):
        if posted.keys() & set(refused) and len({_essence(mark) for mark in posted.values()}) > 1:
            before = {rank: _before(board, rank, key) for rank in posted}
            return _refused(refused, explain.mismatch(posted, before, _left_behind(board, posted, before)), posted)
        mark = next(iter(posted.values()))
        members = _members(board, min(posted), key) if mark.op == ALL_TO_ALL else ()
        found = flight_recorder.unfitting(board.memory, members, key, mark.epoch, mark.seq)
        if found and posted.keys() & set(refused):
            return _refused(refused, explain.split_mismatch(posted, found, _before(board, found.src, key)), posted)
    messages = [mark for last in marks.values() for mark in last if mark.side != "collective"]
    sent = {_address(mark): mark for mark in messages if mark.side == "send"}
    for received in messages:
        fitting = sent.get(_address(received)) if received.side == "recv" else None
        if fitting and (fitting.count, fitting.dtype) != (received.count, received.dtype):
            both = {fitting.src: fitting, received.dst: received}
            return _refused(refused, explain.message_mismatch(fitting, received), both)
    return None


def _refused(ranks: list[int], sentence: str, calls: dict[int, Fingerprint]) -> Trouble:
    edges = tuple((rank, None, *explain.in_short(calls[rank])) for rank in sorted(calls))
    return Trouble(MismatchError, sentence, tuple(ranks), edges)


def _left_behind(board, posted: dict[int, Fingerprint], before: dict[int, int]) -> dict[int, int]:
    """By rank, the number of the earlier cell that left this call behind."""
    now = max(mark.number for mark in posted.values())
    found = {rank: mark.number for rank, mark in posted.items() if mark.key == NEW_GROUPS and mark.number < now}
    for rank, mark in posted.items():
        calls = [
            call for call in flight_recorder.open_calls(board, rank) if (call.key, call.seq) == (mark.key, mark.seq)
        ]
        if mark.seq <= before[rank] and calls:
            found[rank] = calls[0].number
    return found


def _members(board, rank: int, key: int) -> tuple[int, ...]:
    """The ranks of the group, in its order: torch sorts them."""
    mask = next(int(tally.members, 16) for tally in flight_recorder.tallies(board, rank) if tally.key == key)
    return tuple(member for member in range(board.ranks) if mask >> member & 1)


def _essence(mark: Fingerprint) -> tuple:
    return tuple(getattr(mark, field) for field in COMPARED)


def _address(mark: Fingerprint) -> tuple:
    return mark.key, mark.src, mark.dst, mark.tag, mark.seq


def _before(board, rank: int, key: int) -> int:
    """How many collectives of the group the rank had begun when the cell began."""
    cell = board.read(rank).cell
    tally = next((tally for tally in flight_recorder.tallies(board, rank) if tally.key == key), None)
    return 0 if tally is None else tally.before if tally.cell == cell else tally.begun


def find_swapped(board, code: str) -> list[str]:
    """Warnings about groups in which ranks made the same calls of this cell in another order.

    A call is identified by the text of its line, which may be in both branches of an `if rank == 0`.
    """
    lines = code.split("\n")
    orders: dict[int, dict[int, list[tuple[str, int]]]] = {}
    for rank in range(board.ranks):
        cell = board.read(rank).cell
        for tally in flight_recorder.tallies(board, rank):
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


def find_missing_group(answers: list, in_all: list[int]) -> list[str]:
    """A warning if some ranks made a group in this cell and others did not; torch does not wait for these.

    `in_all` counts the groups of each rank with those of earlier cells, where a rank may have made it.
    """
    if any(answer.how is not How.LEFT for answer in answers):
        return []
    made: dict[int, list] = dict.fromkeys(range(len(in_all)), []) | {answer.rank: answer.groups for answer in answers}
    first = min(map(len, made.values()))
    more = {rank: groups[first] for rank, groups in made.items() if len(groups) > first}
    known = min((in_all[rank] for rank in more), default=0)
    missing = [rank for rank in made if rank not in more and in_all[rank] < known]
    return [explain.missing_group(more, missing)] if missing else []


def _texts(board, rank: int, tally, lines: list[str]) -> list[tuple[str, int]]:
    """(text, number) of the cell's lines that made the rank's collectives, in order; ("", 0) for lines elsewhere."""
    made: list[tuple[str, int]] = []
    for seq in range(tally.before + 1, tally.begun + 1):
        mark = flight_recorder.posted(board.memory, rank, tally.key, seq)
        at = mark.line if mark is not None and not mark.file else 0
        made.append((lines[at - 1].strip(), at) if 0 < at <= len(lines) else ("", 0))
    return made
