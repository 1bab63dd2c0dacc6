"""The trace file: what the events hold, in the form that the Trace Event Format and Perfetto's importer ask for.

Perfetto itself (its page, and the program behind it) needs a network, so its rules are written down here, each with
where it stands: the "Trace Event Format" document of Chromium's trace-viewer, and Perfetto's sources
(src/trace_processor/importers/json/json_trace_parser_impl.cc, json_utils.cc, ../common/slice_tracker.cc,
process_tracker.cc, flow_tracker.cc). `imported` does with a file what those do, in a few lines.
"""

import json
from types import SimpleNamespace

import pytest

from collectives.timed import Clock, Match
from launch.replay._perfetto import traced
from tests.launch.programs import SETUP
from widgets import Timeline

RUN = (
    SETUP
    + """
g = torch.ones(200_000)
if rank == 2:
    sum((torch.randn(200, 200) @ torch.randn(200, 200)).sum() for _ in range(20))  # the others' calls pile up
work = [dist.all_reduce(g, async_op=True), dist.all_reduce(x, async_op=True), dist.all_reduce(g, async_op=True)]
sum((torch.randn(200, 200) @ torch.randn(200, 200)).sum() for _ in range(20))
for w in work:
    w.wait()
if rank == 0:
    dist.send(x, 1)
    dist.isend(x, 2).wait()
elif rank == 1:
    dist.recv(x, 0)
else:
    dist.irecv(x, 0).wait()
"""
)
CALLS = 3 * 3 + 2 + 1 + 1


@pytest.fixture(scope="module")
def recording(recorded):
    return recorded(RUN, 3)


@pytest.fixture
def entries(recording, tmp_path):
    recording.save_trace(tmp_path / "run.trace.json")
    return json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]


def named(entries, what):
    """(pid, tid) -> name, of processes or threads."""
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in entries if e["name"] == f"{what}_name"}


def slices(entries, kind):
    """The complete events on tracks whose name begins so."""
    tracks = {place for place, name in named(entries, "thread").items() if name.startswith(kind)}
    return [e for e in entries if e["ph"] == "X" and (e["pid"], e["tid"]) in tracks]


def test_every_call_is_a_complete_event_of_its_rank_in_microseconds(recording, entries):
    calls = slices(entries, "under way")
    assert len(calls) == len(recording.events) == CALLS
    for event in recording.events:
        until = event.end if event.finished is None else event.finished
        (entry,) = [
            e for e in calls if e["pid"] == event.rank and e["ts"] == pytest.approx(1e6 * event.start, abs=1e-3)
        ]
        assert entry["dur"] == pytest.approx(1e6 * (until - event.start), abs=0.01)
        assert entry["name"] == event.op
        args = entry["args"]
        assert (args["bytes"], args["line"], args["code"]) == (event.bytes, event.line, event.code)
        assert (args.get("peer"), args["call"]) == (event.peer, event.match.label)


def test_what_held_a_rank_is_on_a_track_of_its_own(recording, entries):
    held = slices(entries, "held by a call")
    assert len(held) == 2 * CALLS
    for event in recording.events:
        waits = [e for e in held if e["pid"] == event.rank and e["ts"] == pytest.approx(1e6 * event.wait, abs=1e-3)]
        assert f"waits for {event.op}" in [e["name"] for e in waits]
        assert any(e["dur"] == pytest.approx(1e6 * (event.end - event.wait), abs=0.01) for e in waits)


NEEDS = {  # what the format demands of each kind of event, and of which type
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float)},
    "s": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "id": int},
    "f": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "id": int, "bp": str},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
METADATA |= {"thread_sort_index": "sort_index"}


def test_every_event_has_what_its_kind_needs_and_nothing_else(entries):
    assert {entry["ph"] for entry in entries} == set(NEEDS)
    for entry in entries:
        needs = NEEDS[entry["ph"]]
        assert all(isinstance(entry[name], kind) for name, kind in needs.items()), entry
        assert not set(entry) - {*needs, "ph", "args"}
        assert entry.get("ts", 0) >= 0 and entry.get("dur", 0) >= 0
        if entry["ph"] == "M":
            assert set(entry["args"]) == {METADATA[entry["name"]]}


def test_every_process_and_track_has_one_name_and_a_place(entries):
    """A pid is a rank, named before anything happens in it; ranks and tracks stand in their order."""
    assert sorted(named(entries, "process").values()) == ["rank 0", "rank 1", "rank 2"]
    tracks = named(entries, "thread")
    assert {(e["pid"], e["tid"]) for e in entries if e["ph"] != "M"} == set(tracks)
    for rank in range(3):
        mine = [name for _, name in sorted((tid, name) for (pid, tid), name in tracks.items() if pid == rank)]
        assert mine[:2] == ["held by a call", "under way"]
        assert mine[2:] == ["under way 2", "under way 3"][: len(mine) - 2]  # as many as were under way together
    order = [e["args"]["sort_index"] for e in entries if e["name"] == "thread_sort_index"]
    assert order == sorted(order) and len(order) == len(tracks)
    first = next(i for i, e in enumerate(entries) if e["ph"] != "M")
    assert all(e["ph"] != "M" for e in entries[first:])


def test_no_two_tracks_share_a_tid_and_none_is_a_pid(entries):
    """`UpdateThreadName` looks for a tid without its pid, and `GetOrCreateProcess` makes a thread with each pid's
    number: shared numbers would give one rank's track another's name."""
    tids = [tid for _, tid in named(entries, "thread")]
    assert len(set(tids)) == len(tids)
    assert not {*tids} & {e["pid"] for e in entries}


