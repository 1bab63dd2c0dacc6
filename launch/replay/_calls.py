"""The calls that ranks made: which send met which receive, which calls are one collective, what a collective left in
memory, and which tensors were used before their wait.

How the library moved the data of a built-in cannot be seen from outside: gloo and NCCL choose their own algorithm. So
what a recorded built-in did is told as one step of transfers between the tensors that its ranks gave it, in which
everything goes straight from where it was to where it is wanted. That shows what the collective means; it says nothing
about messages, and `Recording.counts` leaves it out.

Left out: in which step, and with which data (`replay._replay`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from collectives.as_if import HELD, REDUCING, ROOTED, Region, Share, straight
from launch.replay._torch_ops import Op, View, makes, spans
from launch.replay.provenance import Kind, Leaves, Piece, Ranges, Span, cut, meeting, moved
from launch.shared.capture import BEGIN, END

ITSELF = """_unsafe_view wait_tensor _wrap_tensor_autograd all_gather_into_tensor all_reduce all_to_all_single broadcast
reduce_scatter_tensor""".split()
"""Ops that only hand their tensor on, and the functional collectives, which are the call itself."""


class Call(NamedTuple):
    """One recorded call: `number` is its index in its rank's events, `event` the dict that the tap wrote."""

    rank: int
    number: int
    event: dict


@dataclass(eq=False)
class Matched:
    """The calls of several ranks that form one message or one collective. `step` counts from 0.

    `carries`: rank -> the pieces that its tensors held when it made the call. While the op logs are replayed, `begun`
    counts the calls that have begun, and `after` is the latest step that had ended before any of them. `changed`: the
    sender overwrites the data before its wait has ended, so the numbers that were sent are not known.
    """

    calls: tuple[Call, ...]
    ranks: tuple[int, ...]
    step: int = 0
    carries: dict[int, list] = field(default_factory=dict)
    begun: int = 0
    after: int = -1
    changed: bool = False


class Collective(Matched):
    """One call of a built-in, by those ranks of its group that made it. `ranks` are the group, in its order."""

    @property
    def complete(self) -> bool:
        """Whether no rank of the group is missing. Of one that is not the library may have written any part."""
        return len(self.calls) == len(self.ranks)


class Message(Matched):
    @property
    def send(self) -> Call:
        return self.calls[0]

    @property
    def receive(self) -> Call:
        return self.calls[1]

    @property
    def src(self) -> int:
        return self.send.rank

    @property
    def dst(self) -> int:
        return self.receive.rank

    @property
    def nbytes(self) -> int:
        return self.send.event["bytes"]


def with_spans(run: dict) -> dict:
    """The capture with the memory of each call's tensors as Spans, None for a tensor that has no memory to read."""

    def spans(places) -> list[Span | None]:
        return [place and Span(place[0], place[1], place[1] + place[2]) for place in places]

    return run | {"events": [e | {side: spans(e[side]) for side in ("ins", "outs")} for e in run["events"]]}


def match(runs: list[dict]) -> tuple[list[Message], list[Collective], list[Call]]:
    """The messages, the collectives, and the calls whose other side was not recorded.

    As in gloo, the k-th send from one rank to another with a tag matches the k-th receive with that tag.
    """
    sends, receives, collectives = {}, {}, {}
    for run in runs:
        for number, event in enumerate(run["events"]):
            call = Call(run["rank"], number, event)
            if event["kind"] == "collective":
                collectives.setdefault((event["group"], event["seq"]), []).append(call)
            elif event["kind"] == "send":
                sends.setdefault((event["group"], call.rank, event["peer"], event["tag"]), []).append(call)
            else:
                receives.setdefault((event["group"], event["peer"], call.rank, event["tag"]), []).append(call)
    messages, unmatched = [], []
    for key in sorted({*sends, *receives}, key=str):
        out, into = sends.get(key, []), receives.get(key, [])
        messages += [Message(pair, (pair[0].rank, pair[1].rank)) for pair in zip(out, into, strict=False)]
        unmatched += out[len(into) :] + into[len(out) :]
    messages.sort(key=lambda message: (message.src, message.send.number))
    groups = {key: tuple(group["ranks"]) for run in runs for key, group in run["groups"].items()}
    return (
        messages,
        [Collective(tuple(calls), groups[key]) for (key, _), calls in sorted(collectives.items())],
        unmatched,
    )


