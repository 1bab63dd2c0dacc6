"""A Recording: what the ranks of a cell really sent, as a Schedule that plays, checks and counts like any other.

`Recording([capture of rank 0, capture of rank 1, ...])` takes what `tap.stop()` returned on every rank, and works on it
step by step: the op logs are replayed (`_replay`), the moves worth showing are picked (`_moves`), their places become
buffers, chunks and steps, with symbols for what they held (`_layout`), and the run gets a name if it is proved to be a
collective (`_outcome`). Nothing is inferred from numbers, so the same program gives the same Recording
whatever its data, and on every run, except for its times.

`counts()` counts the messages that the student's program sent, in real bytes. Messages inside a built-in collective
cannot be seen: a built-in is one step that shows its effect (its phase ends in "(built-in)"), is listed in
`built_ins`, and adds nothing to steps, messages and bytes.

Left out: drawing; saving (`Schedule.save`).
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from collectives.as_if import Region
from collectives.counting import Counts
from collectives.errors import ScheduleError
from collectives.network import Network, Topology
from collectives.played import Carried
from collectives.proof import Proof
from collectives.run import Run
from collectives.schedule import Schedule
from collectives.timed import Clock
from launch.replay._as_if import shown_as
from launch.replay._calls import Call, Message, with_spans
from launch.replay._contents import Contents
from launch.replay._events import Event, events_of, text_of
from launch.replay._layout import BUILT_IN, WAYS, Layout, Shown, Symbols, listed, steps_of
from launch.replay._made_of import Made, made_of
from launch.replay._moves import Move, moves_of
from launch.replay._one_clock import on_one_clock
from launch.replay._order import Order
from launch.replay._outcome import VALUE, Found, Namer
from launch.replay._places import Places, Spot
from launch.replay._replay import Replay

LARGEST = 200_000  # chunks that a proof would write


@contextmanager
def _uncollected():
    """Without the garbage collector: none of the millions of small objects that are made here is garbage, and scanning
    them again and again takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()  # makes all objects old, or the collector would scan them right now
            gc.unfreeze()
            gc.enable()


