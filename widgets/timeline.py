"""Timeline: what the ranks did when, in measured seconds: every call of torch.distributed, waiting, and overlap.

A Player shows the order of a run; this shows its time. For each rank, the calls under way are above; below them,
solid, is the time that the rank is blocked, and the faint rest is its own work. An asynchronous all_reduce that hides
behind a backward pass is a bar above with nothing solid below.

Time 0 is when the last rank has begun the cell: until then ranks may wait for one whose process the machine has not
run yet, which no line of theirs decides.

All sides of one call are linked: the bars of one collective on all its ranks, a send and its receive. Choosing one
says which rank entered last, and how long the others waited for that rank. Where ranks were on several machines, whose
clocks are known with an error, it says what is sure in spite of it.

Of a run on a network of one's choice, each message shows how much of its time was latency and how much its bytes took.
Of a backward pass of DDP, each bucket bears its name, and what was under way before the reducer's wait is hidden.

The still picture beside it (`_bars.py`) is on a time axis too, so it is different on every run: `measured` says so, and
`course.refresh` then keeps one run's picture as an example. The repr is the same on every run. Left out: what the calls
did to the data (Player).
"""

import traitlets

from collectives.network import Network, Topology
from collectives.played import in_words
from collectives.saved import SavedRun
from collectives.timed import TIMES, uncertainty
from widgets import _bars, _still
from widgets.base import join, styles
from widgets.question import Asked

MOST_LINES = 16  # of the still picture
MOST_CALLS = 20_000  # about 5 MB for the browser
SAID = ("rank", "op", "peer", "bytes", "line", "code")


class Timeline(Asked):
    """Shows the measured times of a run.

    >>> Timeline(launch.recording())                           # doctest: +SKIP
    >>> Timeline(collectives.load("ring.json"))                # doctest: +SKIP

    run      `launch.recording()`, one that was saved, or any other Run with `events`: these have the fields of
             `collectives.timed.Timed`. Ranks of one machine have one clock. Of a run on several the Timeline says
             how far their times may be wrong against each other, and tells no order that lies within that
    chosen   number of the call that is described, counted from 0 over all ranks in order of their begin; -1 for none

    Only the first 20,000 calls are drawn; the widget says so. TypeError for a run without measured events.
    """

    measured = True
    _esm = join("timeline.js")
    _css = styles("frame.css", "timeline.css", "question.css")
    chosen = traitlets.Int(-1).tag(sync=True)
    calls = traitlets.List().tag(sync=True)
    ranks = traitlets.Int(0).tag(sync=True)
    cut = traitlets.Int(0).tag(sync=True)
    headline = traitlets.Unicode().tag(sync=True)
    network = traitlets.Unicode("").tag(sync=True)  # what it ran on, in words; "" for the machine as it is
    clocks = traitlets.List().tag(sync=True)  # of each machine the ranks and the error; [] of a run on one

    def __init__(self, run, **traits):
        events = getattr(run, "events", None)
        if events is None:
            old = " was saved before files held times" if isinstance(run, SavedRun) else ""
            raise TypeError(
                "Timeline shows measured times, which launch.recording() has and what it saves: run a cell with "
                f"`%%ranks --record` first; {type(run).__name__} {run!r:.60}{old or ' has none'}"
            )
        events = sorted(events, key=lambda event: (event.start, event.rank))
        network = getattr(run, "network", None)
        began = getattr(run, "began", 0.0)
        calls = [_call(event, began) | _parts(event, network, run.ranks) for event in events[:MOST_CALLS]]
        traits.setdefault("network", in_words(network, run.ranks) if network else "")
        clocks = getattr(run, "clocks", ())
        self.error = uncertainty(clocks)  # of times of two ranks against each other
        if len(clocks) > 1:
            traits.setdefault("clocks", [{"ranks": [*clock.ranks], "error": clock.error} for clock in clocks])
        said = _bars.headline(calls, run.ranks, self.error)
        super().__init__(headline=said, calls=calls, ranks=run.ranks, cut=max(0, len(events) - MOST_CALLS), **traits)

    @traitlets.validate("chosen")
    def _within(self, proposal):
        """Numbers outside the calls become none, or the last."""
        return max(-1, min(proposal["value"], len(self.calls) - 1))

    def _freshness(self) -> str:
        return "new"

    def summary(self) -> str:
        where = f", network={self.network!r}" if self.network else ""
        return f"ranks={self.ranks}, events={len(self.calls) + self.cut}{where}"

    def fallback(self) -> str:
        """The calls of all ranks on a time axis: one run's times, which another run will not have."""
        if self.ranks > MOST_LINES:
            return super().fallback()
        picture = _bars.svg(self.calls, self.ranks, self.error, self.headline)
        return _still.image(picture, f"{self!r}: {self.headline}")


def _call(event, began: float) -> dict:
    """What js/spans.js calls Measured: what was before all ranks had begun the cell tells of the start alone."""
    number, label, sides, part = event.match or (None, "", 1, "")
    times = [None if (at := getattr(event, name)) is None else max(0.0, at - began) for name in TIMES]
    said = {name: getattr(event, name) for name in SAID}
    return said | {"match": number, "label": label, "sides": sides, "part": part, "times": times}


def _parts(event, network: Network | Topology | None, ranks: int) -> dict:
    """Seconds of a message's latency, and of its bytes on the slowest link of its way; nothing of other calls."""
    if network is None or event.op not in ("send", "recv") or event.peer is None or event.peer == event.rank:
        return {}
    ends = (event.rank, event.peer) if event.op == "send" else (event.peer, event.rank)
    way, betas = network.way(*ends, ranks), network.betas(ranks)
    return {"latency": way.alpha, "transfer": event.bytes * max(float(betas[link]) for link, _ in way.links)}
