"""A recorded run that went through a file: the same numbers, lines, values and title, in Python and in the Player."""

import json
import re

import pytest

import collectives
from collectives import all_reduce, timed
from collectives.errors import ScheduleError
from tests.launch.programs import RINGS, SETUP
from widgets import Player, Timeline
from widgets._packing import pack

RUN = SETUP + RINGS["chunk views, one scratch"] + "\ndist.all_reduce(x)"
EACH = ("calls", "ranks", "cut")  # all that a Timeline sends to the browser


@pytest.fixture(scope="module")
def recording(recorded):
    return recorded(RUN, 3)


@pytest.fixture
def loaded(recording, tmp_path):
    recording.save(tmp_path / "ring.json")
    return collectives.load(tmp_path / "ring.json")


def test_it_counts_what_was_sent_and_no_built_ins(recording, loaded):
    assert loaded.counts() == recording.counts() == all_reduce.ring(3).counts(nbytes=24)
    assert loaded.built_ins == recording.built_ins == (("all_reduce", 24, 3),)
    assert (loaded.unmatched, loaded.dropped) == (recording.unmatched, recording.dropped)
    with pytest.raises(TypeError, match="call counts\\(\\) without nbytes"):
        loaded.counts(nbytes=24)


def test_the_player_is_given_the_same_picture(recording, loaded):
    assert pack(loaded) == pack(recording)
    assert pack(loaded)[1]["sources"][0] and pack(loaded)[1]["values"][0] and pack(loaded)[1]["start_values"]
    assert Player(loaded).summary() == Player(recording).summary() and "your run" in Player(loaded).summary()


def test_what_is_proved_of_the_run_is_proved_of_the_file(recorded, tmp_path):
    run = recorded(SETUP + RINGS["rows of a matrix"], 3)
    run.save(tmp_path / "ring.json")
    loaded = collectives.load(tmp_path / "ring.json")
    assert (loaded.collective, loaded.algorithm) == ("all_reduce", "ring")
    assert loaded.title == "your run: all_reduce ring of x into y"
    assert loaded.check() is None and loaded.states(-1) == run.states(-1)


def test_what_a_file_no_longer_knows_is_said(loaded):
    with pytest.raises(ScheduleError, match=r"call launch.recording\(\).as_if\(...\) before you save"):
        loaded.as_if(all_reduce="ring")
    with pytest.raises(ScheduleError, match=r"call launch.recording\(\).part\(first, last\) before you save"):
        loaded.part(1, 2)


def test_a_saved_file_can_be_saved_again(loaded, tmp_path):
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "ring.json").read_bytes()


def test_it_becomes_a_page_that_plays_without_jupyter(loaded, tmp_path, browser):
    """With values and lines, and no request to anywhere."""
    Player(loaded, step=1).save_html(tmp_path / "ring.html")
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "ring.html").as_uri())
    page.wait_for_function("window.model")
    page.focus(".rs-scrub input")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("model.get('step')") == 2
    assert "dist.isend(" in page.inner_text(".rs-player") and "your run" in page.inner_text(".rs-title")
    page.close()
    assert all(url.startswith(("file:", "blob:", "data:")) for url in asked)


def test_the_timeline_is_given_the_same_bars(recording, loaded):
    """To the nanosecond, with the same calls of all ranks together."""
    here, there = ({name: getattr(Timeline(run), name) for name in EACH} for run in (recording, loaded))
    assert here == there and repr(Timeline(loaded)) == repr(Timeline(recording)) == "Timeline(ranks=3, events=27)"
    assert {call["label"] for call in there["calls"]} >= {"all_reduce #1 of world", "message #4 from rank 2 to rank 0"}


def test_a_file_tells_how_long_calls_took_and_neither_when_nor_where(recording, tmp_path):
    recording.save(tmp_path / "ring.json")
    text = (tmp_path / "ring.json").read_text()
    run = json.loads(text)["run"]
    times = [time for call in run["calls"]["calls"] for time in call[6:] if time is not None]
    assert min(times) == 0 and max(times) < 60e9, "nanoseconds since the first call: this run took under a minute"
    assert not re.search(r"/\w+/|\.py\b|0x[0-9a-f]{6}|127\.0|\b20\d\d-", text)


def test_a_call_costs_a_file_about_a_hundred_bytes(recording):
    kept = json.dumps(timed.packed(recording.events * 100))
    assert len(kept) < 110 * 100 * len(recording.events)


def test_a_file_from_before_files_had_times_still_loads_and_says_so(recording, tmp_path):
    recording.save(tmp_path / "ring.json")
    old = json.loads((tmp_path / "ring.json").read_text())
    del old["run"]["calls"]
    (tmp_path / "old.json").write_text(json.dumps(old, ensure_ascii=False))
    loaded = collectives.load(tmp_path / "old.json")
    assert pack(loaded) == pack(recording)
    with pytest.raises(TypeError, match="was saved before files held times"):
        Timeline(loaded)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "old.json").read_bytes()


WRONG = {  # place in a call's row -> what cannot stand there
    0: 3,
    1: None,
    2: -1,
    3: 1.5,
    4: 99,
    5: "all",
    6: None,
    10: -7,
    11: 0.25,
}


@pytest.mark.parametrize("place", WRONG)
def test_a_file_with_a_call_that_cannot_be_is_refused(recording, tmp_path, place):
    recording.save(tmp_path / "ring.json")
    wrong = json.loads((tmp_path / "ring.json").read_text())
    row = wrong["run"]["calls"]["calls"][0]
    row[place : place + 1] = [WRONG[place]]
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    with pytest.raises(ValueError, match="not a file that"):
        collectives.load(tmp_path / "wrong.json")
