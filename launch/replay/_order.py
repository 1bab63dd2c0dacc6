"""The calls of a run in causal order: which belong together, and in which step each of them comes.

The op logs of all ranks are read side by side, row by row. A receive waits here until its send has begun on the other
rank, a collective until all its ranks have called it. So the step of a message comes after everything that was over, on
either of its two ranks, when that rank began its side of the call. Nothing here depends on times.

Left out: what was in the messages, and in memory (`replay._replay`, which carries the rows out in this order).
"""

from collections.abc import Iterator

from launch.replay._calls import Call, Collective, Matched, early_uses, match
from launch.replay._numbers import Snapshots
from launch.replay._places import Variables, prefer
from launch.replay._torch_ops import View, parse
from launch.shared.capture import BEGIN, BLIND, END, LOOK

# At the end of a call that another rank has not begun: a rank never goes on, or it does if it gets no data.
WAITS, GETS_NOTHING = 0, 1

Over = list[tuple[int, bool]]
"""(call, whether all its ranks had begun it) of the calls of a rank that are over."""


class Rank:
    """One rank's op log, and how far it has been read."""

    def __init__(self, run: dict):
        op_log = run["op_log"]
        self.number, self.events, self.sites = run["rank"], run["events"], run["sites"]
        self.rows, self.ops = op_log["rows"], [parse(text) for text in op_log["ops"]]
        self.views = [View(s, o, tuple(shape), tuple(stride), *kind) for s, o, shape, stride, *kind in op_log["places"]]
        self.snapshots = Snapshots(run["snapshots"])
        self.changed, self.early = early_uses(self.rows, self.ops, self.views, self.events)
        self.step = -1  # the latest that is over
        self.open: dict[int, dict] = {}  # event -> itself, while it is under way
        self.waiting: dict[int, list[int]] = {}  # storage -> events that write there, without a wait so far
        self.spans: dict[int, list] = {number: [None, None] for number in range(len(self.events))}  # event -> rows


class Order:
    """messages, collectives, unmatched   of all ranks, with their steps; `matched` are the first two
    items                                 (rank, number of a call) -> the message or collective that it is part of
    rows                                  (rank, row, Over) of all rows, causes first; at last each rank's end
    variables                             by rank: its `Variables`
    """

    def __init__(self, runs: list[dict]):
        self.runs = runs
        self.variables = {run["rank"]: Variables(run["snapshots"]) for run in runs}
        prefer(self.variables, runs)
        self.ranks = {run["rank"]: Rank(run) for run in runs}
        self.messages, self.collectives, self.unmatched = match(runs)
        self.matched: list[Matched] = [*self.messages, *self.collectives]
        self.items = {(call.rank, call.number): item for item in self.matched for call in item.calls}
        self._pairs: dict[tuple[int, int], int] = {}
        self._groups: dict[tuple, int] = {}
        self.rows = [*self._in_order()]

    def _in_order(self) -> Iterator[tuple[int, int, Over]]:
        cursors = dict.fromkeys(self.ranks, 0)
        forced = WAITS
        while any(cursors[number] < len(rank.rows) for number, rank in self.ranks.items()):
            moved = False
            for number, rank in self.ranks.items():
                while cursors[number] < len(rank.rows):
                    over = self._read(rank, cursors[number], forced)
                    if over is None:
                        break
                    yield number, cursors[number], over
                    cursors[number] += 1
                    moved, forced = True, WAITS
            # No rank can go on. Then the root of a broadcast may, since it gets nothing from the others. If there is
            # none, a rank has read data before they had arrived, and the first rank goes on.
            forced = WAITS if moved else forced + 1
        for number, rank in self.ranks.items():
            yield number, len(rank.rows), self._end(rank, [*rank.open])

    def row_of(self, call: Call, end: bool) -> int:
        """The row at which a call began, or its wait was over (the last one if it was not waited for)."""
        rank = self.ranks[call.rank]
        row = rank.spans[call.number][end]
        return len(rank.rows) if row is None else row

    def site(self, call: Call) -> tuple[str, int, str]:
        """(file, line, text) of the innermost line of the cell that made a call; "", 0 and "" if there is none."""
        file, line, text = next(iter(self.ranks[call.rank].sites[call.event["site"]]), ("", 0, ""))
        return file, line, text

    def code(self, call: Call) -> tuple[int, str]:
        """The same without the file."""
        _, line, text = self.site(call)
        return line, text

    def _read(self, rank: Rank, at: int, forced: int) -> Over | None:
        """The calls that are over at one row; None if it has to wait for another rank."""
        row = rank.rows[at]
        if row[0] == BEGIN:
            self._begin(rank, row[1], at)
        elif row[0] == END:
            item = self.items.get((rank.number, row[1]))
            if item is not None and not self._ready(item):
                if forced == WAITS or forced == GETS_NOTHING and not _gets_nothing(rank, row[1]):
                    return None
            rank.spans[row[1]][1] = at
            return self._end(rank, [row[1]])
        elif row[0] not in (LOOK, BLIND) and rank.waiting:
            touched = dict.fromkeys(rank.views[number].storage for number in [*row[1], *row[2]] if number >= 0)
            unawaited = [number for storage in touched for number in rank.waiting.get(storage, ())]
            if forced <= GETS_NOTHING and not all(self._ready(self.items[rank.number, n]) for n in unawaited):
                return None
            return self._end(rank, unawaited)  # read without a wait: DDP waits in C++
        return []

    def _ready(self, item) -> bool:
        return item.begun == len(item.calls)

    def _begin(self, rank: Rank, number: int, at: int) -> None:
        event = rank.events[number]
        rank.spans[number][0] = at
        rank.open[number] = event
        item = self.items.get((rank.number, number))
        if item is None:
            return
        item.changed |= number in rank.changed and any(event["ins"])
        item.after = max(item.after, rank.step)
        item.begun += 1
        if event["times"][3] is None or event["native"]:
            for span in event["outs"] if event["kind"] != "send" else ():
                if span:
                    rank.waiting.setdefault(span.storage, []).append(number)
        if self._ready(item):
            self._give_step(item)

    def _give_step(self, item) -> None:
        """Gives a call its step, once all its sides have begun."""
        step = 1 + item.after
        if isinstance(item, Collective):
            step = max(step, self._groups.get(item.ranks, 0))
            # Collectives of a group never share a step, even if nothing waits for them, as in DDP.
            self._groups[item.ranks] = step + 1
        else:
            pair = (item.src, item.dst)
            step = max(step, self._pairs.get(pair, 0))
            self._pairs[pair] = step + 1  # messages from one rank to another never share a step
        item.step = step

    def _end(self, rank: Rank, numbers: list[int]) -> Over:
        """These calls are over for this rank, but for those that were before."""
        over = []
        for number in numbers:
            event = rank.open.pop(number, None)
            if event is None:
                continue
            for span in event["outs"]:
                if span and number in rank.waiting.get(span.storage, ()):
                    rank.waiting[span.storage].remove(number)
            item = self.items.get((rank.number, number))
            complete = False
            if item is not None and self._ready(item):
                rank.step, complete = max(rank.step, item.step), True
            over.append((number, complete))
        return over


def _gets_nothing(rank: Rank, number: int) -> bool:
    """Whether a call brings nothing in: a send, the root of a broadcast, one that gathers for another rank."""
    event = rank.events[number]
    root = event["op"] == "broadcast" and event["peer"] == rank.number
    return event["kind"] == "send" or not event["outs"] or root
