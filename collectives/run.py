"""Run: a run of real ranks as plain values: a Schedule, and with it what only the ranks could know.

What launch records and what a file gives back are both Runs, so the Player, the Timeline and `save` take either. A run
may have 20,000 calls, and a notebook looks at few of them: whatever takes long to work out may be given as a function,
which is called when it is needed.

Left out: where the values come from (`launch.replay`, `collectives.saved`), and drawing them (widgets).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from collectives.counting import Counts
from collectives.network import Network, Topology
from collectives.played import Carried
from collectives.schedule import Schedule, Step
from collectives.timed import Clock

T = TypeVar("T")


Value = tuple[int, str, int, str]
"""(rank, buffer, chunk, text): the numbers in a chunk, as a text."""


class Run(Schedule):
    """Beyond a Schedule, whose other arguments it takes too:

    title         what to call it in one line: "your run: all_reduce ring"
    counts        the messages that were really sent, as Counts
    events        its calls, anything with the fields of `collectives.timed.Timed`; None if nobody measured
    built_ins     (op, bytes per rank, ranks) of every call of a built-in collective, in the order of their steps
    unmatched        (rank, op, peer, line) of sends and receives whose other side was not recorded
    dropped       calls that were too many to keep, on all ranks together
    start_values  a Value for every chunk that holds something before the first step
    values        for every step a Value for every chunk it wrote, as that rank had it after the step
    ways          for every step what each transfer does: "sum", "max" ... if it reduces, "computed",
                  "changed outside torch" ... if it is new, "" if it copies, "avg" if it then divides that sum by the
                  number of its terms
    step_seconds  for every step how long after the step before it was over; None if nobody measured
    network       the Network or Topology that it ran on; None for the machine as it is
    carried       what went over that network's links, as `collectives.played.Carried`; None if nobody counted
    clocks        a `collectives.timed.Clock` for each machine that the ranks were on: how far its clock was from the
                  notebook's, and the error of that; () if they were on the notebook's own machine
    began         seconds from the first call until the last rank had begun its cell; 0.0 if it had by then
    stuck         (rank, other rank, op, line) for each wait in which the run ended for good: rank waits for other in
                  "recv" in line 7 (0: not known), or its call was refused, if other is None; () if it was not proved
                  that ranks were stuck

    `counts`, `events`, `start_values` and `step_seconds` may be functions of nothing, `values` and `ways` of a step's
    index.
    """

    def __init__(
        self,
        collective: str,
        algorithm: str,
        ranks: int,
        chunks: int,
        steps: Sequence[Step],
        *,
        title: str,
        counts: Counts | Callable[[], Counts],
        events: Sequence[Any] | None | Callable[[], Sequence[Any] | None],
        built_ins: Sequence[tuple[Any, ...]],
        unmatched: Sequence[tuple[Any, ...]],
        dropped: int,
        start_values: list[Value] | Callable[[], list[Value]],
        values: Sequence[list[Value]] | Callable[[int], list[Value]],
        ways: Sequence[list[str]] | Callable[[int], list[str]],
        step_seconds: Sequence[float] | None | Callable[[], Sequence[float] | None] = None,
        network: Network | Topology | None = None,
        carried: Carried | None = None,
        clocks: Sequence[Clock] = (),
        began: float = 0.0,
        stuck: Sequence[tuple[int, int | None, str, int]] = (),
        **schedule_arguments: Any,
    ) -> None:
        super().__init__(collective, algorithm, ranks, chunks, steps, **schedule_arguments)
        self._title, self._counts, self._events, self._start_values = title, counts, events, start_values
        self._values = values if callable(values) else values.__getitem__
        self._ways = ways if callable(ways) else ways.__getitem__
        self._step_seconds, self.network, self.carried = step_seconds, network, carried
        self.clocks, self.began, self.stuck = tuple(clocks), began, tuple(stuck)
        self.built_ins, self.unmatched, self.dropped = tuple(built_ins), tuple(unmatched), dropped

    def __repr__(self) -> str:
        sizes = f"ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}"
        return f"{type(self).__name__}({self.collective}, {sizes})"

    @property
    def title(self) -> str:
        return self._title

    @cached_property
    def events(self) -> Sequence[Any] | None:
        return _answer(self._events)

    @cached_property
    def step_seconds(self) -> Sequence[float] | None:
        return _answer(self._step_seconds)

    def counts(self, nbytes: float | None = None) -> Counts:
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


def _answer(given: T | Callable[[], T]) -> T:
    """What was given; of a function what it returns."""
    return given() if callable(given) else given
