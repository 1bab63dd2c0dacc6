"""A schedule that went through a file is the same schedule: every algorithm; and what is told of other files.

What a recorded run keeps is in tests/launch/test_saved_run.py.
"""

import json
import tracemalloc

import pytest
from every import NAMES, schedules

from collectives import Schedule, ScheduleError, Transfer, all_reduce, load, saved


def told(schedule):
    """All that a schedule says of itself."""
    names = ("collective", "algorithm", "ranks", "chunks", "root", "buffers", "result", "title", "chunk_bytes")
    steps = [(step.phase, step.caption, step.transfers, step.sources) for step in schedule.steps]
    return [str(getattr(schedule, name)) for name in names], steps, repr(schedule)


@pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)
def test_every_algorithm_comes_back_as_it_was(collective, algorithm, tmp_path):
    for schedule in (made for ranks in (2, 4, 6) for made in schedules(collective, algorithm, ranks)[-1:]):
        schedule.save(tmp_path / "a.json")
        back = load(tmp_path / "a.json")
        assert told(back) == told(schedule)
        assert back.check() is None and back.start() == schedule.start()
        if len(schedule.steps):
            assert back.states(-1) == schedule.states(-1)
        assert back.counts(nbytes=960) == schedule.counts(nbytes=960)


def test_a_wrong_schedule_comes_back_as_wrong_as_it_was(tmp_path):
    steps = [("copy", "One.", [Transfer(0, 7, 0)])]
    Schedule.from_steps("all_reduce", "mine", 2, 2, steps).save(tmp_path / "wrong.json")
    with pytest.raises(ScheduleError, match="rank 0 sends chunk 0 to rank 7, but the ranks are 0 to 1"):
        load(tmp_path / "wrong.json").check()


def changed(**fields):
    """The text of a good file with these fields changed."""
    described = {
        "ringside": 1, "collective": "all_reduce", "algorithm": "mine", "ranks": 1, "chunks": 1, "root": None,
        "buffers": ["data"], "result": "data", "chunk_bytes": None, "start": {"data": [[[[0, 0]]]]}, "goal": None,
        "steps": [["copy", "One.", [[0, 0, 0, "copy", 1, 0, "data", "data"]], []]],
    }  # fmt: skip
    return json.dumps(described | fields)


TWO = {"ranks": 2, "start": {"data": [[[[0, 0]]], [[[1, 0]]]]}}
MADE = [["new", "One.", [[0, 0, 70, "new", 1, 0, "data", "data"]], []]]


@pytest.mark.parametrize("fields", [{}, TWO, {"steps": MADE}, {"steps": MADE} | TWO], ids=range(4))
def test_the_good_file_is_good(tmp_path, fields):
    (tmp_path / "good.json").write_text(changed(**fields))
    assert len(load(tmp_path / "good.json").steps) == 1


def test_what_a_rank_made_itself_comes_back(tmp_path):
    made = Transfer(1, 1, 70, "new", count=2, dst_chunk=0)
    schedule = Schedule.from_steps("recorded", "mine", 2, 3, [("new", "One.", [made]), ("", "Two.", [])])
    schedule.save(tmp_path / "new.json")
    back = load(tmp_path / "new.json")
    assert told(back) == told(schedule) and back.steps[0].transfers == (made,)
    assert [str(cell) for cell in back.states(-1)[1]["data"]] == ["b70", "b71", "b2"]
    assert back.trace(1, 1, -1) == schedule.trace(1, 1, -1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "3",
        '{"cells": [], "nbformat": 4}',
        b"\x89PNG\r\n\x1a\n\xff",
        "[" * 100_000,
        changed(ringside=2),
        changed(ranks="1"),
        changed(ranks=10**9),
        changed(result="else"),
        changed(start={"data": [[]]}),
        changed(steps=[["copy", "One.", [[0, 0, 0, "divide"]], []]]),
        changed(steps=[["copy", "One.", [[0, 0, 1.5]], []]]),
        changed(steps=[["copy", "One.", [[0, 10**30, 0]], []]]),
        changed(run={"title": "your run"}),
        changed(steps=[["new", "One.", [[0, 0, -1, "new", 1, 0, "data", "data"]], []]]),
        changed(steps=[["new", "One.", [[0, 1, 7, "new", 1, 0, "data", "data"]], []]], **TWO),
        changed(steps=[["new", "One.", [[0, 0, 10**30, "new", 1, 0, "data", "data"]], []]]),
    ],
    ids=range(19),
)
def test_another_file_is_one_clear_sentence(tmp_path, text):
    (tmp_path / "other.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError) as raised:
        load(tmp_path / "other.json")
    words = str(raised.value)
    assert words.startswith("other.json is not a file that Schedule.save or launch.recording().save wrote")
    assert words.endswith("save it again and load that") and "\n" not in words


def test_too_much_for_a_file_is_said_before_memory_is_full(tmp_path):
    with pytest.raises(ValueError, match="more than 1,000,000 transfers"):
        all_reduce.ring(ranks=1024).save(tmp_path / "large.json")
    assert not (tmp_path / "large.json").exists()


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge.json", "wb") as file:
        file.write(b'{"ringside": 1, "steps": [')
        file.truncate(3 * 10**9)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^huge.json is larger than 100 MB, .* that one of them wrote$"):
        load(tmp_path / "huge.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * saved.MOST_BYTES


def test_nothing_is_saved_that_could_not_be_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "MOST_BYTES", 2_000_000)
    all_reduce.ring(ranks=8).save(tmp_path / "small.json")
    assert told(load(tmp_path / "small.json")) == told(all_reduce.ring(ranks=8))
    with pytest.raises(ValueError, match="would be a file of 7 MB, and at most 2 MB can be loaded again"):
        all_reduce.ring(ranks=256).save(tmp_path / "large.json")
    assert not (tmp_path / "large.json").exists()
