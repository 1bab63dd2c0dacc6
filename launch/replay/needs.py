"""Which messages another one may carry on: what had arrived when it was sent, and may be in what it sends.

A recording has thousands of messages, so nothing here looks at all pairs of them. The messages of one rank to another
come one after the other, in the order in which they met: of all that may be carried on, the last of each sender stands
for the earlier ones.

Left out: the step that follows from it (`replay.matching`).
"""

from bisect import bisect_left, bisect_right, insort

from launch.replay.matching import Message, met


class _Last:
    """Messages that were over at some look; of each sender the last one of those over by a look."""

    def __init__(self, arrived: list[tuple[int, Message]]):
        self.looks: dict[int, list[int]] = {}  # sender -> looks, rising
        self.last: dict[int, list[Message]] = {}  # and the last message by each of them
        for look, message in sorted(arrived, key=lambda pair: pair[0]):
            known = self.last.setdefault(message.src, [])
            self.looks.setdefault(message.src, []).append(look)
            known.append(max(known[-1], message, key=met) if known else message)

    def by(self, look: int) -> list[Message]:
        """The last message of each sender that was over at `look`."""
        counts = {src: bisect_right(looks, look) for src, looks in self.looks.items()}
        return [self.last[src][count - 1] for src, count in counts.items() if count]


def find_needs(reading) -> None:
    """Give every message of a `replay.reading.Reading` its `needs`."""
    for rank, sent in reading.sent.items():
        arrived = _Last([(message.receive.end, message) for message in reading.received[rank]])
        wrote = _wrote(reading, rank)
        known: dict = {}
        for message in sent:
            source, begin = reading.sources[message], message.send.begin
            if source is None:
                message.needs = arrived.by(begin)
                continue
            if source not in known:
                known[source] = _history(reading.ranks[rank], source, wrote.get(source.place, ()))
            hits, unknown = known[source]
            message.needs = hits.by(begin)
            at = bisect_right(unknown, begin)
            if at:  # something was computed there: it may come from anything that had arrived by then
                message.needs += arrived.by(unknown[at - 1] - 1)


def _wrote(reading, rank: int) -> dict[str, list]:
    """Place -> (region, look, message) of everything that was received into it, or added or copied from there."""
    found: dict[str, list] = {}
    for message in reading.received[rank]:
        target, arrival = reading.targets[message], reading.arrivals.get(message)
        places = [(target, message.receive.end)] if target else []
        places += [(use.region, use.look) for use in (arrival.uses if arrival else ())]
        for region, look in places:
            found.setdefault(region.place, []).append((region, look, message))
    return found


def _history(rank, source, wrote) -> tuple[_Last, list[int]]:
    """What was received into `source`, and the looks at which something else was seen to have changed it."""
    hits = [(look, message) for region, look, message in wrote if region.overlaps(source)]
    explained = {look for look, _ in hits}
    changes = rank.memory.changes(source)
    return _Last(hits), [look for look in changes if look not in explained and rank.local(source, look)]


class Reuse:
    """Which received data is overwritten when, and which is sent on: rank by rank, place by place."""

    def __init__(self, received: dict[int, list[Message]], targets: dict, sources: dict):
        self.targets = targets
        self.receives: dict[tuple[int, str], list] = {}
        for rank, messages in received.items():
            for number, message in enumerate(messages):
                if region := targets[message]:
                    place = self.receives.setdefault((rank, region.place), [])
                    insort(place, (message.receive.begin, number, message))
        self.sent = {(message.src, region.place) for message, region in sources.items() if region}

    def until(self, message: Message, last_look: int) -> int:
        """The look at which the place that `message` was received into was next given to a receive."""
        region = self.targets[message]
        later = self.receives[message.dst, region.place]
        for at in range(bisect_left(later, (message.receive.end,)), len(later)):
            begin, _, other = later[at]
            if region.overlaps(self.targets[other]):
                return begin
        return last_look

    def forwarded(self, message: Message) -> bool:
        """Whether the receiver ever sends from the place that it received `message` into."""
        return (message.dst, self.targets[message].place) in self.sent
