"""What each variable is made of when the cell has ended. This answers "where is the mistake?": element 4 of rank 1's
`y` is rank 0's element 4 of `x`, and twice rank 2's.

Left out: which collective that is (`replay._outcome`).
"""

from functools import partial
from typing import NamedTuple

from launch.replay._numbers import SIZES
from launch.replay._places import content, elements
from launch.replay._replay import Replay
from launch.replay.provenance import Kind


class Made(NamedTuple):
    """Elements lo up to hi of a variable are put together in one way, `how` ("sum" also for a copy).

    terms  (rank, element, times): element lo is made of that element of the rank's input, lo + 1 of the next one ...
    other  what else is in it, None if nothing
    lines  of the cell on which the rank wrote there last itself
    """

    lo: int
    hi: int
    how: str
    terms: tuple[tuple[int, int, float], ...]
    other: Kind | None
    lines: tuple[int, ...]


def made_of(replay: Replay, rank: int, name: str, of: str) -> list[Made]:
    """The pieces of a variable of one rank. See `Recording.made_of`."""
    memory = replay.variables.get(rank)
    bound = elements(memory.last(name)) if memory else []
    if memory is None or not bound or not all(map(replay.seen, replay.variables)):
        return []
    inputs = _inputs(replay, of)
    found, at = [], 0
    for span in bound:
        size = SIZES.get(memory.type_in(span.storage), 1)
        for p in replay.ends[rank].held(span):
            for a, b, terms, other in _parts(replay, p, inputs, size):
                part = span._replace(lo=a, hi=b)
                lines = [write.line for write in replay.writes[rank] if write.line and write.span.meets(part)]
                first, last = ((edge - span.lo + at) // size for edge in (a, b))
                found.append(Made(first, last, p.value.how, tuple(terms), other, tuple(lines[-1:])))
        at += span.hi - span.lo
    return found


def _inputs(replay: Replay, of: str) -> dict[int, list]:
    """Leaf -> (lo, hi, rank, shift): its bytes lo up to hi are those of the rank's input, from byte lo + shift on."""
    found: dict[int, list] = {}
    for rank, memory in replay.variables.items():
        for p in content(elements(memory.named(of, 0)), partial(replay.held_first, rank)):
            if p.value.plain:
                leaf, shift, _ = p.value.terms[0]
                found.setdefault(leaf, []).append((p.lo + shift, p.hi + shift, rank, -shift))
    return found


def _parts(replay: Replay, piece, inputs: dict[int, list], size: int):
    """(lo, hi, terms, other) of a piece, cut where it comes from another place of an input."""
    cuts = {piece.lo, piece.hi}
    for leaf, shift, _ in piece.value.terms:
        for a, b, *_ in inputs.get(leaf, ()):
            cuts |= {edge - shift for edge in (a, b) if piece.lo < edge - shift < piece.hi}
    for lo, hi in zip(sorted(cuts), sorted(cuts)[1:], strict=False):
        terms, others = [], []
        for leaf, shift, times in piece.value.terms:
            source = next((s for s in inputs.get(leaf, ()) if s[0] <= lo + shift < s[1]), None)
            if source is None:
                others.append(replay.leaves.all[leaf].kind)
            else:
                terms.append((source[2], (lo + shift + source[3]) // size, times))
        others = [kind for kind in others if kind is not Kind.ZERO] or (others if not terms else [])
        yield lo, hi, sorted(terms), next(iter(others), None)
