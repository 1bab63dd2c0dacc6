"""A recorded run that went through a file: the same numbers, lines, values and title, in Python and in the Player."""

import pytest

import collectives
from collectives import all_reduce
from launch.replay.recording import Recording
from tests.launch.programs import RINGS, SETUP
from widgets import Player
from widgets.packing import pack

RUN = SETUP + RINGS["chunk views, one scratch"] + "\ndist.all_reduce(x)"


@pytest.fixture(scope="module")
def recording(gang):
    return Recording([answer["recording"] for answer in gang.run(RUN, 3, timeout=60)])


@pytest.fixture
def loaded(recording, tmp_path):
    recording.save(tmp_path / "ring.json")
    return collectives.load(tmp_path / "ring.json")


def test_it_counts_what_was_sent_and_no_built_ins(recording, loaded):
    assert loaded.counts() == recording.counts() == all_reduce.ring(3).counts(nbytes=24)
    assert loaded.built_ins == recording.built_ins == (("all_reduce", 24, 3),)
    assert (loaded.lonely, loaded.dropped) == (recording.lonely, recording.dropped)
    with pytest.raises(TypeError, match="call counts\\(\\) without nbytes"):
        loaded.counts(nbytes=24)


def test_the_player_is_given_the_same_picture(recording, loaded):
    assert pack(loaded) == pack(recording)
    assert pack(loaded)[1]["sources"][0] and pack(loaded)[1]["values"][0] and pack(loaded)[1]["start_values"]
    assert Player(loaded).summary() == Player(recording).summary() and "your run" in Player(loaded).summary()


def test_what_is_proved_of_the_run_is_proved_of_the_file(gang, tmp_path):
    run = Recording([a["recording"] for a in gang.run(SETUP + RINGS["rows of a matrix"], 3, timeout=60)])
    run.save(tmp_path / "ring.json")
    loaded = collectives.load(tmp_path / "ring.json")
    assert (loaded.collective, loaded.algorithm, loaded.title) == ("all_reduce", "ring", "your run: all_reduce ring")
    assert loaded.check() is None and loaded.states(-1) == run.states(-1)


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
