"""The file that remembers what is solved: whatever stands in it, nothing raises and nothing is lost."""

import csv
import json

import pytest

from course import memory
from course.ask import for_browser
from course.exercises import EXERCISES
from course.questions import QUESTIONS
from course.questions.question import Click, Order, Statement
from course.teach import handed_in

ALL = len(EXERCISES)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where the progress is kept; nothing on the way there exists yet."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "ringside" / "progress.json"


def shown(capsys) -> list[str]:
    memory.show()
    return capsys.readouterr().out.splitlines()


def test_before_anything_is_solved(file, capsys):
    lines = shown(capsys)
    assert lines[0] == "  open  pass_it_on" and lines[-1] == f"0 of {ALL} solved" and not file.exists()


def test_what_is_solved_stays_solved(file, capsys):
    memory.solved("shift", "def shift(x): ...")
    memory.solved("my_share", "def my_share(x): ...")
    first = json.loads(file.read_text())["shift"]
    memory.solved("shift", "def shift(x): return x")
    assert json.loads(file.read_text())["shift"] == first, "the first one counts"
    lines = shown(capsys)
    assert "  done  shift" in lines and "  open  swap" in lines and lines[-1] == f"2 of {ALL} solved"
    assert sorted(path.name for path in file.parent.iterdir()) == ["progress.json", "solved"]
    assert (file.parent / "solved" / "shift.py").read_text() == "def shift(x): return x", "later cells run the last one"


def test_attempts_and_hints_are_counted(file):
    memory.attempted("shift")
    memory.hinted("shift", 2)
    memory.hinted("shift", 1)
    memory.hinted("shift", 2)
    memory.attempted("shift")
    memory.looked_up("shift")
    assert memory.kept() == {"shift": {"attempts": 2, "hints": [1, 2], "solution": True, "solved": ""}}


SPOILT = ["nonsense", "", "[[1]]", "null", "3", '{"a": 1}', '["shift"', "\udc80", '{"swap": {"solved": 3, "hints": 0}}']


@pytest.mark.parametrize("text", SPOILT)
def test_a_spoilt_file_counts_as_none_and_is_replaced(file, capsys, text):
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert shown(capsys)[-1] == f"0 of {ALL} solved"
    memory.solved("swap", "def swap(x): ...")
    memory.hinted("swap", 1)
    assert "swap" in json.loads(file.read_text()) and shown(capsys)[-1] == f"1 of {ALL} solved"


def test_names_of_another_version_are_kept_and_not_counted(file, capsys):
    file.parent.mkdir(parents=True)
    work = {"attempts": 1, "hints": [], "solution": False, "solved": "0" * 64}
    file.write_text(json.dumps({"moe_dispatch": work, "shift": work}))
    memory.solved("swap", "def swap(x): ...")
    assert list(json.loads(file.read_text())) == ["moe_dispatch", "shift", "swap"]
    assert shown(capsys)[-1] == f"2 of {ALL} solved"


def test_a_place_that_cannot_be_written_to_costs_only_the_memory(file, capsys):
    file.parent.parent.mkdir()
    file.parent.write_text("a file where the folder should be")
    memory.solved("swap", "def swap(x): ...")
    assert capsys.readouterr().out == "(Your progress could not be kept in progress.json: File exists.)\n"
    assert shown(capsys)[-1] == f"0 of {ALL} solved"


