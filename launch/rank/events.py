"""The recorder: every call as an event, from when it began to when it was waited for, with the film beside it.

The tap calls `begin` when a call enters torch and `end` when the student has waited for it. Events are bounded: after
`limit` calls the rest are only counted.

Left out: matching calls of different ranks and working out what they did; the driver does that (`replay.recording`).
"""

import sys
import time

from launch.rank import callsite
from launch.rank.film import Film
from launch.rank.ops import Call, dtype_name

LIMIT = 20_000


class Event:
    """One call of this rank, while it is recorded. It holds no tensor: the student's memory is not kept alive by it."""

    __slots__ = ("plain", "times", "looks", "wait_line")

    def __init__(self, plain: dict):
        self.plain = plain
        self.times = [0, None, None, None, None]  # perf_counter_ns: begun, issued, wait begun, wait ended, library done
        self.looks = [0, None]
        self.wait_line = 0

    def issued(self) -> None:
        self.times[1] = time.perf_counter_ns()

    def finished(self, _future=None) -> None:
        """From gloo's thread: the library is done, whether anybody waits or not."""
        self.times[4] = time.perf_counter_ns()


class Recorder:
    """What one rank did between `tap.start` and `tap.stop`."""

    def __init__(self, limit: int = LIMIT):
        self.limit, self.dropped = limit, 0
        self.events: list[Event] = []
        self.film = Film()
        self.groups: dict[str, dict] = {}
        self.sites: dict[callsite.Site, int] = {}
        self.globals: dict = {}
        self.cell_file = ""

    def begin(self, call: Call, seq: int) -> Event | None:
        """A call enters torch. None when there is no room for it."""
        if len(self.events) >= self.limit:
            self.dropped += 1
            return None
        frames, via = callsite.frames()
        if frames:
            self.globals, self.cell_file = frames[-1].f_globals, frames[-1].f_code.co_filename
        group = str(call.group.key)
        if group not in self.groups:
            self.groups[group] = {"ranks": list(call.group.ranks), "label": call.group.label}
        event = Event(self._plain(call, seq, callsite.site(frames, via)))
        self.film.bind(callsite.names(frames))
        event.looks[0] = self.film.look()
        self.events.append(event)
        event.times[0] = time.perf_counter_ns()
        return event

    def _plain(self, call: Call, seq: int, site: callsite.Site) -> dict:
        tensors = call.ins or call.outs
        message = call.kind != "collective"
        return {
            "op": call.name,
            "kind": call.kind,
            "group": str(call.group.key),
            "seq": seq,
            "peer": call.peer,
            "tag": call.tag,
            "reduce": call.reduce,
            "dtype": dtype_name(tensors[0].dtype) if tensors else "",
            "shape": [list(tensor.shape) for tensor in tensors],
            "bytes": max(
                sum(tensor.numel() * tensor.element_size() for tensor in side) for side in (call.ins, call.outs)
            ),
            "splits": [list(split) for split in call.splits],
            "site": self.sites.setdefault(site, len(self.sites)),
            "ins": [self.film.place(tensor, message) for tensor in call.ins],
            "outs": [self.film.place(tensor, message) for tensor in call.outs],
        }

    def waits(self, event: Event) -> None:
        """The student begins to wait for the call."""
        event.times[2] = time.perf_counter_ns()
        event.wait_line = callsite.line_and_file()[0]

    def end(self, event: Event) -> None:
        """The wait for a call has returned: what it received is there."""
        event.times[3] = time.perf_counter_ns()
        if not callsite.called_by_torch(sys._getframe(2)):  # else no line of the student's ran since the call began
            self.film.bind(callsite.names(callsite.frames()[0]))
        event.looks[1] = self.film.look()

    def stop(self) -> dict:
        """Everything, as plain lists and dicts. The last look shows what the cell left behind."""
        wanted = (*callsite.mentioned(self.cell_file), "_")  # _ is the value of the cell's last expression
        variables = callsite.reached({name: self.globals[name] for name in wanted if name in self.globals})
        for name in variables:
            self.film.place(name.tensor)
        self.film.bind(variables)
        last = self.film.look()
        for event in self.events:
            looks = [event.looks[0], last if event.looks[1] is None else event.looks[1]]
            event.plain |= {"times": event.times, "looks": looks, "wait_line": event.wait_line}
        return {
            "events": [event.plain for event in self.events],
            "dropped": self.dropped,
            "groups": self.groups,
            "sites": [self._site(site) for site in self.sites],
            "film": self.film.dump(),
        }

    @staticmethod
    def _site(site: callsite.Site) -> dict:
        return {
            "file": site.file,
            "line": site.line,
            "function": site.function,
            "via": list(site.via),
            "stack": [[callsite.short(file), line, callsite.code_of(file, line)] for file, line in site.stack],
        }
