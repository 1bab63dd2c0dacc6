"""Typical mistakes that show only at other places, or on the way of a piece, message by message.

The way is the recording's (`Schedule.trace`), the letters are those of `holding.py`. Each function says
something only where it was seen.

Left out: mistakes that can be read off the wrong element alone (`causes.py`).
"""

from typing import NamedTuple

import numpy as np

from course.judge.holding import Answers, Block, Held, Origin, X
from launch.shared.errors import name_ranks


class Wrong(NamedTuple):
    """The first element that is wrong, on the first rank that has one."""

    rank: int
    element: int  # of the variable in which the answer stands
    values: np.ndarray  # the rank's answer, flat
    expected: np.ndarray
    place: int  # of the element in these


class Case(NamedTuple):
    """What the judges of a cause look at."""

    answers: Answers
    wrong: Wrong
    block: Block
    held: Held
    has: dict[Origin, float]  # the terms of the wrong element
    wants: dict[Origin, int]

    @property
    def line(self) -> str:
        return f" (line {self.held.lines[-1]})" if self.held.lines else ""

    @property
    def written(self) -> str:
        """The line on which the rank itself wrote there last; a message may have come later."""
        return f" (it wrote there last on line {self.held.lines[-1]})" if self.held.lines else ""

    def changed(self, rank: int) -> bool:
        """Whether anything in the x of a rank is another than it was."""
        trial = self.answers.trial
        return not np.array_equal(trial.after[rank].get("values"), trial.given[rank])

    @property
    def missing(self) -> list[int]:
        return sorted({rank for rank, _ in self.wants.keys() - self.has.keys()})


def doubling(case: Case, doubled: int) -> str:
    """ " (line 9)", or " on rank 3": where a rank's data came together with themselves."""
    recording, cell = case.answers.recording, case.answers.cell(case.wrong.rank, case.wrong.element)
    if cell is None or not len(recording.steps):
        return case.line
    rank, buffer, chunk = cell
    way = recording.trace(rank, chunk, -1, buffer)
    for hop, step in zip(way.hops, way.steps, strict=True):
        after = recording.states(step).cells[hop.dst_buffer][hop.dst, hop.dst_chunk]
        if sum(times for (source, _), times in after.terms if source == doubled) > 1:
            return case.line if hop.dst == rank else f" on rank {hop.dst}"
    return case.line


def elsewhere(case: Case) -> str:
    """The sum is finished on another rank, and not here."""
    answers = case.answers
    if len(case.wants) < 2 or not answers.in_place:
        return ""
    for rank in range(answers.trial.p):
        if rank != case.wrong.rank and answers.is_right(rank, case.wrong.element, case.wants):
            if case.wants.keys() <= case.has.keys():
                return (
                    f"that sum is finished on rank {rank}, and here what arrived was added to what was there already; "
                    "receive it into its chunk, or copy_ it"
                )
            if was_here(case):
                return (
                    "that sum was on this rank, but in another tensor than x; write it into x with += or copy_: "
                    "chunks[i] = ... only puts another tensor into the list"
                )
            everyones = any(block.lo <= case.wrong.element < block.hi for block in answers.blocks(rank))
            do = "look at which part each rank keeps in which round"
            if everyones:
                do = "pass it on to every rank"
            elif answers.trial.exercise.peers:  # a ring
                do = "begin with another chunk, so that its last stop is here"
            return f"that sum is finished on rank {rank}, but not here; {do}"
    return ""


def undone(case: Case) -> str:
    """A rank received the rest of the sum, and later something else where it should stand: all it had was lost."""
    trial, (_, _, lo, hi, _) = case.answers.trial, case.block
    if len(case.wants) < 2 or not case.answers.in_place:
        return ""
    first = case.answers.blocks(case.wrong.rank)[0].lo
    whole = case.wrong.expected[lo - first : hi - first]
    for rank in range(trial.p):
        own, now = (seen.ravel()[lo:hi] for seen in (trial.given[rank], trial.after[rank]["values"]))
        if np.array_equal(now, whole):
            continue
        received = [event for event in case.answers.recording.events if event.rank == rank and event.op == "recv"]
        brought = [[numbers for numbers in event.after if numbers is not None] for event in received]
        rest = [at for at, came in enumerate(brought) if any(np.array_equal(numbers, whole - own) for numbers in came)]
        over = [at for at, came in enumerate(brought) if any(np.array_equal(numbers, now) for numbers in came)]
        if rest and over and rest[0] < over[-1]:
            event = received[over[-1]]
            where = "this rank" if rank == case.wrong.rank else f"rank {rank}"
            do = "receive into another tensor, and add that"
            if len(case.answers.blocks(rank)) > 1:
                do = (
                    "in the all-gather half begin with the chunk that is finished on the sender, and receive it as that"
                )
            return (
                f"{where} had received the rest of that sum (line {received[rest[0]].line}), and then overwrote it "
                f"with what came from rank {event.peer} (line {event.line}); {do}"
            )
    return ""