def test_an_interrupted_write_loses_nothing(file, monkeypatch):
    memory.solved("swap", "def swap(x): ...")
    monkeypatch.setattr(type(file), "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    memory.solved("shift", "def shift(x): ...")
    assert list(json.loads(file.read_text())) == ["swap"]


def test_a_class_hands_in_and_is_read_as_one_table(file, tmp_path, capsys):
    """anna has solved two, ben one of them with the same text, and carl's file is no such file."""
    folder = tmp_path / "handed in"
    folder.mkdir()
    memory.attempted("swap")
    memory.solved("swap", "def swap(x): ...")
    memory.export(str(folder / "ben.json"))
    memory.attempted("shift")
    memory.hinted("shift", 3)
    memory.solved("shift", "def shift(x): ...")
    given = [("shift_steps", "9", False), ("shift_steps", "1", True), ("alike", "true", True), ("drift", None, False)]
    for name, said, right in given:
        memory.answered(name, said, right)
    memory.export(str(folder / "anna.json"))
    (folder / "carl.json").write_text("[]")
    (folder / "notes.txt").write_text("no table")
    capsys.readouterr()
    assert handed_in.main([str(folder)]) == 1
    out, err = capsys.readouterr()
    head, anna, ben, same = out.splitlines()
    assert head.split()[:4] == ["who", "solved", "checks", "hints"]
    assert anna.startswith(f"anna   2 of {ALL}      2      1          0     1 of 2  pass_it_on, my_share")
    assert (
        ben.startswith(f"ben    1 of {ALL}      1      0          0     0 of 0  pass_it_on, my_share")
        and "shift" in ben
    )
    assert same == "swap: anna and ben handed in the same function, letter for letter"
    assert err.splitlines() == [
        "carl.json is no file of check.export",
        "not read, because the name does not end in .json: notes.txt",
    ]
    handed_in.main([str(folder), "--csv"])
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 2 * ALL
    assert [r for r in rows if (r["who"], r["exercise"]) == ("anna", "shift")] == [
        {"who": "anna", "exercise": "shift", "solved": "1", "attempts": "1", "hints": "1", "solution": "0"}
        | {"judged again": ""}
    ]


def test_what_was_predicted_wrong_is_told_by_topic(file, capsys, monkeypatch):
    """The last answer counts, and what was skipped is none; a spoilt file of answers counts as none and is replaced."""
    asked = {"bytes": "cost", "seconds": "cost", "blocks": "send"}
    questions = {name: Statement(name=name, topic=topic, text="", true=True, why="") for name, topic in asked.items()}
    monkeypatch.setattr(memory, "QUESTIONS", questions)
    file.parent.mkdir(parents=True)
    file.with_name("answers.json").write_text('{"bytes": 3, "seconds": [{"said": 4}]}')
    given = [("bytes", "4 MB", False), ("seconds", "3 ms", False), ("seconds", "5 ms", True), ("blocks", None, False)]
    for name, said, right in [*given, ("blocks", "true", True), ("of another version", "no", False)]:
        memory.answered(name, said, right)
    told = "1 of 3 predicted wrong; to be asked again: from course import again, then again()"
    assert shown(capsys)[-2:] == ['  cost  1 of 2 wrong: ask("bytes")', told]
    assert memory.answers()["seconds"] == [{"said": "3 ms", "right": False}, {"said": "5 ms", "right": True}]


@pytest.mark.parametrize("path", ["", "anna", 3, None, ".json", "/nowhere/anna.json"])
def test_an_export_that_cannot_be_is_said(file, capsys, path):
    memory.export(path)
    assert "check.export wants a file" in (out := capsys.readouterr().out) or out.startswith("Nothing was written")


def test_where_the_hub_names_a_file_export_without_a_name_hands_in(file, tmp_path, capsys, monkeypatch):
    (place := tmp_path / "handed in").mkdir()
    (place / "anna.json").write_text('{"exercises": {}}')  # as the hub makes it
    monkeypatch.setenv(memory.HAND_IN, str(place / "anna.json"))
    assert handed_in.read(place)[0] == {"anna": {}}
    memory.solved("shift", "def shift(x): ...")
    memory.export()
    assert "Handed in: " in capsys.readouterr().out and handed_in.read(place)[0]["anna"]["shift"]["solved"]
    memory.export(str(tmp_path / "mine.json"))
    assert "mine.json is written; hand it in" in capsys.readouterr().out


def test_on_a_hub_a_button_below_the_progress_hands_in(file, tmp_path, monkeypatch):
    (place := tmp_path / "handed in").mkdir()
    displayed = []
    monkeypatch.setattr(memory, "display", displayed.append)
    memory.show()
    assert displayed == []
    monkeypatch.setenv(memory.HAND_IN, str(place / "anna.json"))
    memory.show()
    memory.solved("shift", "def shift(x): ...")
    displayed[0].children[0].click()
    assert handed_in.read(place)[0]["anna"]["shift"]["solved"]


ORDERED = next(name for name, each in QUESTIONS.items() if isinstance(each, Order))
RIGHT_ORDER = ", ".join(str(place + 1) for place in for_browser(QUESTIONS[ORDERED])["order"])
CLICKED = next(name for name, each in QUESTIONS.items() if isinstance(each, Click))


@pytest.mark.parametrize(
    ("name", "said", "right"),
    [("drift", QUESTIONS["drift"].answers[2].text, True), ("drift", "x", False), ("alike", "true", True)]
    + [
        ("shift_of_a_colleague", f"line {QUESTIONS['shift_of_a_colleague'].right[0]}", True),
        ("shift_steps", "1 step", True),
        ("shift_steps", "9", False),
        ("long_message", "2.02 ms", True),
        ("long_message", "2.02", False),
        (ORDERED, RIGHT_ORDER, True),
        (ORDERED, ", ".join(RIGHT_ORDER.split(", ")[::-1]), False),
        (CLICKED, "", True),
    ],
)
def test_an_answer_is_judged_again_whatever_the_file_claims(name, said, right):
    """Except for clicks on a picture, which is not there."""
    claim = right if name == CLICKED else not right
    told = handed_in.table({"anna": {}}, {"anna": {name: [{"said": said, "right": claim}]}})[1]
    assert f"{int(right)} of 1" in told


def test_a_folder_that_is_none_is_said(tmp_path, capsys):
    assert handed_in.main([str(tmp_path / "nowhere")]) == 2
    assert handed_in.main([str(tmp_path)]) == 1
    assert "There is no file of check.export" in capsys.readouterr().err
