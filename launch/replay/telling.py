"""The moves of a run: what each message, each addition after a receive, and each built-in did to the ranks' variables.

A message into a scratch tensor whose data is added to a chunk at once is one move, chunk to chunk; where the scratch is
sent on, or the chunk is still sent with its old value, arrival and addition are told apart.

Left out: which of these things happened (`replay.dataflow`), and in which step (`replay.matching`).
"""

from bisect import bisect_left
from itertools import accumulate

from launch.replay.matching import Move


def tell(reading) -> list[Move]:
    """The moves of a `replay.reading.Reading`, in order of their steps."""
    moves, seeded, reads = [], set(), _Reads(reading)
    for message in reading.messages:
        source, target, arrival = reading.sources[message], reading.targets[message], reading.arrivals.get(message)
        if source is None or target is None:
            continue
        ends = {"src": message.src, "dst": message.dst, "source": source}
        carried = {**ends, "calls": message.calls, "nbytes": message.nbytes}
        late = [max(message.step, reads.before(message.dst, use.region, use.look)) for use in arrival.uses]
        if len(arrival.uses) == 1 and not arrival.forwarded and late == [message.step]:
            use = arrival.uses[0]  # a scratch tensor that is only passed through is not worth showing
            moves.append(Move(message.step, target=use.region, look=use.look, **_did(use), **carried))
        else:
            moves.append(Move(message.step, target=target, op="copy", look=message.receive.end, **carried))
            for use, step in zip(arrival.uses, late, strict=True):
                here = {"src": message.dst, "dst": message.dst, "source": target, "target": use.region}
                moves.append(Move(step, **here, look=use.look, calls=(), nbytes=0, **_did(use)))
        for use in arrival.uses:
            if use.seed and (message.dst, use.region, use.look) not in seeded:
                seeded.add((message.dst, use.region, use.look))
                moves.append(
                    Move(message.step - 1, message.dst, message.dst, use.seed, use.region, "copy", use.look, (), 0)
                )
    for effects in reading.effects.values():
        moves += effects
    moves.sort(key=lambda move: (move.step, not move.calls, move.src if move.calls else move.look, move.dst))
    return moves


class _Reads:
    """Up to which step ranks still sent what stood in a region, before a look."""

    def __init__(self, reading):
        self.reading = reading
        self.known: dict = {}  # (rank, region) -> looks at which sends of it began, and the highest step by each

    def before(self, rank: int, region, look: int) -> int:
        """The last step in which the rank sent from the region before that look; -1 if it did not."""
        if (rank, region) not in self.known:
            sources = self.reading.sources
            sent = [m for m in self.reading.sent[rank] if sources[m] and sources[m].overlaps(region)]
            sent.sort(key=lambda message: message.send.begin)
            steps = accumulate((message.step for message in sent), max)
            self.known[rank, region] = ([message.send.begin for message in sent], [*steps])
        begins, steps = self.known[rank, region]
        at = bisect_left(begins, look)
        return steps[at - 1] if at else -1


def _did(use) -> dict:
    return {"op": "copy"} if use.operation == "copy" else {"op": "reduce", "how": use.operation}
