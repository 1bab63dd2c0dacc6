"""The doctor: proves from a snapshot of all ranks that some of them can never go on.

It uses no clock and does not guess. A rank that runs its own code may still do anything, so it can provide whatever
another rank waits for. From there the set of ranks that may move grows: a waiting rank may move if everything that its
call lacks has begun or is up to ranks that may move. Ranks outside the largest such set wait forever, whatever the
others do: that is the deadlock. A cycle of sends, a skipped collective and a peer that raised are cases of this rule.

What a call lacks is what gloo makes it wait for (checked against gloo itself in tests/launch/test_doctor_gloo.py):

    send, recv               rendezvous: the other side must have begun its half, but need not wait for it
    broadcast                a binomial tree: the ranks on the path from the root, and the rank's own children
    gather, scatter          the root; the root needs all ranks
    every other collective   all ranks, except that a rank other than the root may leave `reduce` early; if only that is
                             doubtful the diagnosis is not `proved`
    a message whose handle   is lost if the other side had not begun its half, and so is all that the two ranks send
    was not kept             each other once that side asks for it (`Loss`; docs/design.md has what gloo does)

docs/design.md lists what the records do not tell, so that it is not proved. Left out: noticing that nothing moves
(`kernel.watchdog`), words (`doctor.explain`).
"""

from __future__ import annotations

from typing import NamedTuple

from launch.doctor.snapshot import State, View
from launch.shared.flight_recorder import DROPPED_EARLY, HELD, OpenCall


class Lack(NamedTuple):
    """Ranks that have not done their part of a call, and `never`: those that did something else instead.

    `all`: each of them must do it; else one is enough.
    """

    ranks: frozenset[int]
    never: frozenset[int] = frozenset()
    all: bool = True
    loss: Loss | None = None


class Edge(NamedTuple):
    """`rank` waits for `other` in `call` (None: in the store), because of `loss` if that is given."""

    rank: int
    other: int
    call: OpenCall | None
    loss: Loss | None = None


class Diagnosis(NamedTuple):
    """`stuck` ranks can never go on. `moving` ranks are inside the cell and may; without any the cell never ends.

    The targets of `edges` are stuck as well, or past the cell. `proved` is False if gloo might let a stuck rank out of
    `reduce` although another rank is missing.
    """

    views: tuple[View, ...]
    stuck: tuple[int, ...]
    moving: tuple[int, ...]
    edges: tuple[Edge, ...]
    proved: bool


def examine(views: tuple[View, ...]) -> Diagnosis | None:
    """The deadlock in a snapshot (a View per rank, in rank order); None if every rank may still go on."""
    certain = _examine(views, doubtful=False)
    if certain is not None and not certain.moving:
        return certain
    likely = _examine(views, doubtful=True)
    return likely if likely is not None and (certain is None or not likely.moving) else certain


def _examine(views: tuple[View, ...], doubtful: bool) -> Diagnosis | None:
    by_rank = {view.rank: view for view in views}
    lost = losses(views)
    lacks = {
        view.rank: _lacks(view, by_rank, lost, doubtful)
        for view in views
        if view.state in (State.WAITING, State.MEETING)
    }
    moving = _may_move({view.rank for view in views if view.state is State.ACTING}, lacks)
    stuck = sorted(lacks.keys() - moving)
    if not stuck:
        return None
    edges = tuple(edge for rank in stuck for edge in _edges(by_rank[rank], lacks[rank], moving))
    return Diagnosis(views, tuple(stuck), tuple(sorted(moving)), edges, not doubtful)


def _may_move(acting: set[int], lacks: dict[int, list[tuple[OpenCall | None, Lack]]]) -> set[int]:
    """The acting ranks, those that wait only for what these can provide, and so on."""
    moving = set(acting)
    while more := {rank for rank in lacks.keys() - moving if any(_comes(lack, moving) for _, lack in lacks[rank])}:
        moving |= more
    return moving


def _comes(lack: Lack, moving: set[int]) -> bool:
    if lack.never:
        return False
    return lack.ranks <= moving if lack.all else bool(lack.ranks & moving)


def _edges(view: View, lacks, moving: set[int]) -> list[Edge]:
    """If a rank waits for one of several calls, the first is shown: C++ waits for them in that order."""
    call, lack = lacks[0]
    return [Edge(view.rank, other, call, lack.loss) for other in sorted(lack.ranks - moving | lack.never)]


