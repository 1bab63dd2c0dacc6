"""Mismatches are caught before they enter gloo, which answers half of them with wrong numbers and no error.

Every rank posts a fingerprint of each call (the n-th collective of a group, the n-th message of a pair of ranks) in its
part of the shared memory and compares it with what the others have posted. Of two ranks that disagree, the later one
sees the other's fingerprint and raises `MismatchError` before it enters the library; both may. A rank that is
already inside waits for a partner that will not come: the driver sees that this one raised, and frees it.

Left out: two calls that look alike but are not meant for each other (the order of two equal all_reduces swapped): no
fingerprint can tell, only their lines can make one suspect it (`doctor.trouble`). Messages received from any source,
whose partner is not known in advance.
"""

import threading

from launch.ledger import COLLECTIVES, MESSAGES, Fingerprint, base_of

_ASPECTS = (  # field, how it is said for a collective, how for a message
    ("op", "{op}", "{op}"),
    ("src", "root {src}", ""),
    ("reduce", "{reduce}", ""),
    ("count", "{count} elements", "{count} bytes"),
    ("dtype", "{dtype}", "{dtype}"),
)


class MismatchError(RuntimeError):
    """Two ranks make calls that do not fit together. The message names both ranks, both calls and both lines."""


class Guard:
    """One rank's view: it writes its own fingerprints and reads those of the others."""

    def __init__(self, memory, rank: int):
        self.memory, self.rank = memory, rank
        self._fence = threading.Lock()

    def collective(self, mark: Fingerprint, ranks) -> None:
        """Post this rank's n-th collective of a group of `ranks`; MismatchError if one of them posted another."""
        row = _row(mark, COLLECTIVES)
        COLLECTIVES.write(self.memory, base_of(self.rank), row, mark)
        self._order()
        for rank in ranks:
            if rank != self.rank:
                other = COLLECTIVES.read(self.memory, base_of(rank), row)
                if other is not None and _same_call(mark, other):
                    self._compare(mark, rank, other)

    def message(self, mark: Fingerprint) -> None:
        """Post this rank's side of a message; MismatchError if the other side has posted another size or type."""
        MESSAGES.write(self.memory, base_of(self.rank), _row(mark, MESSAGES), mark)
        self._order()
        rank, side = (mark.dst, "recv") if mark.side == "send" else (mark.src, "send")
        other = MESSAGES.read(self.memory, base_of(rank), _row(mark._replace(side=side), MESSAGES))
        if other is not None and _same_call(mark._replace(side=side), other):
            self._compare(mark, rank, other._replace(op=mark.op))

    def retract(self, mark: Fingerprint) -> None:
        """The library has refused the call that this fingerprint stands for: nobody else will make it either."""
        table = COLLECTIVES if mark.side == "collective" else MESSAGES
        if table.read(self.memory, base_of(self.rank), _row(mark, table)) == mark:
            table.erase(self.memory, base_of(self.rank), _row(mark, table))

    def _order(self) -> None:
        """Make sure the write is out before the reads, else two ranks could miss each other: a lock is a fence."""
        with self._fence:
            pass

    def _compare(self, mine: Fingerprint, rank: int, other: Fingerprint) -> None:
        message = mine.side != "collective"
        fields = [field for field, _, in_message in _ASPECTS if (in_message or not message)]
        for field in fields:
            if getattr(mine, field) != getattr(other, field):
                break
        else:
            return
        if message:
            sides = {mine.side: (self.rank, mine), "recv" if mine.side == "send" else "send": (rank, other)}
            (src, sent), (dst, received) = sides["send"], sides["recv"]
            raise MismatchError(
                f"rank {self.rank}: message {mine.seq} from rank {src} to rank {dst} does not fit: "
                f"rank {src} sends {_amount(sent)} ({_line(sent)}), "
                f"rank {dst} receives {_amount(received)} ({_line(received)})"
            )
        raise MismatchError(
            f"rank {self.rank} calls {_told(mine, field)} ({_line(mine)}), "
            f"but rank {rank} calls {_told(other, field)} ({_line(other)})"
        )


def _row(mark: Fingerprint, table) -> int:
    """Where in the table this call stands, the same on every rank; a newer call takes the place of an old one."""
    mixed = mark.key ^ (mark.src + 1) * 0x9E3779B1 ^ (mark.dst + 1) * 0x85EBCA77 ^ (mark.tag + 1) * 0xC2B2AE3D
    if mark.side == "collective":
        mixed = mark.key  # ranks that disagree about the root must meet in one row
    return ((mixed ^ mixed >> 29) * 2 + mark.seq * 2 + (mark.side == "recv")) % table.rows


def _same_call(mine: Fingerprint, other: Fingerprint) -> bool:
    same = mine.key == other.key and mine.epoch == other.epoch and mine.seq == other.seq and mine.side == other.side
    return same and (mine.side == "collective" or (mine.src, mine.dst, mine.tag) == (other.src, other.dst, other.tag))


def _told(mark: Fingerprint, field: str) -> str:
    """The call with what it disagrees about: "all_reduce #2 with MAX"."""
    call = f"{mark.op} #{mark.seq}"
    if field == "op":
        return call
    aspect = next(said for name, said, _ in _ASPECTS if name == field)
    if field == "count" and mark.op.startswith("reduce_scatter"):
        aspect = "{count} elements per rank"
    return f"{call} with {aspect.format(**mark._asdict())}"


def _amount(mark: Fingerprint) -> str:
    return f"{mark.count} bytes of {mark.dtype}"


def _line(mark: Fingerprint) -> str:
    return f"line {mark.line}" + (f" of {mark.file}" if mark.file else "")


def posted(memory, rank: int, key: int, seq: int) -> Fingerprint | None:
    """Driver: the rank's collective of that group and number, if its fingerprint is still there."""
    row = _row(Fingerprint(key, 0, seq, 0, -1, -1, -1, 0, "collective", "", "", "", ""), COLLECTIVES)
    mark = COLLECTIVES.read(memory, base_of(rank), row)
    return mark if mark is not None and (mark.key, mark.seq) == (key, seq) else None
