"""RankLog: what the ranks print while a cell runs, live, each rank's state beside it.

Live output has to go through a widget's trait: nbval and saved notebooks ignore that, while `update_display` would make
a cell differ from its own recording. What is written here is collected and sent about twenty times a second, only what
is new each time (`batch`); a page that comes later gets the history with the widget's state. Memory is bounded at both
ends, and the picture says what was left out: the whole text is printed once when the cell ends, by launch.

A notebook runs many cells, and each leaves its log behind: of those that are finished the histories have one bound
together, and the oldest make room for new ones.

Left out: where lines come from, what a terminal makes of them (launch/shared/text.py), and the text printed in the
end.
"""

import threading
import time
from collections import deque
from uuid import uuid4

import traitlets
from ipywidgets import Layout

from widgets.base import Widget, join, styles

STREAMS = ("stdout", "stderr")
INTERVAL = 0.05  # seconds between two batches
MOST_KEPT = 1_000_000  # characters of history, and of one batch
KEPT_IN_ALL = 8_000_000  # characters of history of all finished logs
KEPT_OF_OLD = 2_000  # characters of one that has made room: its end


class RankLog(Widget):
    """A live log of `ranks` ranks. `write`, `state` and `finish` may be called from any thread."""

    _esm = join("ranklog.js")
    _css = styles("ranklog.css")
    ranks = traitlets.Int(1).tag(sync=True)
    batch = traitlets.Dict().tag(sync=True)  # {"seq": n, "entries": [[rank, stream, text], ...], "cut": characters}
    history = traitlets.Dict().tag(
        sync=True
    )  # the same for all that is kept; filled in when the whole state is asked for
    states = traitlets.List().tag(sync=True)  # [state, note, seconds] per rank
    finished = traitlets.Bool(False).tag(sync=True)
    network = traitlets.Unicode("").tag(sync=True)  # what the cell runs on, in words; "" where that is the machine
    _own = traitlets.Unicode("").tag(sync=True)  # its model's id, which a page asks for that was late (js/late.js)

    def __init__(self, ranks: int, network: str = ""):
        if not isinstance(ranks, int) or ranks < 1:
            raise ValueError(f"RankLog needs a number of ranks from 1, got {ranks!r}")
        self._lock = threading.RLock()
        self._waiting, self._kept = _Entries(), _Entries()
        self._states = [["running", "", 0] for _ in range(ranks)]
        self._seq = 0
        self._sent_at = 0.0
        self._timer: threading.Timer | None = None
        states = [list(state) for state in self._states]
        super().__init__(ranks=ranks, network=network, states=states, layout=_layout())

    def open(self) -> None:
        """As ipywidgets has it, with an id of ours, so that it is part of the state."""
        if self.comm is None:
            self._own = self._model_id = uuid4().hex
        super().open()

    def write(self, rank: int, stream: str, text: str) -> None:
        """`text` as rank `rank` wrote it to "stdout" or "stderr", any piece: lines, colours, lines written again."""
        self._known(rank)
        if stream not in STREAMS:
            raise ValueError(f"rank {rank}: a stream is stdout or stderr, got {stream!r}")
        with self._lock:
            self._waiting.add(rank, STREAMS.index(stream), text)
            self._kept.add(rank, STREAMS.index(stream), text)
            self._schedule()

    def state(self, rank: int, name: str, note: str = "", seconds: int = 0) -> None:
        """What rank `rank` is doing, a few words more, and for how many seconds it has been (0: not worth saying).

        "running", "waiting", "stuck", "done" and "failed" have signs of their own.
        """
        self._known(rank)
        with self._lock:
            if self._states[rank] != [name, note, seconds]:
                self._states[rank] = [name, note, seconds]
                self._schedule()

    def finish(self) -> None:
        """Nothing more will come: sends what waits; the log folds to one line that can be opened again."""
        with self._lock:
            self._flush()
            self.finished = True
        _shelf.add(self)

    def close(self) -> None:
        """As ipywidgets has it: the log vanishes from all pages."""
        _shelf.discard(self)
        super().close()

    def summary(self) -> str:
        return f"ranks={self.ranks}" + (f", network={self.network!r}" if self.network else "")

    def fallback(self) -> str:
        """Nothing to see: the same text is printed below it when the cell ends."""
        return '<span style="display:none">RankLog</span>'

    def get_state(self, key=None, drop_defaults=False):
        """As ipywidgets has it; a whole state, which a page asks for that opens late, carries the history too."""
        with self._lock:
            state = super().get_state(key, drop_defaults)
            if key is None:
                state["history"] = self._kept.message(self._seq)
            return state

    def size(self) -> int:
        """Characters of its history."""
        return self._kept.size

    def shorten(self) -> None:
        """Keeps the end of the history only, here and in the pages; both say how much is left out."""
        with self._lock:
            self._kept.shorten(KEPT_OF_OLD)
            self._seq += 1
            self.batch = {}
            self.history = self._kept.message(self._seq)

    def _known(self, rank: int) -> None:
        if not 0 <= rank < self.ranks:
            raise ValueError(f"rank {rank}: this log has ranks 0 to {self.ranks - 1}")

    def _schedule(self) -> None:
        """Sends at once after a pause, else when INTERVAL has passed since the last batch."""
        if self._timer is not None:
            return
        wait = self._sent_at + INTERVAL - time.monotonic()
        if wait <= 0:
            self._flush()
        else:
            self._timer = threading.Timer(wait, self._flush)
            self._timer.daemon = True
            self._timer.start()

    def _flush(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._waiting.entries:
                self._seq += 1
                self.batch = self._waiting.message(self._seq)
                self._waiting = _Entries()
            if self.states != self._states:
                self.states = [list(state) for state in self._states]
            self._sent_at = time.monotonic()


class _Entries:
    """(rank, stream, text) in order, the newest MOST_KEPT characters of them; counts what it had to drop."""

    def __init__(self):
        self.entries: deque = deque()
        self.size = self.cut = 0

    def add(self, rank: int, stream: int, text: str) -> None:
        if self.entries and self.entries[-1][:2] == [rank, stream] and len(self.entries[-1][2]) < 4096:
            self.entries[-1][2] += text
        else:
            self.entries.append([rank, stream, text])
        self.size += len(text)
        self.shorten(MOST_KEPT)

    def shorten(self, most: int) -> None:
        """Drops from the beginning what is more than `most` characters."""
        while self.size > most:
            excess = self.size - most
            oldest = self.entries[0]
            dropped = len(oldest[2]) if len(oldest[2]) <= excess else excess
            oldest[2] = oldest[2][dropped:]
            if not oldest[2]:
                self.entries.popleft()
            self.size -= dropped
            self.cut += dropped

    def message(self, seq: int) -> dict:
        return {"seq": seq, "entries": [list(entry) for entry in self.entries], "cut": self.cut}


class _Shelf:
    """Finished logs with a history that is worth shortening, oldest first; KEPT_IN_ALL characters of them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.logs: list[RankLog] = []

    def add(self, log: RankLog) -> None:
        with self.lock:
            if log.size() > KEPT_OF_OLD and log not in self.logs:
                self.logs.append(log)
            while sum(other.size() for other in self.logs) > KEPT_IN_ALL:
                self.logs.pop(0).shorten()

    def discard(self, log: RankLog) -> None:
        with self.lock:
            self.logs = [other for other in self.logs if other is not log]


_shelf = _Shelf()
_shared: list[Layout] = []


def _layout() -> Layout:
    """One for all logs: each would be a model of its own in the page, of which there is one for every cell."""
    if not _shared or _shared[0].comm is None:  # closed by somebody who closes all widgets
        _shared[:] = [Layout()]
    return _shared[0]
