"""A run of real ranks as plain values: what it answers, when it works it out, and what a file keeps of it.

Runs of real ranks are in tests/launch; here everything is written by hand, so that each value is known.
"""

import json

import pytest

from collectives import Run, SavedRun, Schedule, ScheduleError, Transfer, load
from collectives.counting import Counts
from collectives.timed import Clock, Match, Timed

STEPS = [
    ("reduce", "One.", [Transfer(0, 1, 0, "reduce"), Transfer(0, 1, 1)], [(0, 4, "dist.send(x, 1)")]),
    ("new", "Two.", [Transfer(1, 1, 9, "new", dst_chunk=0), Transfer(1, 1, 3, "new", dst_chunk=1)], []),
    ("copy", "Three.", [Transfer(1, 0, 0)], [(1, 6, "dist.send(x[0], 0)")]),
]
COUNTS = Counts(2, 2, 24, 16, (16, 8), (8, 16))
MATCH = Match(0, "message #1 from rank 0 to rank 1", 2)
EVENTS = [
    Timed(0, "send", 1, 16, 4, "dist.send(x, 1)", MATCH, 0.0, 0.5, None, None, 0.25),
    Timed(1, "recv", 0, 16, 5, "dist.recv(x, 0)", MATCH, 0.125, 0.5, 0.5, 0.75, None),
]
KNOWN = {
    "title": "your run",
    "counts": COUNTS,
    "events": EVENTS,
    "built_ins": (("all_reduce", 24, 2),),
    "unmatched": ((0, "send", 1, 8),),
    "dropped": 3,
    "clocks": (Clock((0,), -7200.5, 0.00025), Clock((1,), 3.0, 0.0)),
    "began": 0.0625,
    "stuck": ((0, 1, "recv", 7), (1, None, "send", 5)),
    "start_values": [(0, "data", 0, "1"), (1, "data", 0, "10")],
    "values": [[(1, "data", 0, "11")], [(1, "data", 0, "121"), (1, "data", 1, "5 6")], [(0, "data", 0, "121")]],
    "ways": [["max", ""], ["computed", "changed outside torch"], [""]],
}
LAZY = KNOWN | {
    "counts": lambda: COUNTS,
    "events": lambda: EVENTS,
    "start_values": lambda: KNOWN["start_values"],
    "values": lambda index: KNOWN["values"][index],
    "ways": lambda index: KNOWN["ways"][index],
}


def run(**changes):
    return Run.from_steps("recorded", "recorded", 2, 2, STEPS, **KNOWN | {"chunk_bytes": [8, 8]} | changes)


def told(run):
    """All that a run says beyond a Schedule."""
    indices = range(len(run.steps))
    names = ("title", "events", "built_ins", "unmatched", "dropped", "clocks", "began", "stuck")
    said = {name: getattr(run, name) for name in names} | {"counts": run.counts(), "start_values": run.start_values()}
    return said | {"values": [run.values(i) for i in indices], "ways": [run.ways(i) for i in indices]}


@pytest.mark.parametrize("known", [KNOWN, LAZY], ids=["given", "asked for"])
def test_it_says_what_it_was_given(known):
    made = run(**known)
    assert told(made) == KNOWN and isinstance(made, Schedule)
    assert repr(made) == "Run(recorded, ranks=2, chunks=2, steps=3)"


def test_nothing_is_worked_out_that_nobody_asks_for():
    asked = []

    def noted(name, answer):
        return lambda *index: asked.append((name, *index)) or answer(*index)

    lazy = run(**LAZY | {name: noted(name, answer) for name, answer in LAZY.items() if callable(answer)})
    repr(lazy), lazy.check(), lazy.title
    assert asked == []
    lazy.states(-1)
    assert asked == [("ways", step) for step in range(3)], "whether data were added"
    asked.clear()
    lazy.values(1), lazy.ways(2)
    assert asked == [("values", 1), ("ways", 2)]
    assert lazy.events is lazy.events and asked[2:] == [("events",)], "worked out once"


def test_it_counts_what_was_sent_and_takes_no_n():
    sentence = "^a recorded run counts the bytes that were really sent: call counts\\(\\) without nbytes$"
    for recorded in (run(), run(counts=lambda: COUNTS)):
        assert recorded.counts() == COUNTS
        with pytest.raises(TypeError, match=sentence):
            recorded.counts(nbytes=24)