def too_early(case: Case) -> str:
    """A rank passed its own piece on, and got what it should have passed on only later."""
    if len(case.wants) > 1 or len(case.has) != 1 or case.held.other:
        return ""
    ((rank, element),) = case.has
    if rank in (case.wrong.rank, *case.missing) or element != case.wrong.element or not case.answers.in_place:
        return ""
    if not case.answers.is_right(rank, element, case.wants):
        return ""
    return f"rank {rank} sent its own before it had rank {case.missing[0]}'s; receive first, then send"


def misplaced(case: Case) -> str:
    """The right pieces in the wrong places."""
    answers, rank = case.answers, case.wrong.rank
    blocks = answers.blocks(rank)
    wanted = [dict.fromkeys(block.wanted, 1) for block in blocks]
    found: list[int] = []  # which block's content stands in each, where it is that of one
    for block in blocks:
        held = answers.held(rank, block.lo)
        has = answers.at(held, block.lo) if held and not held.other and held.hi >= block.hi else None
        found += [k for k, wants in enumerate(wanted) if wants == has][:1]
    if len(blocks) > 1 and len(set(found)) == len(blocks):
        return f"the right pieces are there in the wrong places: {_permuted(found, blocks)}"
    if case.has.keys() & case.wants.keys():
        return ""
    same_ranks = {rank for rank, _ in case.has} == {rank for rank, _ in case.wants}
    if not same_ranks or set(case.has.values()) != {1} or case.held.other:
        return ""
    chunks_here, chunks_due = ({answers.chunk(origin) for origin in terms} for terms in (case.has, case.wants))
    if chunks_here == chunks_due:
        mine, theirs = (answers.offset(next(iter(terms))) for terms in (case.has, case.wants))
        here = case.wrong.element - case.block.lo
        return (
            f"the right pieces are there in the wrong places: at element {here} is element {mine}, where element "
            f"{theirs} belongs; look at where a piece begins and ends"
        )
    chunks = {chunk for _, chunk in chunks_here}
    if len(case.wants) > 1 and len(chunks) == 1:
        chunk = chunks.pop()
        return f"that is the whole sum of chunk {chunk}, in the wrong place; look at which chunk belongs to which rank"
    return ""


def repeated(case: Case) -> str:
    """ "chunks 1-3": the parts of the answer that hold the very same as the wrong one, if there are several."""
    answers, rank = case.answers, case.wrong.rank
    same = []
    blocks = answers.blocks(rank)
    for block in blocks if len(blocks) > 1 else ():
        held = answers.held(rank, block.lo)
        if held and not held.other and answers.at(held, block.lo) == answers.at(case.held, case.block.lo):
            same.append(int(block.name.removeprefix("chunk ")))
    return name_ranks(same, of="chunk") if len(same) > 1 else ""


def _permuted(found: list[int], blocks: list[Block]) -> str:
    p = len(found)
    moved = [k for k in range(p) if found[k] != k]
    do = "put what comes from a rank where that rank's piece belongs"
    if len(moved) == 2:
        return f"{' and '.join(blocks[k].name for k in moved)} are swapped; {do}"
    shifts = {(k - found[k]) % p for k in range(p)}
    if len(shifts) == 1:
        by = shifts.pop()
        by, where = (by, "late") if by <= p // 2 else (p - by, "early")
        return f"each of them is {by} place{'s' if by > 1 else ''} too {where}; {do}"
    return f"{blocks[moved[0]].name} holds what belongs in {blocks[found[moved[0]]].name}; {do}"