def effect(collective: Collective, tensor) -> list[tuple]:
    """(src, dst, source, target, op) of all that a call moves. `tensor(call, side, index)` is the region of one of its
    tensors, or None."""
    name, calls, order = kind_of(collective), {call.rank: call for call in collective.calls}, collective.ranks
    if name not in HELD or not (collective.complete or HELD[name][0].only_root):
        return []  # some rank never made the call, so no rank has its result, unless that is the root's data alone
    peer = collective.calls[0].event["peer"]
    root = order.index(peer) if name in ROOTED and peer in calls else None

    def parts(rank: int, side: str, share: Share) -> list[Region | None]:
        call = calls.get(order[rank])
        return parts_of(call, side, share, len(order), tensor) if call else []

    found = []
    for src, dst, source, target in straight(name, len(order), root, parts):
        if source is None or target is None or (src == dst and source == target):
            continue
        if source.hi - source.lo == target.hi - target.lo > 0:  # all_to_all_single may have a split of 0
            # a rank's own part is copied first, then the others' are added to it
            op = "reduce" if name in REDUCING and src != dst else "copy"
            found.append((order[src], order[dst], source, target, op))
    return found


def kind_of(collective: Matched) -> str:
    """The collective without its variant: "all_gather" for all_gather_single."""
    return collective.calls[0].event["op"].removesuffix("_coalesced").removesuffix("_single")