def _lacks(
    view: View, by_rank: dict[int, View], lost: dict[frozenset[int], Loss], doubtful: bool
) -> list[tuple[OpenCall | None, Lack]]:
    """For each call that would let the rank go on: the ranks that have not done their part."""
    if view.state is State.MEETING:
        # A rank that waits in the store has written its part; the rest is up to ranks that are elsewhere.
        others = {other for other, there in by_rank.items() if there.state is not State.MEETING}
        return [(None, Lack(frozenset(others or by_rank.keys() - {view.rank}), all=False))]
    return [
        (call, _blocked(view, call, by_rank, lost, doubtful) or _lack(view, call, by_rank, doubtful))
        for call in view.waits
    ]


def _blocked(view: View, call: OpenCall, by_rank: dict[int, View], lost, doubtful: bool) -> Lack | None:
    """What the call lacks because a message was dropped; None if that is not the reason."""
    if call.kind == "collective":
        members = _members(view, call, by_rank) | {view.rank}
        loss = next((loss for pair, loss in lost.items() if doubtful and pair <= members), None)
    elif call.peer >= 0:
        loss = lost.get(frozenset({view.rank, call.peer}))
        loss = loss or (half_of(by_rank[call.peer], view.rank, call) if doubtful else None)
    else:
        halves = (half_of(other, view.rank, call) for other in by_rank.values() if doubtful)
        loss = next(filter(None, halves), None)
    if loss is None:
        return None
    return Lack(frozenset(), never=frozenset({loss.rank if loss.rank != view.rank else loss.call.peer}), loss=loss)


def _lack(view: View, call: OpenCall, by_rank: dict[int, View], doubtful: bool) -> Lack:
    members = _members(view, call, by_rank)
    if call.apart:
        return Lack(
            frozenset(), never=frozenset(r for r in members if any(c.after for c in by_rank[r].open)) or members
        )
    if call.kind == "send":
        return Lack(frozenset() if _received(by_rank[call.peer], view.rank, call) else frozenset({call.peer}))
    if call.kind == "recv" and call.peer >= 0:
        return Lack(frozenset() if _sent(by_rank[call.peer], view, call) else frozenset({call.peer}))
    if call.kind == "recv":
        return Lack(frozenset()) if _any_sent(view, call, by_rank) else Lack(members, all=False)
    needed = _partners(view.rank, call, sorted(members | {view.rank}), doubtful)
    late = frozenset(rank for rank in needed if not _begun(by_rank[rank], call))
    return Lack(late, never=frozenset(rank for rank in needed - late if not _joined(by_rank[rank], call)))


def _members(view: View, call: OpenCall, by_rank: dict[int, View]) -> frozenset[int]:
    """The other ranks of the call's group; all ranks if it has made no collective, since then it is unknown."""
    tally = view.tally(call.key)
    if tally is None:
        return frozenset(by_rank.keys() - {view.rank})
    mask = int(tally.members, 16)
    return frozenset(rank for rank in by_rank if mask >> rank & 1 and rank != view.rank)


def _partners(rank: int, call: OpenCall, members: list[int], doubtful: bool) -> set[int]:
    """The other ranks that gloo waits for in this collective, on this rank."""
    others, root = set(members) - {rank}, call.peer
    if rank == root or root < 0:
        return _on_the_path(0, members, root) if call.op == "broadcast" else others
    if call.op == "broadcast":
        return _on_the_path((members.index(rank) - members.index(root)) % len(members), members, root)
    if call.op in ("gather", "scatter"):
        return {root}
    if call.op == "reduce" and not doubtful:
        return set()
    return others


def _on_the_path(place: int, members: list[int], root: int) -> set[int]:
    """gloo's broadcast: positions count from the root; position v sends to v + 2^i for every 2^i > v."""
    size, start = len(members), members.index(root)
    places = {place + (1 << i) for i in range(place.bit_length(), size.bit_length()) if place + (1 << i) < size}
    while place:
        place -= 1 << place.bit_length() - 1
        places.add(place)
    return {members[(start + p) % size] for p in places}


def _begun(other: View, call: OpenCall) -> bool:
    """Whether the other rank has begun this group's collective of this number."""
    tally = other.tally(call.key)
    return tally is not None and tally.begun >= call.seq


def _joined(other: View, call: OpenCall) -> bool:
    """Whether the other rank's collective of this number is the same one and still goes on, or is over."""
    there = [mine for mine in other.open if (mine.kind, mine.key, mine.seq) == ("collective", call.key, call.seq)]
    return not there or (there[0].op == call.op and other.state is not State.CUT and not there[0].apart)


def _count(view: View, kind: str, call: OpenCall, peers: tuple[int, ...] | None, done: bool = False) -> int:
    """Messages of one kind that the rank has begun (`done`: that are over), in the call's group and with its tag.

    For a rank that is cut off only those that are over count. `peers` None: all.
    """
    rows = [row for row in view.messages if (row.kind, row.key, row.tag) == (kind, call.key, call.tag)]
    done = done or view.state is State.CUT
    return sum(row.done if done else row.begun for row in rows if peers is None or row.peer in peers)