def overwritten(case: Case) -> str:
    """A rank's piece was replaced by what that rank had received, before it went out."""
    answers, recording = case.answers, case.answers.recording
    cell = answers.cell(case.wrong.rank, case.wrong.element)
    if cell is None or not case.missing or not len(recording.steps):
        return ""
    rank, buffer, chunk = cell
    way = recording.trace(rank, chunk, -1, buffer)
    own = [answers.cell(*origin, X) for origin in case.wants if origin[0] in case.missing]  # as it was at the start
    for hop, step in zip(way.hops, way.steps, strict=True):
        if hop.src == hop.dst or not step or (hop.src, hop.src_buffer, hop.chunk) not in own:
            continue
        then = recording.states(step - 1).cells[hop.src_buffer][hop.src, hop.chunk]
        if then and hop.src not in then.contributors and case.changed(hop.src):  # a name may pass to other memory
            how = f"overwritten by what it had received{_receiving(recording, hop, step)} before it was sent"
            do = "add to it with +=" if len(case.wants) > 1 else "receive into another tensor"
            return f"rank {hop.src}'s own piece was {how}; {do}, or send it first"
    return ""


def _receiving(recording, hop, step: int) -> str:
    """ " (line 5)": where a rank received what overwrote its piece, if that is plain."""
    past = recording.trace(hop.src, hop.chunk, step - 1, hop.src_buffer)
    last = max([index for index, each in zip(past.steps, past.hops, strict=True) if each.dst == hop.src], default=None)
    sources = recording.steps[last].sources if last is not None else ()
    received = {event.line for event in recording.events if event.rank == hop.src and event.op == "recv"}
    lines = {line for rank, line, _ in sources if rank == hop.src and line in received}
    return f" (line {lines.pop()})" if len(lines) == 1 else ""


def has_come(case: Case, missing: int) -> bool | None:
    """Whether a message brought that rank's piece here; None if the picture does not show the piece."""
    answers, recording = case.answers, case.answers.recording
    element = next(element for rank, element in case.wants if rank == missing)
    cell = answers.cell(missing, element, X)
    origins = recording.start().cells[cell[1]][cell[0], cell[2]].origins if cell else ()
    if not origins:
        return None
    before = recording.start()
    for step in recording.steps:
        for each in step.transfers:
            if each.dst == case.wrong.rank != each.src and each.op != "new":
                sent = before.cells[each.src_buffer][each.src, each.chunk : each.chunk + each.count]
                if any(set(origins) <= set(part.origins) for part in sent):
                    return True
        before.apply(step.moves)
    return False


def was_here(case: Case) -> bool:
    """Whether the rank has sent or received what should be in the wrong part of its answer."""
    lo = case.block.lo - case.answers.blocks(case.wrong.rank)[0].lo
    should = case.wrong.expected[lo : lo + case.block.hi - case.block.lo]
    return any(
        numbers is not None and np.array_equal(numbers, should)
        for event in case.answers.recording.events
        if event.rank == case.wrong.rank
        for numbers in (event.before if event.op == "send" else event.after)
    )


def brought(case: Case) -> int | None:
    """The rank whose message brought the wrong part of the answer just as it is now; None if none was seen to."""
    lo = case.block.lo - case.answers.blocks(case.wrong.rank)[0].lo
    now = case.wrong.values[lo : lo + case.block.hi - case.block.lo]
    senders = [
        event.peer
        for event in case.answers.recording.events
        if event.rank == case.wrong.rank and event.op == "recv" and now.any()  # zeros are in any fresh memory
        for numbers in event.after
        if numbers is not None and np.array_equal(numbers, now, equal_nan=now.dtype.kind == "f")
    ]
    return senders[-1] if senders else None


def first_not_finite(recording) -> tuple[int, str, str] | None:
    """(rank, "nan", when) of the first number in a recording that is inf or nan."""
    moments = [("before the first message", recording.start_values())]
    moments += [(f"after step {index + 1}", recording.values(index)) for index in range(len(recording.steps))]
    for when, values in moments:
        for rank, _, _, text in sorted(values):
            for word in text.split():
                if word.lstrip("-") in ("inf", "nan"):
                    return rank, word, when
    return None