def parts_of(call: Call, side: str, share: Share, ranks: int, tensor) -> list[Region | None]:
    """The tensors that a call reads ("ins") or writes ("outs"), or the blocks of all ranks in them: the items of the
    list, or the parts of one tensor."""
    several = len(call.event[side])
    if share is Share.WHOLE:
        return [tensor(call, side, index) for index in range(several)]
    if share is Share.BLOCK:
        return [tensor(call, side, 0)]
    if several > 1 or ranks == 1:
        return [tensor(call, side, number) for number in range(ranks)]
    whole = tensor(call, side, 0)
    if whole is None:
        return [None] * ranks
    splits = call.event["splits"][side == "ins"] if call.event["splits"] else []
    size = whole.hi - whole.lo
    sizes = [split * size // sum(splits) for split in splits] if splits and sum(splits) else [size // ranks] * ranks
    ends = [whole.lo, *accumulate(sizes, initial=whole.lo)][1:]
    return [whole._replace(lo=lo, hi=hi) for lo, hi in zip(ends, ends[1:], strict=False)]


class _Tensor(NamedTuple):
    """Bytes lo up to hi of a tensor of a call: of the `index`-th that it reads, of the ~`index`-th that it writes."""

    index: int  # type: ignore[assignment]  # a tuple has a method of that name
    lo: int
    hi: int


class Effect:
    """What a built-in left in the tensors of its ranks, worked out once, when the first rank goes on."""

    def __init__(self, item: Collective, leaves: Leaves):
        self.item, self.leaves = item, leaves
        self.calls = {call.rank: call for call in item.calls}
        self.how = item.calls[0].event["reduce"].lower() or "sum"
        self.arriving: dict[tuple[int, int], list] = {}  # (rank, tensor) -> (lo, hi, source pieces)
        given: dict[tuple[int, _Tensor], list[Piece]] = {}  # often sent to many ranks
        for src, dst, source, target, _ in effect(item, self._tensor):
            if (src, source) not in given:
                given[src, source] = cut(item.carries[src][source.index] or (), source.lo, source.hi)
            self.arriving.setdefault((dst, target.index), []).append((target.lo, target.hi, given[src, source]))
        self._known: dict[tuple, list[Piece]] = {}  # an all_reduce leaves the same values on every rank

    def _tensor(self, call: Call, side: str, index: int) -> _Tensor | None:
        spans = call.event[side]
        if index >= len(spans) or spans[index] is None:
            return None
        # In an in-place call too, a rank's input is a contribution of its own: so it gets a number of its own.
        return _Tensor(index if side == "ins" else ~index, 0, spans[index].hi - spans[index].lo)

    def on(self, rank: int) -> dict[int, list[Piece]]:
        """What is in each tensor of a rank, counted from its first byte; tensors left undefined are left out."""
        if kind_of(self.item) == "broadcast" and self.calls[rank].event["peer"] == rank:
            return {index: pieces for index, pieces in enumerate(self.item.carries[rank]) if pieces is not None}
        done = {}
        for index in range(len(self.calls[rank].event["outs"])):
            if (rank, ~index) in self.arriving:
                done[index] = self._in(rank, index, self.arriving[rank, ~index])
        return done

    def _in(self, rank: int, index: int, arriving: list) -> list[Piece]:
        """The pieces of one tensor: what arrived there, and what was there where nothing did."""
        spans: dict[tuple[int, int], list] = {}
        for lo, hi, inside in arriving:
            spans.setdefault((lo, hi), []).append(inside)
        event, carries = self.calls[rank].event, self.item.carries[rank]
        size = event["outs"][index].hi - event["outs"][index].lo
        if [*spans] == [(0, size)]:
            return self._together(0, size, spans[0, size], rank)
        ranges = Ranges()
        for p in carries[index] if index < len(carries) and event["ins"][index] == event["outs"][index] else ():
            ranges.write(p.lo, p.hi, p.value)
        for (lo, hi), sources in spans.items():
            for p in self._together(lo, hi, sources, rank):
                ranges.write(p.lo, p.hi, p.value)
        for a, b in ranges.gaps(0, size):
            ranges.write(a, b, self.leaves.fresh(rank, Kind.LIBRARY))
        return ranges.pieces

    def _together(self, lo: int, hi: int, sources: list[list[Piece]], rank: int) -> list[Piece]:
        """The pieces of bytes lo up to hi, where these sources meet; each source is counted from its own first byte."""
        if not all(sources):
            return [Piece(lo, hi, self.leaves.fresh(rank, Kind.LIBRARY))]
        key = (lo, *map(id, sources))  # `arriving` keeps them all
        if key not in self._known:
            self._known[key] = self._joined([moved(pieces, -lo) for pieces in sources], rank)
        return self._known[key]

    def _joined(self, sources: list[list[Piece]], rank: int) -> list[Piece]:
        times = 1 / len(self.item.ranks) if self.how == "avg" else 1
        if len(sources) == 1 and times == 1:
            return sources[0]
        how = "sum" if self.how == "avg" else self.how
        cuts = sorted({edge for pieces in sources for p in pieces for edge in (p.lo, p.hi)})
        found = []
        for a, b in zip(cuts, cuts[1:], strict=False):
            values = [meeting(pieces, a, b)[0].value for pieces in sources]
            found.append(Piece(a, b, self.leaves.combined(how, [(value, times) for value in values], rank)))
        return found


def early_uses(rows: list, ops: list[Op], views: list[View], events: list[dict]) -> tuple[set[int], dict[int, bool]]:
    """Ops and calls that touch the tensor of a call before the wait for it is over, by the rows of a rank's op log.

    Two results: the numbers of the sends whose data are overwritten before they are over; and for each other call whose
    tensors are used before its wait, whether they were written (True) or only read (False). Calls that are not waited
    for are left out, and what DDP does in C++.
    """
    changed, used, under_way, waited = set(), {}, {}, set()
    busy: set[int] = set()  # the storages of the calls under way: most ops touch none of them
    for at, row in enumerate(rows):
        if row[0] == BEGIN:
            event = events[row[1]]
            for number, other in under_way.items():
                if _meet(_written(event), _sent(other)):
                    changed.add(number)
                if _meet(_written(other), _sent(event)):
                    changed.add(row[1])
            if event["kind"] != "collective" or event["wait_row"] is not None:
                under_way[row[1]] = event
                busy = _storages(under_way)
        elif row[0] == END:
            under_way.pop(row[1], None)
            busy = _storages(under_way)
            waited.add(row[1])
        elif type(row[0]) is int and under_way:
            outs = _spans(views, row[1], busy)
            makes_new = makes(ops[row[0]].name)  # torch.zeros_like(x) asks x for its shape
            ins = [] if makes_new else _spans(views, row[2], busy)
            for number, event in under_way.items() if outs or ins else ():
                if event["kind"] == "send":
                    if _meet(outs, _sent(event)):
                        changed.add(number)
                elif number not in used and event["wait_row"] is not None and at < event["wait_row"]:
                    # gloo's reduce_scatter copies its result only during the wait
                    wrote = _meet(outs, event["ins"] + event["outs"])
                    own = event["native"] or ops[row[0]].name in ITSELF
                    if not own and (wrote or _meet(ins, event["outs"])):
                        used[number] = wrote
    return changed & waited, used


def _written(event: dict) -> list[Span | None]:
    return [] if event["kind"] == "send" else event["outs"]


def _sent(event: dict) -> list[Span | None]:
    return event["ins"] if event["kind"] == "send" else []


def _storages(under_way: dict[int, dict]) -> set[int]:
    return {span.storage for event in under_way.values() for span in event["ins"] + event["outs"] if span}


def _spans(views: list[View], numbers: list[int], storages: set[int]) -> list[Span]:
    """The memory of an op's views in these storages; a view that is too scattered is left out."""
    inside = [views[n] for n in numbers if n >= 0 and views[n].storage in storages and views[n].numel]
    return [span for view in inside for span in spans(view) or ()]


def _meet(some: Sequence[Span | None], others: Sequence[Span | None]) -> bool:
    """Whether any of these has a byte in common with any of the others."""
    return any(a and b and a.meets(b) for a in some for b in others)