def _uncounted(*views: View) -> bool:
    """Whether one of the ranks has had too many kinds of messages to be counted: then nothing is proved from counts."""
    return any(row.kind == "more" for view in views for row in view.messages)


def _received(other: View, sender: int, send: OpenCall) -> bool:
    """Whether the other rank has begun to receive this message; receives from any source may be meant for it."""
    return _uncounted(other) or _count(other, "recv", send, (sender, -1)) >= send.seq


def _sent(other: View, view: View, recv: OpenCall) -> bool:
    """Whether the other rank has begun to send this message."""
    if _uncounted(view, other):
        return True
    taken = _count(view, "took", recv, (recv.peer,))  # by receives from any source
    return _count(other, "send", recv, (view.rank,)) >= recv.seq + taken


def _any_sent(view: View, recv: OpenCall, by_rank: dict[int, View]) -> bool:
    """Whether there is a message for this rank that it may not have received yet."""
    if _uncounted(*by_rank.values()):
        return True
    if _count(view, "recv", recv, None) == _count(view, "recv", recv, (-1,)):
        sent = sum(_count(other, "send", recv, (view.rank,)) for other in by_rank.values() if other is not view)
        return sent >= recv.seq  # no other receive takes any of them, and these are served in order
    open_before = [
        c for c in view.open if (c.kind, c.key, c.tag) == ("recv", recv.key, recv.tag) and c.ticket < recv.ticket
    ]
    left = 0
    for other in by_rank.values():
        if other is view:
            continue
        # Earlier receives that name the sender are served first, as long as messages are left for them.
        named = sum(c.peer == other.rank for c in open_before)
        gone = _count(view, "recv", recv, (other.rank,), done=True) + _count(view, "took", recv, (other.rank,))
        left += max(0, _count(other, "send", recv, (view.rank,)) - gone - named)
    return left > sum(c.peer < 0 for c in open_before)


class Loss(NamedTuple):
    """A message whose handle `rank` did not keep."""

    rank: int
    call: OpenCall

    @property
    def pair(self) -> frozenset[int]:
        return frozenset({self.rank, self.call.peer})


def losses(views: tuple[View, ...]) -> dict[frozenset[int], Loss]:
    """For each pair of ranks whose connection is blocked, the first message that was lost and asked for."""
    by_rank = {view.rank: view for view in views}
    found: dict[frozenset[int], Loss] = {}
    for view in views:
        for call in view.open:
            loss = Loss(view.rank, call)
            certain = call.dropped == DROPPED_EARLY and call.peer >= 0 and _asked(by_rank[call.peer], loss)
            if certain and _first(found.get(loss.pair), loss):
                found[loss.pair] = loss
    return found


def lost_receives(views: tuple[View, ...]) -> list[Loss]:
    """Messages that arrived at a receive without a handle."""
    return [loss for loss in losses(views).values() if loss.call.kind == "recv"]


def _first(known: Loss | None, loss: Loss) -> bool:
    return known is None or (loss.call.since, loss.rank) < (known.call.since, known.rank)


def _asked(other: View, loss: Loss) -> bool:
    """Whether the other side has begun its half of the message."""
    call, other_kind = loss.call, other_side(loss.call)
    rows = [row for row in other.messages if (row.kind, row.key, row.tag) == (other_kind, call.key, call.tag)]
    return sum(row.begun for row in rows if row.peer in (loss.rank, -1)) >= call.seq


def other_side(call: OpenCall) -> str:
    return "recv" if call.kind == "send" else "send"


def half_of(other: View, rank: int, call: OpenCall) -> Loss | None:
    """The other half of the message that `rank` waits for in `call`, if its handle was dropped."""
    for half in other.open:
        same = (half.kind, half.key, half.tag, half.peer) == (other_side(call), call.key, call.tag, rank)
        if half.dropped != HELD and same and (half.seq == call.seq or call.peer < 0):
            return Loss(other.rank, half)
    return None


def alike(views: tuple[View, ...], lost: list[Loss]) -> list[Loss]:
    """All messages that were dropped at the places where these were lost, on any rank.

    Which of them go through depends on timing, and the sentence must not.
    """
    places = {_place(loss) for loss in lost}
    every = [Loss(view.rank, call) for view in views for call in view.open if call.dropped != HELD]
    return [loss for loss in every if _place(loss) in places]


def _place(loss: Loss) -> tuple:
    call = loss.call
    return call.kind, call.line, call.file, call.number
