"""A Recording: what the ranks of a cell really sent, as a Schedule that plays, checks and counts like any other.

`Recording([dict of rank 0, dict of rank 1, ...])` takes what `tap.stop()` returned on every rank. Its steps are
logical: a message stands in the earliest step that the program's own order allows (`replay.matching`), and a receive
into a scratch tensor that is then added to a chunk is told as one transfer, chunk to chunk (`replay.dataflow`). The
same program gives the same Recording on every run, its times excepted.

`counts()` counts the messages that the student's program sent, in real bytes. Messages inside a built-in collective
cannot be seen: a built-in is one step that shows its effect (its phase ends in "(built-in)"), is listed in `built_ins`,
and adds nothing to steps, messages and bytes.

Left out: drawing; saving (`Schedule.save`).
"""

from functools import cached_property

from collectives.counting import Counts
from collectives.schedule import Schedule
from launch.replay import trace
from launch.replay.as_if import retell
from launch.replay.bearing import bears_out
from launch.replay.beginnings import start_of
from launch.replay.doubt import in_doubt
from launch.replay.layout import Layout
from launch.replay.reading import Reading
from launch.replay.recognise import nothing_known, recognise
from launch.replay.recorded import Event, events_of, text_of
from launch.replay.steps import BUILT_IN, steps_of