class Captures:
    """What a Recording shares with its parts and what-ifs: the captures, and all that is worked out once, when it is
    asked for. Calls and counts need no replay of what was in memory, which takes most of the time."""

    def __init__(
        self,
        runs: list[dict],
        network: Network | Topology | None = None,
        carried: Carried | None = None,
        clocks: tuple[Clock, ...] = (),
        stuck: tuple[tuple[int, int | None, str, int], ...] = (),
    ):
        self.network, self.carried, self.stuck = network, carried, stuck
        runs, self.clocks = on_one_clock(runs, clocks)
        self.runs = sorted(map(with_spans, runs), key=lambda run: run["rank"])
        self.order = Order(self.runs)
        self.variables = self.order.variables
        members = [member for item in self.order.collectives for member in item.ranks]
        self.ranks = 1 + max({0, *self.variables, *members})

    @cached_property
    def replay(self) -> Replay:
        return Replay(self.order)

    @cached_property
    def sent(self) -> tuple[list[Move], Places, Contents]:
        """What a picture shows because it was sent, or made of what was."""
        return moves_of(self.replay)

    @cached_property
    def picked(self) -> tuple[list[Move], Places, Contents]:
        """What a picture shows: that, and the variable that the run's name is about."""
        moves, places, _ = self.sent
        drawn = {(m.dst, m.target.place) for m in moves} | {(m.src, m.source.place) for m in moves if m.source}
        lacking = [
            {
                (r, places.of(r, b.span).place)
                for r, (name, *_) in each.held.items()
                for b in self.variables[r].last(name)
            }
            - drawn
            for each in self.found
        ]
        return moves_of(self.replay, frozenset(lacking[0])) if lacking and all(lacking) else self.sent

    @property
    def places(self) -> Places:
        return self.sent[1]

    @cached_property
    def events(self) -> list[Event]:
        return events_of(self.runs, self.order)

    @property
    def began(self) -> float:
        first = min((event["times"][0] for run in self.runs for event in run["events"]), default=0)
        return max(0, *(run["began"] - first for run in self.runs)) / 1e9

    def counts(self) -> Counts:
        """The messages of the student's own sends and receives."""
        return _counts(self.order.messages, self.ranks)

    @property
    def changed(self) -> list[tuple[int, int]]:
        """(rank, line) of the sends whose data were written to while they were being sent: what went out is not
        known."""
        return [(m.src, self.order.code(m.send)[0]) for m in self.order.messages if m.changed]

    @property
    def used_before_wait(self) -> list[tuple[int, str, int, int, bool]]:
        """(rank, op, line, line of the wait, whether it wrote) of the calls whose tensors the rank used before the
        wait for them was over: which numbers were there is not known. Sends are in `changed`."""
        early = [
            (Call(rank.number, number, rank.events[number]), wrote)
            for rank in self.order.ranks.values()
            for number, wrote in sorted(rank.early.items())
        ]
        return [(c.rank, c.event["op"], self.order.code(c)[0], c.event["wait_line"], wrote) for c, wrote in early]

    @property
    def ops(self) -> int:
        """How many of torch's operations the longest op log holds."""
        return max(sum(type(row[0]) is int for row in run["op_log"]["rows"]) for run in self.runs)

    @cached_property
    def found(self) -> list[Found]:
        """Which collective the run was, for each variable that holds the result. None if the numbers depend on
        timing."""
        if self.unsure:
            return []
        return Namer(self.replay, self.places.nothing, self._last_written).find()

    @cached_property
    def unsure(self) -> str:
        """Why the numbers depend on timing; "" if they do not."""
        if any(message.changed for message in self.order.messages):
            return "sent data changed before wait"
        return "used before wait" if any(rank.early for rank in self.order.ranks.values()) else ""

    def _last_written(self, rank: int, name: str) -> float:
        """The row of the op log at which a variable was written last; -1 if it never was."""
        uses = (
            use for b in self.variables[rank].last(name) for use in self.places.uses.get((rank, b.span.storage), ())
        )
        return max((use.row for use in uses if use.writes), default=-1)

    def text(self, spot: Spot) -> str:
        """The numbers at a spot, before anything else was written there; "" if no snapshot has them."""
        seen = self.replay.snapshot_after(spot.rank, spot.row, spot.span.storage)
        if seen is None:
            return ""  # no snapshot has it, or its memory was gone by then
        row, snapshot = seen
        later = self.places.next_write(spot)
        if later is not None and later <= row and spot.row != row:
            return ""
        return self._text(spot, snapshot)

    def text_before(self, spot: Spot) -> str:
        """The numbers at a spot when it was first seen, before the call that read it; "" if it was written between."""
        looks = self.replay.ranks[spot.rank].looks
        row, snapshot = max((look for look in looks if look[0] <= spot.row), default=looks[0] if looks else (-1, 0))
        later = self.places.next_write(spot._replace(row=row))
        return "" if later is not None and later < spot.row else self._text(spot, snapshot)

    def _text(self, spot: Spot, snapshot: int) -> str:
        dtype, (_, lo, hi) = self.variables[spot.rank].type_in(spot.span.storage), spot.span
        value = self.order.ranks[spot.rank].snapshots.value(spot.span, snapshot, dtype)
        return "" if value is None else text_of(value, max(len(value), (hi - lo) // max(value.itemsize, 1)))

    def text_at_first(self, rank: int, region: Region) -> str:
        """The numbers that a region of a variable held before the first call; "" if it was not filled, or not seen."""
        at = 0
        for b in self.variables[rank].named(region.place, 0) if rank in self.variables else ():
            by = b.span.lo - at
            span = b.span._replace(lo=region.lo + by, hi=region.hi + by)
            there = [p.value for p in self.replay.held_first(rank, span)]
            if b.span.holds(span) and not self.places.is_nothing(there):
                return self.text_before(Spot(rank, span, 0))
            at += b.nbytes
        return ""


class Recording(Run):
    """Beyond a Run:

    built_ins     (op, bytes per rank, ranks) of every call of a built-in collective, in the order of their steps
    unmatched     (rank, op, peer, line) of sends and receives whose other side was not recorded
    dropped       calls that were too many to keep, on all ranks together

    `collective` and `algorithm` are "recorded" unless the run is proved to be one of the collectives, and sends the
    messages of one of the textbook's algorithms.
    """

    @_uncollected()
    def __init__(self, runs: list[dict] | Captures, as_if: dict[str, str] | None = None, part: range | None = None):
        self._captures = of = runs if isinstance(runs, Captures) else Captures(runs)
        self._as_if, self._part = as_if or {}, part
        moves, places, begin = of.picked
        shown = shown_as(moves, of.replay, places, self._as_if)
        self._whole = len(shown.numbers)
        self._shown = shown = shown if part is None else shown.only(set(shown.numbers[part.start : part.stop]))
        self._begin = begin = begin if shown.moves is moves else Contents(shown.moves, of.replay, places)
        self._layout = layout = Layout(shown.moves, _together(shown, places), begin)
        self._found = self._shown_of([] if part else of.found)
        symbols = Symbols(layout, begin, of.ranks, self._found.given)
        self._laid_out = steps_of(shown, layout, symbols.new, of.order.code, {} if as_if else places.divided)
        parts: dict[str, Any] = {"buffers": layout.buffers, "chunk_bytes": layout.chunk_bytes}
        plain = Schedule.from_steps("recorded", "recorded", of.ranks, layout.chunks, self._laid_out.steps, **parts)
        goal, parts["result"] = self._proved(plain, symbols.start)
        found = self._found
        parts |= {"root": found.root, "start": symbols.start, "goal": goal} | self._beside_steps()
        super().__init__(found.collective, found.algorithm, of.ranks, layout.chunks, plain.steps, **parts)

    def _beside_steps(self) -> dict[str, Any]:
        """What a Run knows beyond a Schedule."""
        of, shown = self._captures, self._shown
        called = [item.calls for item in sorted(shown.collectives, key=lambda item: item.step)]
        return {
            "title": "",
            "counts": self._counted,
            "events": lambda: of.events,
            "built_ins": [(calls[0].event["op"], calls[0].event["bytes"], len(calls)) for calls in called],
            "unmatched": [(c.rank, c.event["op"], c.event["peer"], of.order.code(c)[0]) for c in of.order.unmatched],
            "dropped": sum(run["dropped"] for run in of.runs),
            "step_seconds": self._measured,
            "network": of.network,
            "carried": of.carried,
            "clocks": of.clocks,
            "began": of.began,
            "stuck": of.stuck if self._part is None or self._part.stop == self._whole else (),
            "start_values": self._at_start,
            "values": self._after,
            "ways": self._laid_out.ways,
        }

    @property
    def title(self) -> str:
        """What to call it: "your run", and what it was where that is proved, as in "your run: all_reduce ring".

        A run that was too long to be kept whole says so: "your run, first 20,000 calls of every rank".
        """
        kept = max((len(run["events"]) for run in self._captures.runs), default=0)
        name = self._kind + (f", {self._captures.unsure}" if self._captures.unsure else "")
        name += f", first {kept:,} calls of every rank" if self.dropped else ""
        if not self.dropped and not all(map(self._captures.replay.seen, self._captures.variables)):
            name += f", what ranks did with their data seen for {self._captures.ops:,} operations"
        return f"{name}, steps {self._part.start + 1} to {self._part.stop} of {self._whole}" if self._part else name

    @property
    def _kind(self) -> str:
        if self._as_if:
            return f"your run as if {' and '.join(f'{name} {how}' for name, how in self._as_if.items())}"
        ops = [*dict.fromkeys(op for op, _, _ in self.built_ins)]
        if ops and not self._shown.messages:
            return f"your run: {listed(ops)}{BUILT_IN}"
        names = [name for name in (self._found.collective, self._found.algorithm) if name != "recorded"]
        names += [] if self._found.how in ("", "sum") else [f"({WAYS.get(self._found.how, self._found.how)})"]
        if not names:
            return "your run"
        of, into = self._found.of, self._found.into
        about = f" of {of}" if of != into or self._is_in_part() else ""
        about += f" into {into}" if into not in (of, VALUE) else ""
        return f"your run: {' '.join(names)}{about}"

    def _is_in_part(self) -> bool:
        """Whether the result is a part of a larger tensor: chunks of a vector whose last numbers are in none."""
        memory, whole = self._captures.variables, self.cuts(self.result)[-1]
        return any(sum(b.nbytes for b in memory[r].last(name)) < whole for r, (name, *_) in self._found.held.items())

    def _shown_of(self, found: list[Found]) -> Found:
        """Of the same result in several variables one that the picture shows on every rank."""
        for each in found:
            if all([*self._places_of(rank, *held)] for rank, held in each.held.items()):
                return each
        return found[0] if found else Found()

    def _proved(self, plain: Schedule, start: dict) -> tuple[dict | None, str]:
        """What must be where for the run's name to be true: buffer -> [rank, chunk] of Cells, None where anything may
        be; and the buffer in which most ranks hold the result. A name that the picture does not show is dropped."""
        held = self._found.held.items()
        if not held:
            return None, self._layout.buffers[0]
        places = [(rank, place) for rank, where in held for place in self._places_of(rank, *where)]
        buffers = Counter(buffer for _, (buffer, *_) in places)
        result = buffers.most_common(1)[0][0] if buffers else self._layout.buffers[0]
        goal = {buffer: np.full((plain.ranks, plain.chunks), None, dtype=object) for buffer in buffers}
        if plain.ranks * sum(int(np.sum(step.columns.count)) for step in plain.steps) <= LARGEST:
            parts: dict[str, Any] = {"buffers": plain.buffers, "start": start, "goal": {}}
            try:
                state = Proof(Schedule("", "", plain.ranks, plain.chunks, plain.steps, **parts)).state
            except ScheduleError:
                self._found = Found()
                return None, self._layout.buffers[0]
            for rank, (buffer, first, count) in places:
                for chunk in range(first, first + count):
                    goal[buffer][rank, chunk] = state.cells[buffer][rank, chunk] or None
        return goal, result

    def __repr__(self):
        return (
            f"Recording({self.collective}, ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}, "
            f"events={sum(len(run['events']) for run in self._captures.runs)}"
            f"{f', dropped={self.dropped}' if self.dropped else ''})"
        )

    def as_if(self, **algorithms: str) -> "Recording":
        """This run as if the library had used other algorithms inside: `recording.as_if(all_reduce="ring")`.

        Every recorded call of that built-in is told by `collectives.all_reduce.ring` over the ranks of its group, and
        its messages are counted. Calls of built-ins that are not named stay effects. ScheduleError if there is no such
        algorithm, or it does not take that number of ranks. Asked of a part it tells the whole run, whose part may
        be taken then.
        """
        return Recording(self._captures, {**self._as_if, **algorithms})

    def part(self, first: int, last: int) -> "Recording":
        """Only the steps from `first` to `last`, counted from 1 as the Player counts them, and only what they touch.

        For runs too long to look at as a whole, such as a training. ValueError if there are no such steps.
        """
        if not 1 <= first <= last <= self._whole:
            raise ValueError(
                f"this run has steps 1 to {self._whole}; part takes two of them in order, got {first}, {last}"
            )
        return Recording(self._captures, self._as_if, range(first - 1, last))

    def beginning(self, buffers: int) -> "Recording":
        """As many of the first steps as touch no more than that many buffers, at least one; itself if all do."""
        touched: set = set()
        for index, step in enumerate(self.steps):
            touched |= {name for t in step.transfers for name in (t.src_buffer, t.dst_buffer)}
            if len(touched) > buffers and index:
                return self.part(1, index)
        return self

    def made_of(self, rank: int, name: str, of: str = "x") -> list[Made]:
        """What a variable of a rank holds when the cell has ended, in terms of what variables called `of` held when
        their ranks made their first call; [] if there is no such variable any more, or not all ops were seen."""
        return made_of(self._captures.replay, rank, name, of)

    def place_of(self, rank: int, name: str, first: bool = False) -> tuple[str, int, int] | None:
        """(buffer, first chunk, chunks) of a variable that a rank has when the cell has ended; None if it is not
        shown then: after `y = x; y = y + b` the buffer y holds the sum. With `first` it is where x was at first: y."""
        return next(self._places_of(rank, name, first=first), None)

    def _places_of(
        self, rank: int, name: str, lo: int = 0, hi: int = sys.maxsize, first: bool = False
    ) -> Iterator[tuple[str, int, int]]:
        """The same for bytes lo up to hi of it; of a list, item by item."""
        at = 0
        for last in self._captures.variables[rank].last(name) if rank in self._captures.variables else ():
            a, b = max(lo, at), min(hi, at + last.nbytes)
            region = self._captures.places.of(rank, last.span)
            shown = first or (rank, last.span.storage) not in self._captures.places.replaced
            if a < b and shown and (rank, region.place) in self._layout.names:
                end = self._layout.cuts[self._layout.buffer(rank, region)][-1]
                inside = (max(region.lo + a - at, 0), min(region.lo + b - at, end))
                yield self._layout.at(rank, region._replace(lo=inside[0], hi=inside[1]))
            at += last.nbytes

    def cuts(self, buffer: str) -> list[int]:
        """Where the chunks of a buffer begin, and where the last one ends, in bytes."""
        return self._layout.cuts[buffer]

    @property
    def used_before_wait(self) -> list[tuple[int, str, int, int, bool]]:
        return self._captures.used_before_wait

    def _counted(self) -> Counts:
        """The messages of the student's own sends and receives, in the bytes they had; see the module for built-ins."""
        shown = self._shown
        imagined = [*enumerate(m for m in shown.moves if m.nbytes and m.calls[0].event["kind"] == "collective")]
        # What a switch copies its rank sends once, and of what it adds up the other end receives one.
        at_switch = {step for step, labels in shown.labels.items() if any(label.in_network for label in labels)}
        leaving = {(m.step, m.src, m.source if m.step in at_switch else n): m for n, m in imagined}
        summed = {n for n, m in imagined if m.step in at_switch and m.op == "reduce"}
        arriving = {(m.step, m.dst, m.target if n in summed else n): m for n, m in imagined}
        return _counts(shown.messages, self.ranks, [*leaving.values()], [*arriving.values()])

    def _measured(self) -> list[float] | None:
        """A step is over when the last wait of its calls is; what ranks compute themselves belongs to the next."""
        if self._as_if:
            return None
        calls = [(message.step, call) for message in self._shown.messages for call in message.calls]
        calls += [(item.step, call) for item in self._shown.collectives for call in item.calls]
        begun = min((call.event["times"][0] for _, call in calls), default=0)
        over: dict[int, int] = {}
        for step, call in calls:
            start, issued, _, waited, done = call.event["times"]
            over[step] = max(over.get(step, 0), next(t for t in (waited, done, issued, start) if t is not None))
        found, latest = [], begun
        for step in self._shown.numbers:
            ended = max(latest, over.get(step, latest))
            found.append((ended - latest) / 1e9)
            latest = ended
        return found

    def _at_start(self) -> list[tuple[int, str, int, str]]:
        return [(rank, name, i, self._start_text(rank, name, i)) for rank, name, i, cell in self._cells() if cell]

    def stale_values(self) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of what a chunk held at first that the run only writes over, or that its rank was
        to write over when it got stuck."""
        found, stuck = [], {rank for rank, *_ in self.stuck}
        for rank, buffer, chunk, cell in self._cells():
            region = None if cell else self._layout.region(rank, buffer, chunk, unused=rank in stuck)
            if region is not None and (text := self._captures.text_at_first(rank, region)):
                found.append((rank, buffer, chunk, text))
        return found

    def _cells(self) -> Iterator[tuple[int, str, int, Any]]:
        """(rank, buffer, chunk, what it held at first)."""
        for buffer, cells in self.start().cells.items():
            for rank, chunk in np.ndindex(self.ranks, self.chunks):
                yield rank, buffer, chunk, cells[rank, chunk]

    def _start_text(self, rank: int, buffer: str, chunk: int) -> str:
        region = self._layout.region(rank, buffer, chunk)
        if region is None:
            return ""
        for lo, spot in self._begin.seen.get((rank, region.place), ()):
            span = spot.span._replace(lo=spot.span.lo + region.lo - lo, hi=spot.span.lo + region.hi - lo)
            if spot.span.holds(span):
                return self._captures.text_before(spot._replace(span=span))
        return ""

    def _after(self, index: int) -> list[tuple[int, str, int, str]]:
        return [
            (rank, buffer, chunk, self._captures.text(spot))
            for rank, buffer, chunk, spot in self._laid_out.wrote[index]
        ]


def _counts(messages: list[Message], ranks: int, leaving: Sequence[Move] = (), arriving: Sequence[Move] = ()) -> Counts:
    """The counts of these messages and of the moves of algorithms that a rank sends and receives."""
    sent, received = [0] * ranks, [0] * ranks
    # Of an algorithm's transfers all that go from one rank to another in a step are one message.
    several = {(m.step, m.src, m.dst, 0) for m in leaving}
    several |= {(m.step, m.src, m.dst, id(m)) for m in messages}
    for move in leaving:
        sent[move.src] += move.nbytes
    for move in arriving:
        received[move.dst] += move.nbytes
    for message in messages:
        sent[message.src] += message.nbytes
        received[message.dst] += message.nbytes
    steps = len({step for step, *_ in several})
    return Counts(steps, len(several), sum(sent), max(sent), tuple(sent), tuple(received))


def _together(shown: Shown, places: Places) -> list[tuple[tuple[int, str], ...]]:
    """(rank, place) of the tensors that the ranks gave to one call, first with first: they are one buffer."""
    found = {}
    for item in shown.collectives:
        for side in ("ins", "outs"):
            for index in range(max(len(call.event[side]) for call in item.calls)):
                there = [(call.rank, places.tensor(call, side, index)) for call in item.calls]
                found[tuple([(rank, region.place) for rank, region in there if region])] = None
    return [*found]
