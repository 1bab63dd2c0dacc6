"""What a student's variable holds in the end, in terms of what all ranks had: the answer to "where is the mistake?".

`made_of` reads the accounts, not a picture: element 4 of rank 1's `y` is rank 0's element 4 of `x`, and twice rank
2's.

Left out: what it should have been; the course's judge knows.
"""

from typing import NamedTuple

from launch.replay.happened import Happened
from launch.replay.memory import Memory
from launch.replay.torch_ops import SIZES

KINDS = {
    "own": "own",
    "zero": "zeros",
    "empty": "never filled",
    "computed": "computed",
    "outside": "changed outside torch",
    "library": "left by the library",
    "unseen": "not seen",
}


class Made(NamedTuple):
    """Elements lo up to hi of a variable are put together in one way, `how` ("sum" also for a copy).

    terms  (rank, element, times): element lo is made of that element of the rank's input, lo + 1 of the next one ...
    other  what else is in it, "" if nothing: "computed" (by other arithmetic), "changed outside torch", "zeros", "never
           filled", "own" (other data of a rank's own), "left by the library", "not seen"
    lines  of the cell on which the rank wrote there last itself
    """

    lo: int
    hi: int
    how: str
    terms: tuple[tuple[int, int, float], ...]
    other: str
    lines: tuple[int, ...]


def made_of(happened: Happened, memories: dict[int, Memory], rank: int, name: str, of: str) -> list[Made]:
    """The pieces of a variable of one rank. See `Recording.made_of`."""
    memory = memories.get(rank)
    bound = memory.bound_last(name) if memory else None
    if bound is None or not all(happened.seen(each) for each in memories):
        return []
    inputs = _inputs(happened, memories, of)
    found, at = [], 0
    for storage, lo, nbytes in bound:
        size = SIZES.get(memory.storages[storage]["dtype"], 1)
        for p in happened.ends[rank].read(storage, lo, lo + nbytes):
            for a, b, terms, other in _told(happened, p, inputs, size):
                lines = [
                    w.line for w in happened.writes[rank] if w.storage == storage and w.lo < b and a < w.hi and w.line
                ]
                first, last = (a - lo + at) // size, (b - lo + at) // size
                found.append(Made(first, last, p.value.how, tuple(terms), other, tuple(lines[-1:])))
        at += nbytes
    return found


def _inputs(happened: Happened, memories: dict[int, Memory], of: str) -> dict[int, list]:
    """Leaf -> (lo, hi, rank, shift): its bytes lo up to hi are those of the rank's input, from byte lo + shift on."""
    found: dict[int, list] = {}
    for rank, starts in happened.starts.items():
        at = 0
        for b in memories[rank].named(of, 0):
            for p in starts.get(b.storage, ()):
                lo, hi = max(p.lo, b.lo), min(p.hi, b.lo + b.nbytes)
                if lo < hi and p.value.plain:
                    leaf, shift, _ = p.value.terms[0]
                    found.setdefault(leaf, []).append((lo + shift, hi + shift, rank, at - b.lo - shift))
            at += b.nbytes
    return found


def _told(happened: Happened, piece, inputs: dict[int, list], size: int):
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
                others.append(KINDS[happened.leaves.all[leaf].kind])
            else:
                terms.append((source[2], (lo + shift + source[3]) // size, times))
        others = [word for word in others if word != "zeros"] or (others if not terms else [])
        yield lo, hi, sorted(terms), next(iter(others), "")
