"""Which send met which receive, and in what logical step each message belongs.

A recorded run has times, but they are accidents of the machine. What the program fixes is an order, and from that the
step of a message follows: as early as the program allows it.

* What a rank sends after it has waited for a receive comes later, if what it sends could hold what was received.
* A rank that waits for one send before it begins the next sends one after the other; the same for receives.
* A send and a receive of one rank may share a step whichever it waits for first, as long as the first is not needed for
  the second: so an exchange in which even ranks send first and odd ranks receive first is one step, not two.
* Two messages from one rank to another never share a step.
* A collective comes after everything its ranks have finished, and before everything they begin after it.

Order within a rank is the order of the film's looks; nothing here depends on times, except when a program's messages
overtake each other in a circle, which then is cut where the clock says.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from launch.replay.memory import Region


class Call(NamedTuple):
    """One recorded call: `number` is its place among its rank's events, `event` the dict that the tap wrote."""

    rank: int
    number: int
    event: dict

    @property
    def begin(self) -> int:
        return self.event["looks"][0]

    @property
    def end(self) -> int:
        return self.event["looks"][1]

    @property
    def line(self) -> int:
        """The line of the cell (or file) that made the call; 0 if it was nobody's."""
        return self.event["stack"][0][1] if self.event["stack"] else 0


@dataclass(eq=False)
class Message:
    """One message; `needs` are messages whose data it may carry on; `step` counts from 0 once `order` has run."""

    send: Call
    receive: Call
    needs: list["Message"] = field(default_factory=list)
    step: int = 0

    @property
    def src(self) -> int:
        return self.send.rank

    @property
    def dst(self) -> int:
        return self.receive.rank

    @property
    def nbytes(self) -> int:
        return self.send.event["bytes"]

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.send, self.receive


@dataclass(eq=False)
class Collective:
    """One call of a built-in, by all ranks of its group that were recorded."""

    calls: tuple[Call, ...]
    ranks: tuple[int, ...]  # of the whole group, in its order
    step: int = 0


@dataclass
class Move:
    """Bytes of `source` at rank `src` replace ("copy") or are added to ("reduce") those of `target` at rank `dst`."""

    step: int
    src: int
    dst: int
    source: Region
    target: Region
    op: str
    look: int  # of the receiver's film, at which the result is there
    calls: tuple[Call, ...]  # () for the student's own arithmetic
    nbytes: int
    how: str = "sum"  # or "max", "min", "product" and so on: what "reduce" did


def match(runs: list[dict]) -> tuple[list[Message], list[Collective], list[Call]]:
    """Messages and collectives of all ranks' recordings, and the calls whose other side is missing.

    The k-th send of a rank to another with a tag meets the k-th receive there with that tag, as in gloo.
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
    messages, lonely = [], []
    for key in sorted({*sends, *receives}, key=str):
        out, into = sends.get(key, []), receives.get(key, [])
        messages += [Message(send, receive) for send, receive in zip(out, into, strict=False)]
        lonely += out[len(into) :] + into[len(out) :]
    messages.sort(key=lambda message: (message.src, message.send.number))
    groups = {key: tuple(group["ranks"]) for run in runs for key, group in run["groups"].items()}
    return messages, [Collective(tuple(calls), groups[key]) for (key, _), calls in sorted(collectives.items())], lonely


class _Latest:
    """The highest step among things that were over by a look."""

    def __init__(self):
        self.looks, self.steps = [], []

    def add(self, look: int, step: int) -> None:
        at = bisect_right(self.looks, look)
        if at and self.steps[at - 1] >= step:
            return  # something that was over earlier is at least as high
        self.looks.insert(at, look)
        self.steps.insert(at, step)
        while at + 1 < len(self.steps) and self.steps[at + 1] <= step:
            del self.looks[at + 1], self.steps[at + 1]

    def by(self, look: int) -> int:
        at = bisect_right(self.looks, look)
        return self.steps[at - 1] if at else -1


def order(messages: list[Message], collectives: list[Collective]) -> int:
    """Give everything its step, the earliest the rules allow; the number of steps."""
    sent, received, begun, barrier = (
        {},
        {},
        {},
        {},
    )  # rank -> _Latest: sends over, receives over, sends begun, collectives over
    pairs: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, ...], int] = {}

    def latest(kind, call) -> int:
        return kind.setdefault(call.rank, _Latest()).by(call.begin)

    def note(kind, call, look, step) -> None:
        kind.setdefault(call.rank, _Latest()).add(look, step)

    # Both sides of a call must be there before it can happen: in this order causes stand before their effects.
    for item in sorted([*messages, *collectives], key=met):
        if isinstance(item, Collective):
            item.step = 1 + max(max(latest(kind, call) for kind in (sent, received, barrier)) for call in item.calls)
            item.step = max([item.step, groups.get(item.ranks, 0), *(latest(begun, call) for call in item.calls)])
            groups[item.ranks] = item.step + 1  # one after the other, also where nobody waits, as in DDP
            for call in item.calls:
                note(barrier, call, call.end, item.step)
            continue
        send, receive = item.calls
        item.step = max(
            0,
            1 + latest(sent, send), latest(received, send), latest(begun, send), 1 + latest(barrier, send),
            1 + latest(received, receive), latest(sent, receive), 1 + latest(barrier, receive),
            1 + pairs.get((item.src, item.dst), -1),
            *(1 + needed.step for needed in item.needs))  # fmt: skip
        pairs[item.src, item.dst] = item.step
        note(begun, send, send.begin, item.step)
        note(sent, send, send.end, item.step)
        note(received, receive, receive.end, item.step)
    return 1 + max((item.step for item in [*messages, *collectives]), default=-1)


def met(item) -> tuple:
    """When the last side came, by the clock of the machine; then something that does not depend on it."""
    return (
        max(call.event["times"][0] for call in item.calls),
        isinstance(item, Collective),
        item.calls[0].rank,
        item.calls[0].number,
    )
