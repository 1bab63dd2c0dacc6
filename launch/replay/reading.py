"""From the ranks' recordings to a story: which message carried what from where to where, in which step.

Puts together what `matching`, `memory` and `dataflow` know. The result is a list of moves between regions of the
ranks' variables, step by step (`replay.telling`); `replay.layout` then makes buffers and chunks of the regions.

Left out: what happens inside a built-in collective; it is told as its effect (`replay.effects`).
"""

from bisect import bisect_right
from collections import Counter, defaultdict

from launch.replay.dataflow import Arrival, Rank, explain
from launch.replay.effects import effect
from launch.replay.keeping import kept
from launch.replay.matching import Call, Message, match, order
from launch.replay.memory import Memory, Region
from launch.replay.needs import Reuse, find_needs
from launch.replay.telling import tell

GRID = 64  # parts into which a buffer may be cut by the size of the messages


class Reading:
    """`moves` in order of their steps; `memories` of the ranks; `lonely` calls whose other side was not recorded.

    `effects` are the moves of each built-in; `told` the (words, phase, calls) of steps that tell one as if by an
    algorithm, which is empty before `as_if.retell`.
    """

    def __init__(self, runs: list[dict]):
        for run in runs:
            for event in run["events"]:
                event["stack"] = tuple((file, line) for file, line, _ in run["sites"][event["site"]]["stack"])
        self.code = {
            (run["rank"], i): site["stack"][0][2]
            for run in runs
            for i, site in enumerate(run["sites"])
            if site["stack"]
        }
        self.messages, self.collectives, self.lonely = match(runs)
        self.matched = [*self.messages, *self.collectives]  # of the whole run, whatever part of it is told
        self.sent = {run["rank"]: [m for m in self.messages if m.src == run["rank"]] for run in runs}
        self.received = {run["rank"]: [m for m in self.messages if m.dst == run["rank"]] for run in runs}
        self.ranks = {run["rank"]: Rank(Memory(run["film"], [*_arriving(run)])) for run in runs}
        self.memories = {number: rank.memory for number, rank in self.ranks.items()}
        self.preferred = _preferred(runs, self.memories)
        self.sources = {message: self.place(message.send, "ins", 0) for message in self.messages}
        self.targets = {message: self.place(message.receive, "outs", 0) for message in self.messages}
        self._note_received(runs)
        self._find_candidates()
        self.alternatives = self._see_through_copies()
        reuse = Reuse(self.received, self.targets, self.sources)
        self.arrivals = {message: self._arrival(message, reuse) for message in self.messages if self.targets[message]}
        explain(self.ranks, [*self.arrivals.values()], self.mirror)
        for message, arrival in self.arrivals.items():
            self.sources[message] = self.mirror(arrival) or self.sources[message]
        find_needs(self)
        self.steps = order(self.messages, self.collectives)
        self.effects = {item: effect(item, self.place) for item in self.collectives}
        self.told: dict[int, list] = defaultdict(list)
        self.begins: dict[int, int] = {}
        self.ends = {rank: memory.last_look for rank, memory in self.memories.items()}
        self.moves = tell(self)
        self.kept = kept(self, self.moves)
        self.moves = sorted([*self.moves, *self.kept], key=lambda move: move.step)

    @property
    def numbers(self) -> list[int]:
        """The steps in which anything happens; one may be a call's whose memory cannot be looked at."""
        told = [*self.moves, *self.messages, *self.collectives]
        return sorted({*self.told, *(item.step for item in told)})

    def cut_to(self, steps: set[int]) -> None:
        """Forgets all that is not in `steps`; memory then begins as it was before the first of them."""
        self.moves = [move for move in self.moves if move.step in steps]
        self.messages = [message for message in self.messages if message.step in steps]
        self.collectives = [item for item in self.collectives if item.step in steps]
        self.told = {step: told for step, told in self.told.items() if step in steps}
        calls = [call for move in self.moves for call in move.calls]
        self.begins = {
            rank: min((call.begin for call in calls if call.rank == rank), default=0) for rank in self.memories
        }
        for rank in self.memories:
            self.ends[rank] = max((move.look for move in self.moves if move.dst == rank), default=0)

    def together(self) -> list[list[tuple[int, str]]]:
        """(rank, place) of the tensors that the ranks gave to one call, first with first: they stand for each other."""
        found = []
        for item in self.collectives:
            for side in ("ins", "outs"):
                for index in range(max(len(call.event[side]) for call in item.calls)):
                    regions = [(call.rank, self.place(call, side, index)) for call in item.calls]
                    found.append([(rank, region.place) for rank, region in regions if region])
        return found

    def at_start(self, rank: int, region: Region):
        """The numbers of a region before the first step, or when it was seen first; None if it never was."""
        looks, values = self.memories[rank].history(region)
        at = max(bisect_right(looks, self.begins.get(rank, 0)) - 1, 0)
        return values[at] if values else None

    def at_end(self, rank: int, region: Region):
        """The numbers of a region after the last step; None if it was never seen."""
        return self.memories[rank].value(region, self.ends[rank]) if rank in self.memories else None

    def arrived(self, rank: int, region: Region, look: int) -> bool:
        """Whether anything had been received into a region by then."""
        into = ((message.receive.end, self.targets[message]) for message in self.received[rank])
        return any(end <= look and target and target.overlaps(region) for end, target in into)

    def code_of(self, call: Call) -> str:
        """The text of the line that made the call."""
        return self.code.get((call.rank, call.event["site"]), "")

    def place(self, call: Call, side: str, index: int) -> Region | None:
        """Where a call's tensor lies, in the student's terms; None for tensors whose memory cannot be looked at."""
        places = call.event[side]
        if index >= len(places) or places[index] is None:
            return None
        return self.memories[call.rank].locate(*places[index], call.begin, self.preferred)

    def _note_received(self, runs) -> None:
        for run in runs:
            for number, event in enumerate(run["events"]):
                call = Call(run["rank"], number, event)
                for index in range(len(event["outs"])):
                    if region := self.place(call, "outs", index):
                        self.ranks[call.rank].received.setdefault(call.end, []).append(region)

    def _find_candidates(self) -> None:
        """Regions that may have been changed by arithmetic: parts that travel, on whatever rank, and parts of that
        size."""
        used = {region for region in [*self.sources.values(), *self.targets.values()] if region}
        sizes = {region.hi - region.lo for region in used}
        for rank in self.ranks.values():
            for place in self._places(rank.memory):
                whole = rank.memory.size(place)
                items = rank.memory.items(place)
                parts = [(region.lo, region.hi) for region in used if region.place == place and region.hi <= whole]
                parts += zip(items, items[1:], strict=False)
                for size in sizes:
                    if whole <= size * GRID and not items:
                        parts += [(lo, lo + size) for lo in range(0, whole - size + 1, size)]
                for lo, hi in sorted(set(parts)):
                    rank.add_candidate(Region(place, lo, hi))

    def _places(self, memory: Memory) -> list[str]:
        """The places of a rank, each memory under one name only."""
        names = [*memory.lists]
        for path, bindings in memory.variables.items():
            if any(memory.locate(b.storage, b.lo, b.nbytes, b.look, self.preferred).place == path for b in bindings):
                names.append(path)
        reached = {b.storage for bindings in memory.variables.values() for b in bindings}
        reached |= {b.storage for items in memory.lists.values() for bindings in items.values() for b in bindings}
        return names + [f"#{number}" for number in range(len(memory.storages)) if number not in reached]

    def _see_through_copies(self) -> dict[Message, list[Region]]:
        """A chunk that was cloned to be sent is told as that chunk: its clone holds the same, and is never received
        into.

        Gives the chunks that it may be a clone of; `sources` gets the first.
        """
        received = {(message.dst, region.place) for message, region in self.targets.items() if region}
        alternatives = {}
        for message, region in self.sources.items():
            rank = self.ranks[message.src]
            if (
                region is None
                or (message.src, region.place) in received
                or rank.memory.size(region.place) != region.hi - region.lo
            ):
                continue
            value = rank.memory.value(region, message.send.begin)
            same = [
                other
                for other, held in rank.others(region, message.send.begin)
                if rank.memory.size(other.place) > region.hi - region.lo
                and _identical(held, value)
                and self._worked_on(message, other)
            ]
            if same:
                alternatives[message] = same
                self.sources[message] = same[0]
        return alternatives

    def _worked_on(self, message: Message, region: Region) -> bool:
        """Whether the sender computes in that place, or had received just that region: else it is an input or a mere
        inbox."""
        rank = self.ranks[message.src]
        whole = Region(region.place, 0, rank.memory.size(region.place))
        parts = [other for regions in rank.candidates.values() for other in regions if other.overlaps(whole)]
        if any(rank.local(part, look) for part in parts for look in rank.memory.changes(part)[1:]):
            return True
        return any(
            self.targets[other] == region and other.receive.end <= message.send.begin
            for other in self.received[message.src]
        )

    def _arrival(self, message: Message, reuse: Reuse) -> Arrival:
        until = reuse.until(message, self.memories[message.dst].last_look)
        return Arrival(message, self.targets[message], until, reuse.forwarded(message))

    def mirror(self, arrival: Arrival) -> Region | None:
        """The region of the receiver that bears the name of what the sender sent; None if it has none like it."""
        source = self.sources[arrival.message]
        if source is None:
            return None
        uses = [use.region for use in arrival.found]
        source = next((other for other in self.alternatives.get(arrival.message, []) if other in uses), source)
        fits = self.ranks[arrival.call.rank].candidates.get(source.hi - source.lo, [])
        return source if source in fits else None


def _identical(left, right) -> bool:
    return right is not None and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _arriving(run):
    for event in run["events"]:
        for place in event["outs"]:
            if place is not None:
                yield place[0], place[1], place[1] + place[2], *event["looks"]


def _preferred(runs, memories) -> list[str]:
    """Variables by how many of the calls, on all ranks, concern memory that they reach."""
    counts: Counter = Counter()
    for run in runs:
        for event in run["events"]:
            for place in [*event["ins"], *event["outs"]]:
                if place is not None:
                    counts.update(memories[run["rank"]].covering(*place, event["looks"][0]))
    return [path for path, _ in counts.most_common()]
