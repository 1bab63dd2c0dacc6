"""Which send met which receive, and which calls are one collective.

Left out: in which step, and with which data (`replay.happened`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple


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


@dataclass(eq=False)
class Message:
    """One message. `step` counts from 0; `carries` is rank -> what its tensors held when it made the call, as pieces.

    `changed`: the sender writes to it before the wait for it is over, so nobody knows which numbers went out.
    """

    send: Call
    receive: Call
    step: int = 0
    carries: dict[int, list] = field(default_factory=dict)
    changed: bool = False

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
    """One call of a built-in, by all ranks of its group that were recorded; `carries` as in a Message."""

    calls: tuple[Call, ...]
    ranks: tuple[int, ...]  # of the whole group, in its order
    step: int = 0
    carries: dict[int, list] = field(default_factory=dict)


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
