"""Run: a run of real ranks as plain values: a Schedule that also knows what only the ranks could know.

What launch records and what a file gives back are both Runs, so the Player, the Timeline and `save` take either. A run
may have 20,000 calls, and a notebook looks at few of them: whatever takes long to work out may be given as a function,
which is called when somebody asks.

Left out: where the values come from (`launch.replay`, `collectives.saved`), and drawing them (widgets).
"""

from collections.abc import Callable, Sequence
from functools import cached_property

from collectives.counting import Counts
from collectives.schedule import Schedule

Value = tuple[int, str, int, str]
"""(rank, buffer, chunk, text): the numbers in a chunk, as a text."""


class Run(Schedule):
    """Beyond a Schedule, whose other arguments it takes too:

    title         what to call it in one line: "your run: all_reduce ring"
    counts        the messages that were really sent, as Counts
    events        its calls, anything with the fields of `collectives.timed.Timed`; None if nobody measured
    built_ins     (op, bytes per rank, ranks) of every call of a built-in collective, in the order of their steps
    lonely        (rank, op, peer, line) of sends and receives whose other side was not recorded
    dropped       calls that were too many to keep, on all ranks together
    start_values  a Value for every chunk that holds something before the first step
    values        for every step a Value for every chunk it wrote, as that rank had it after the step
    ways          for every step what each transfer does: "sum", "max" ... if it reduces, "computed",
                  "changed outside torch" ... if it is new, "" if it copies

    `counts`, `events` and `start_values` may be functions of nothing, `values` and `ways` functions of a step's index.
    """

    def __init__(
        self,
        collective,
        algorithm,
        ranks,
        chunks,
        steps,
        *,
        title: str,
        counts: Counts | Callable[[], Counts],
        events: Sequence | None | Callable[[], Sequence | None],
        built_ins: Sequence[tuple],
        lonely: Sequence[tuple],
        dropped: int,
        start_values: list[Value] | Callable[[], list[Value]],
        values: Sequence[list[Value]] | Callable[[int], list[Value]],
        ways: Sequence[list[str]] | Callable[[int], list[str]],
        **schedule_arguments,
    ):
        super().__init__(collective, algorithm, ranks, chunks, steps, **schedule_arguments)
        self._title, self._counts, self._events, self._start_values = title, counts, events, start_values
        self._values = values if callable(values) else values.__getitem__
        self._ways = ways if callable(ways) else ways.__getitem__
        self.built_ins, self.lonely, self.dropped = tuple(built_ins), tuple(lonely), dropped

    def __repr__(self):
        sizes = f"ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}"
        return f"{type(self).__name__}({self.collective}, {sizes})"

    @property
    def title(self) -> str:
        return self._title

    @cached_property
    def events(self) -> Sequence | None:
        return _answer(self._events)

    def counts(self, nbytes=None) -> Counts:
        """The messages that were really sent, in the bytes they had. Takes no N, and raises TypeError for one."""
        if nbytes is not None:
            raise TypeError("a recorded run counts the bytes that were really sent: call counts() without nbytes")
        return _answer(self._counts)

    def start_values(self) -> list[Value]:
        """(rank, buffer, chunk, text) of every chunk that holds something before the first step: the run's numbers."""
        return _answer(self._start_values)

    def values(self, index: int) -> list[Value]:
        """(rank, buffer, chunk, text) of every chunk that `steps[index]` wrote, as that rank had it after the step."""
        return self._values(index)

    def ways(self, index: int) -> list[str]:
        """What each transfer of `steps[index]` does: "sum", "max", "computed" ...; "" for a copy."""
        return self._ways(index)


def _answer(given):
    """What was given; of a function what it returns."""
    return given() if callable(given) else given