def cut(microseconds):
    """As json_utils.cc makes nanoseconds: multiplied as a double, then cut."""
    return int(microseconds * 1000.0)


def imported(entries):
    """Slices that would be drawn wrong, and (sending pid, receiving pid, id) of the arrows that would be drawn.

    Events are taken in order of time, those of one time in the order of the file. On each track there is a stack: what
    has ended when a slice begins is taken off; if it then ends after the one it stands on, both are drawn wrong.
    """
    wrong, arrows, stacks, open_flows = [], [], {}, {}
    for entry in sorted((e for e in entries if e["ph"] != "M"), key=lambda e: cut(e["ts"])):
        stack = stacks.setdefault((entry["pid"], entry["tid"]), [])
        begin = cut(entry["ts"])
        while stack and (stack[-1][0] <= begin if entry["ph"] == "X" else stack[-1][0] < begin):
            stack.pop()
        if entry["ph"] == "X":
            end = begin + cut(entry["dur"])
            if stack and end > stack[-1][0]:
                wrong.append(entry)
            stack.append((end, entry))
        elif entry["ph"] == "s":
            assert stack and entry["id"] not in open_flows, "a flow begins in a slice, and once"
            open_flows[entry["id"]] = stack[-1][1]
        else:
            assert entry["bp"] == "e", "else it would belong to the next slice, not to the one it is in"
            assert stack and entry["id"] in open_flows
            arrows.append((open_flows[entry["id"]], stack[-1][1]))
    return wrong, arrows


def test_slices_of_a_track_are_drawn_as_they_are(entries):
    assert imported(entries)[0] == []


def test_arrows_lead_from_each_send_to_its_receive(recording, entries):
    _, arrows = imported(entries)
    ends = [(send["name"], send["pid"], recv["name"], recv["pid"]) for send, recv in arrows]
    assert sorted(ends) == [("send", 0, "recv", 1), ("send", 0, "recv", 2)]
    assert all(send["args"]["call"] == recv["args"]["call"] for send, recv in arrows)


def event(rank, start, issued, wait, end, finished=None, op="all_reduce", match=None):
    times = {"start": start, "issued": issued, "wait": wait, "end": end, "finished": finished}
    return SimpleNamespace(rank=rank, op=op, peer=None, bytes=8, line=1, code="", group=(0,), match=match, **times)


@pytest.mark.parametrize("send, recv", [(0.0, 0.4), (0.4, 0.0)])
def test_an_arrow_lies_inside_both_of_its_calls_whoever_came_first(send, recv):
    told = Match(7, "message #1 from rank 0 to rank 1", 2)
    calls = [
        event(0, send, send + 0.01, send + 0.02, 0.9, op="send", match=told),
        event(1, recv, recv + 0.01, recv + 0.02, 0.9, op="recv", match=told),
    ]
    found = traced(calls)
    assert [(s["pid"], r["pid"]) for s, r in imported(found)[1]] == [(0, 1)]
    ends = {e["ph"]: (e["pid"], e["ts"]) for e in found if e["ph"] in "sf"}
    assert ends == {"s": (0, 1e6 * send), "f": (1, 0.4e6)}


def test_no_arrow_leads_to_a_receive_whose_end_nobody_saw():
    told = Match(0, "message #1 from rank 0 to rank 1", 2)
    calls = [
        event(0, 0.5, 0.6, None, None, op="send", match=told),
        event(1, 0.0, 0.1, None, None, op="recv", match=told),
    ]
    assert imported(traced(calls))[1] == []


def test_calls_of_two_threads_of_a_rank_do_not_cover_each_other():
    """A student's two threads can both be held at once, without the one inside the other."""
    calls = [event(0, 0.0, 0.1, 0.11, 0.5), event(0, 0.2, 0.3, 0.31, 0.9)]
    found = traced(calls)
    assert imported(found)[0] == []
    assert sorted({name for name in named(found, "thread").values()}) == [
        "held by a call", "held by a call 2", "under way", "under way 2",
    ]  # fmt: skip


def test_calls_that_follow_without_a_gap_are_drawn_as_they_are():
    """Also where cutting to nanoseconds moves a begin, but not the end before it: 4.35 * 1000.0 is 4349.999..."""
    marks = [k * 1e-9 for k in range(1, 20_000, 7)]
    calls = [event(0, a, a, a, b, b) for a, b in zip(marks, marks[1:], strict=False)]
    found = traced(calls)
    assert any(cut(e["ts"]) != round(1000 * e["ts"]) for e in found if e["ph"] == "X")
    assert imported(found)[0] == []


def test_a_timeline_takes_a_recording(recording):
    assert repr(Timeline(recording)) == f"Timeline(ranks=3, events={CALLS})"


def test_ranks_on_several_machines_say_how_sure_their_clocks_are(recording):
    clocks = [Clock((0, 1), -3600.0, 0.0004), Clock((2,), 7200.0, 0.001)]
    told = named(traced(recording.events, clocks), "process").values()
    assert [*told] == ["rank 0 (its clock ± 400 us)", "rank 1 (its clock ± 400 us)", "rank 2 (its clock ± 1 ms)"]
    assert traced(recording.events, clocks[:1]) == traced(recording.events)
