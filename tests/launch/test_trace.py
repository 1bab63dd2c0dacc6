"""The trace file holds what the events hold: parsed as JSON and compared, and its tracks nest as the format demands."""

import json

import pytest

from launch.replay.recording import Recording
from tests.launch.programs import SETUP
from widgets import Timeline

RUN = (
    SETUP
    + """
g = torch.ones(200_000)
work = [dist.all_reduce(g, async_op=True), dist.all_reduce(x, async_op=True)]
sum((torch.randn(200, 200) @ torch.randn(200, 200)).sum() for _ in range(20))
for w in work:
    w.wait()
if rank == 0:
    dist.send(x, 1)
elif rank == 1:
    dist.recv(x, 0)
"""
)


@pytest.fixture(scope="module")
def recording(gang):
    return Recording([answer["recording"] for answer in gang.run(RUN, 3, timeout=60)])


@pytest.fixture
def entries(recording, tmp_path):
    recording.save_trace(tmp_path / "run.trace.json")
    return json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]


def test_every_call_is_a_complete_event_of_its_rank_in_microseconds(recording, entries):
    calls = [entry for entry in entries if entry["ph"] == "X" and entry["tid"] > 0]
    assert len(calls) == len(recording.events) == 8
    for event in recording.events:
        until = event.end if event.finished is None else event.finished
        (entry,) = [
            e for e in calls if e["pid"] == event.rank and e["ts"] == pytest.approx(1e6 * event.start, abs=1e-3)
        ]
        assert entry["dur"] == pytest.approx(1e6 * (until - event.start), abs=0.01)
        assert entry["name"] == event.op
        args = entry["args"]
        assert (args["bytes"], args["line"], args["code"]) == (event.bytes, event.line, event.code)
        assert args.get("peer") == event.peer


def test_what_held_a_rank_is_on_a_track_of_its_own(recording, entries):
    held = [entry for entry in entries if entry["ph"] == "X" and entry["tid"] == 0]
    for event in recording.events:
        waits = [e for e in held if e["pid"] == event.rank and e["ts"] == pytest.approx(1e6 * event.wait, abs=1e-3)]
        assert f"waits for {event.op}" in [e["name"] for e in waits]
        assert any(e["dur"] == pytest.approx(1e6 * (event.end - event.wait), abs=0.01) for e in waits)


def test_calls_of_one_track_do_not_overlap(entries):
    """Perfetto draws complete events that overlap without nesting wrongly, and says nothing."""
    tracks = {}
    for entry in (entry for entry in entries if entry["ph"] == "X" and entry["tid"] > 0):
        tracks.setdefault((entry["pid"], entry["tid"]), []).append((entry["ts"], entry["ts"] + entry["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(end <= begin + 0.01 for (_, end), (begin, _) in zip(spans, spans[1:], strict=False))
    names = {e["args"]["name"] for e in entries if e["ph"] == "M"}
    assert {"rank 0", "rank 1", "rank 2", "held by a call", "under way 1"} <= names


def test_a_timeline_takes_a_recording(recording):
    assert repr(Timeline(recording)) == "Timeline(ranks=3, events=8)"