class Recording(Schedule):
    """Beyond a Schedule:

    built_ins  (op, bytes per rank, ranks) of every call of a built-in collective, in the order of their steps
    lonely     (rank, op, peer, line) of sends and receives whose other side was not recorded
    dropped    calls that were too many to keep, on all ranks together
    doubtful   whether the run looks like a collective, but with its data (ones, zeros, the same on all ranks) other
               programs would look so too: it gets no name then; with random numbers it would

    `collective` and `algorithm` are "recorded" unless the run is proved to be one of the collectives, and sends the
    messages of one of the textbook's algorithms.
    """

    def __init__(self, runs: list[dict], as_if: dict[str, str] | None = None, part: range | None = None):
        runs = sorted(runs, key=lambda run: run["rank"])
        self._runs, self._as_if, self._part = runs, as_if or {}, part
        self._reading = reading = Reading(runs)
        retell(reading, self._as_if)
        self._whole = len(reading.numbers)
        if part is not None:
            reading.cut_to(set(reading.numbers[part.start : part.stop]))
        self._layout = layout = Layout(reading.moves, reading.memories, reading.together())
        ranks = 1 + max({0, *reading.memories, *(rank for item in reading.collectives for rank in item.ranks)})
        steps, self._looks, self._ways = steps_of(reading, layout)
        parts = {"buffers": layout.buffers, "chunk_bytes": layout.chunk_bytes}
        plain = Schedule.from_steps("recorded", "recorded", ranks, layout.chunks, steps, **parts)
        begins = start_of(plain, reading, layout)
        found = recognise(plain, begins.cells, lambda goal: bears_out(goal, begins.cells, reading, layout))
        self.doubtful = found.collective != "recorded" and in_doubt(reading, layout, begins)
        if self.doubtful:
            found = nothing_known(plain)
        super().__init__(
            found.collective,
            found.algorithm,
            ranks,
            layout.chunks,
            plain.steps,
            root=found.root,
            result=found.result,
            start=begins.cells,
            goal=found.goal,
            **parts,
        )
        self.dropped = sum(run["dropped"] for run in runs)
        called = sorted(reading.collectives, key=lambda item: item.step)
        self.built_ins = tuple((c.calls[0].event["op"], c.calls[0].event["bytes"], len(c.calls)) for c in called)
        self.lonely = tuple((call.rank, call.event["op"], call.event["peer"], call.line) for call in reading.lonely)

    @property
    def title(self) -> str:
        """What to call it: "your run", and what it was where that is proved, as in "your run: all_reduce ring".

        A run that was too long to be kept whole says so: "your run, first 20,000 calls of every rank".
        """
        return (
            f"{self._name}, steps {self._part.start + 1} to {self._part.stop} of {self._whole}"
            if self._part
            else self._name
        )

    @property
    def _name(self) -> str:
        kept = max((len(run["events"]) for run in self._runs), default=0)
        return self._kind + (f", first {kept:,} calls of every rank" if self.dropped else "")

    @property
    def _kind(self) -> str:
        if self._as_if:
            return f"your run as if {' and '.join(f'{name} {how}' for name, how in self._as_if.items())}"
        ops = [*dict.fromkeys(op for op, _, _ in self.built_ins)]
        if ops and not self._reading.messages:
            return f"your run: {_listed(ops)}{BUILT_IN}"
        if self.doubtful:
            return "your run (unnamed: with these data other programs would look the same)"
        names = [name for name in (self.collective, self.algorithm) if name != "recorded"]
        return f"your run: {' '.join(names)}" if names else "your run"

    def __repr__(self):
        return (
            f"Recording({self.collective}, ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}, "
            f"events={sum(len(run['events']) for run in self._runs)}"
            f"{f', dropped={self.dropped}' if self.dropped else ''})"
        )

    @cached_property
    def events(self) -> list[Event]:
        """Every recorded call: ranks in order, each rank's calls in the order it made them."""
        return events_of(self._runs, self._reading)

    def counts(self, nbytes=None) -> Counts:
        """The messages of the student's own sends and receives, in the bytes they had; see the module for built-ins.

        Takes no N, and raises TypeError for one: the result would not be what was sent.
        """
        if nbytes is not None:
            raise TypeError("a Recording counts the bytes that were really sent: call counts() without nbytes")
        sent, received = [0] * self.ranks, [0] * self.ranks
        imagined = [move for move in self._reading.moves if move.nbytes and move.calls[0].event["kind"] == "collective"]
        messages = {(m.step, m.src, m.dst, id(m)) for m in self._reading.messages}
        # Of an algorithm's transfers all that go from one rank to another in a step are one message.
        messages |= {(move.step, move.src, move.dst, 0) for move in imagined}
        for told in [*self._reading.messages, *imagined]:
            sent[told.src] += told.nbytes
            received[told.dst] += told.nbytes
        steps = len({step for step, *_ in messages})
        return Counts(steps, len(messages), sum(sent), max(sent), tuple(sent), tuple(received))

    def as_if(self, **algorithms: str) -> "Recording":
        """This run as if the library had used other algorithms inside: `recording.as_if(all_reduce="ring")`.

        Every recorded call of that built-in is told by `collectives.all_reduce.ring` over the ranks of its group, and
        its messages are counted. Calls of built-ins that are not named stay effects. ScheduleError if there is no such
        algorithm, or it does not take that number of ranks. Asked of a part it tells the whole run, whose part may
        be taken then.
        """
        return Recording(self._runs, {**self._as_if, **algorithms})

    def part(self, first: int, last: int) -> "Recording":
        """Only the steps from `first` to `last`, counted from 1 as the Player counts them, and only what they touch.

        For runs too long to look at as a whole, such as a training. ValueError if there are no such steps.
        """
        if not 1 <= first <= last <= self._whole:
            raise ValueError(
                f"this run has steps 1 to {self._whole}; part takes two of them in order, got {first}, {last}"
            )
        return Recording(self._runs, self._as_if, range(first - 1, last))

    def beginning(self, buffers: int) -> "Recording":
        """As many of the first steps as touch no more than that many buffers, at least one; itself if all do."""
        touched: set = set()
        for index, step in enumerate(self.steps):
            touched |= {name for t in step.transfers for name in (t.src_buffer, t.dst_buffer)}
            if len(touched) > buffers and index:
                return self.part(1, index)
        return self

    def save_trace(self, path) -> None:
        """Writes the measured times to `path`, for Perfetto (ui.perfetto.dev) and chrome://tracing."""
        trace.save(self.events, path)

    def start_values(self) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of every chunk that holds something before the first step: the run's numbers."""
        found = []
        for buffer, cells in self.start().cells.items():
            for rank, chunk in ((r, c) for r in range(self.ranks) for c in range(self.chunks) if cells[r, c]):
                region = self._layout.region(rank, buffer, chunk)
                value = None if region is None else self._reading.at_start(rank, region)
                found.append((rank, buffer, chunk, text_of(value)))
        return found

    def values(self, index: int) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of every chunk that `steps[index]` wrote, as that rank had it after the step."""
        found = []
        for rank, buffer, chunk, look in self._looks[index]:
            region = self._layout.region(rank, buffer, chunk)
            value = None if region is None else self._reading.memories[rank].value(region, look)
            found.append((rank, buffer, chunk, text_of(value)))
        return found

    def ways(self, index: int) -> list[str]:
        """What each transfer of `steps[index]` does with what is there: "sum", "max", "product" ...; "" for a copy."""
        return self._ways[index]


def _listed(ops: list[str]) -> str:
    """ "all_gather, broadcast and all_reduce"; of more than four only the first three."""
    named = ops if len(ops) <= 4 else [*ops[:3], f"{len(ops) - 3} more"]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
