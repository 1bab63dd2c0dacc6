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
from launch.replay.layout import Layout
from launch.replay.reading import Reading
from launch.replay.recognise import recognise
from launch.replay.recorded import Event, events_of, text_of
from launch.replay.steps import BUILT_IN, start_of, steps_of


class Recording(Schedule):
    """Beyond a Schedule:

    built_ins  (op, bytes per rank, ranks) of every call of a built-in collective, in the order of their steps
    lonely     (rank, op, peer, line) of sends and receives whose other side was not recorded
    dropped    calls that were too many to keep, on all ranks together

    `collective` and `algorithm` are "recorded" unless the run is proved to be one of the collectives, and sends the
    messages of one of the textbook's algorithms.
    """

    def __init__(self, runs: list[dict]):
        runs = sorted(runs, key=lambda run: run["rank"])
        self._runs = runs
        self._reading = reading = Reading(runs)
        self._layout = layout = Layout(reading.moves, reading.memories)
        ranks = 1 + max({0, *reading.memories, *(rank for item in reading.collectives for rank in item.ranks)})
        steps, self._looks = steps_of(reading, layout)
        parts = {"buffers": layout.buffers, "chunk_bytes": layout.chunk_bytes}
        plain = Schedule.from_steps("recorded", "recorded", ranks, layout.chunks, steps, **parts)
        start = start_of(plain, reading.memories, layout)
        found = recognise(plain, start)
        super().__init__(
            found.collective,
            found.algorithm,
            ranks,
            layout.chunks,
            plain.steps,
            root=found.root,
            result=found.result,
            start=start,
            goal=found.goal,
            **parts,
        )
        self.dropped = sum(run["dropped"] for run in runs)
        called = sorted(reading.collectives, key=lambda item: item.step)
        self.built_ins = tuple((c.calls[0].event["op"], c.calls[0].event["bytes"], len(c.calls)) for c in called)
        self.lonely = tuple((call.rank, call.event["op"], call.event["peer"], call.line) for call in reading.lonely)

    @property
    def title(self) -> str:
        """What to call it: "your run", and what it was where that is proved, as in "your run: all_reduce ring"."""
        built_in = next((step.phase for step in self.steps if step.phase.endswith(BUILT_IN)), None)
        if built_in and not self._reading.messages:
            return f"your run: {built_in}"
        names = [name for name in (self.collective, self.algorithm) if name != "recorded"]
        return f"your run: {' '.join(names)}" if names else "your run"

    def __repr__(self):
        return (
            f"Recording({self.collective}, ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}, "
            f"events={sum(len(run['events']) for run in self._runs)})"
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
        messages = self._reading.messages
        for message in messages:
            sent[message.src] += message.nbytes
            received[message.dst] += message.nbytes
        steps = len({message.step for message in messages})
        return Counts(steps, len(messages), sum(sent), max(sent), tuple(sent), tuple(received))

    def save_trace(self, path) -> None:
        """Writes the measured times to `path`, for Perfetto (ui.perfetto.dev) and chrome://tracing."""
        trace.save(self.events, path)

    def start_values(self) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of every chunk that holds something before the first step: the run's numbers."""
        found = []
        for buffer, cells in self.start().cells.items():
            for rank, chunk in ((r, c) for r in range(self.ranks) for c in range(self.chunks) if cells[r, c]):
                region = self._layout.region(rank, buffer, chunk)
                values = [] if region is None else self._reading.memories[rank].history(region)[1]
                found.append((rank, buffer, chunk, text_of(values[0] if values else None)))
        return found

    def values(self, index: int) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of every chunk that `steps[index]` wrote, as that rank had it after the step."""
        found = []
        for rank, buffer, chunk, look in self._looks[index]:
            region = self._layout.region(rank, buffer, chunk)
            value = None if region is None else self._reading.memories[rank].value(region, look)
            found.append((rank, buffer, chunk, text_of(value)))
        return found