@pytest.mark.parametrize("known", [KNOWN, LAZY], ids=["given", "asked for"])
def test_a_file_gives_it_all_back(known, tmp_path):
    made = run(**known)
    made.save(tmp_path / "run.json")
    loaded = load(tmp_path / "run.json")
    assert told(loaded) == KNOWN and isinstance(loaded, SavedRun) and isinstance(loaded, Run)
    assert [step.transfers for step in loaded.steps] == [step.transfers for step in made.steps]
    assert repr(loaded) == "SavedRun(recorded, ranks=2, chunks=2, steps=3)"
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "run.json").read_bytes()
    found = loaded.trace(0, 0, -1)
    assert found == made.trace(0, 0, -1)
    assert found.sentence == "rank 0's chunk 0 = b9: computed by rank 1 in step 2, from rank 1 in step 3 (line 6)."
    changed = loaded.trace(1, 1, -1).sentence
    assert changed == "rank 1's chunk 1 = b3: changed outside torch by rank 1 in step 2."


def test_a_timeline_takes_any_run_with_events(tmp_path):
    from widgets import Timeline

    run().save(tmp_path / "run.json")
    for recorded in (run(), run(**LAZY), load(tmp_path / "run.json")):
        assert repr(Timeline(recorded)) == "Timeline(ranks=2, events=2)"
    with pytest.raises(TypeError, match=r"; Run Run\(recorded, .*\) has none$"):
        Timeline(run(events=None))
    with pytest.raises(TypeError, match=r"; SavedRun SavedRun\(.*\) was saved before files held times$"):
        Timeline(rewritten(tmp_path, lambda kept: kept.pop("calls")))


def test_what_a_file_no_longer_knows_is_said(tmp_path):
    run().save(tmp_path / "run.json")
    loaded = load(tmp_path / "run.json")
    with pytest.raises(ScheduleError, match=r"call launch.recording\(\).as_if\(...\) before you save"):
        loaded.as_if(all_reduce="ring")
    with pytest.raises(ScheduleError, match=r"call launch.recording\(\).part\(first, last\) before you save"):
        loaded.part(1, 2)


def rewritten(tmp_path, change, **changes):
    """A saved run whose file was changed, loaded."""
    run(**changes).save(tmp_path / "run.json")
    described = json.loads((tmp_path / "run.json").read_text())
    change(described["run"])
    (tmp_path / "run.json").write_text(json.dumps(described, ensure_ascii=False))
    return load(tmp_path / "run.json")


def test_a_file_from_before_files_had_times_and_ways_still_loads(tmp_path):
    old = rewritten(tmp_path, lambda kept: [kept.pop("calls"), kept.pop("ways")])
    assert old.events is None and [old.ways(i) for i in range(3)] == [["sum", ""], ["computed"] * 2, [""]]
    assert told(old) == KNOWN | {"events": None, "ways": [["sum", ""], ["computed"] * 2, [""]]}
    old.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "run.json").read_bytes()


def test_ways_that_the_ops_say_already_are_not_kept(tmp_path):
    run(ways=[["sum", ""], ["computed", "computed"], [""]]).save(tmp_path / "plain.json")
    assert "ways" not in json.loads((tmp_path / "plain.json").read_text())["run"]


def test_a_copy_may_be_an_average(tmp_path):
    made = run(ways=[["sum", "avg"], ["computed", "computed"], [""]])
    made.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json").ways(0) == ["sum", "avg"]


@pytest.mark.parametrize(
    "ways",
    [
        {"0": ["max", "max"]},  # of a copy
        {"0": ["", ""]},  # nothing of a reduce
        {"1": ["", "computed"]},  # nothing of a new
        {"1": ["computed"]},
        {"0": [3, ""]},
        {"7": ["max"]},
    ],
    ids=range(6),
)
def test_a_file_that_says_what_cannot_be_of_a_transfer_is_refused(tmp_path, ways):
    with pytest.raises(ValueError, match="not a file that"):
        rewritten(tmp_path, lambda kept: kept.update(ways=ways))


@pytest.mark.parametrize("clock", [[[2], 0, 0], [[0], 0.5, 0], [[0], 0, -1], [[0], 0]], ids=range(4))
def test_a_file_with_a_clock_that_cannot_be_is_refused(tmp_path, clock):
    with pytest.raises(ValueError, match="not a file that"):
        rewritten(tmp_path, lambda kept: kept.update(clocks=[clock]))


def test_an_older_file_has_the_line_in_the_words_of_the_call(tmp_path):
    loaded = rewritten(tmp_path, lambda kept: kept.update(stuck=[[0, 1, "recv, line 7"]]))
    assert loaded.stuck == ((0, 1, "recv, line 7", 0),)


@pytest.mark.parametrize("wait", [[0, 2, "recv", 1], [0, 1, 7, 1], [0, 1, "recv", "1"], [0, 1]], ids=range(4))
def test_a_file_in_which_a_rank_waits_for_none_is_refused(tmp_path, wait):
    with pytest.raises(ValueError, match="not a file that"):
        rewritten(tmp_path, lambda kept: kept.update(stuck=[wait]))
