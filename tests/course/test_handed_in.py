"""What a class hands in is not what one hoped for: links, pipes, huge files, names and numbers that forge the table."""

import json
import os

import pytest

from course import ringside
from course.exercises import EXERCISES
from course.questions import QUESTIONS
from course.questions.question import Number
from course.teach import alike, class_page, handed_in, regrade
from course.teach.quantity import is_right

NEEDS_ITS_PICTURE = "broadcast_tree"
HONEST = {"exercises": {"swap": {"attempts": 2, "solved": "x"}}, "answers": {}, "functions": {}}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "handed in"
    folder.mkdir()
    (folder / "anna.json").write_text(json.dumps(HONEST))
    return folder


def link(path):
    (path.parent.parent / "elsewhere.json").write_text(json.dumps(HONEST))
    path.symlink_to(path.parent.parent / "elsewhere.json")


def loop(path):
    path.symlink_to(path)


def huge(path):
    with open(path, "wb") as file:
        file.truncate(2**40)


def deep(path):
    path.write_text('{"exercises": ' + "[" * 200_000)


def no_text(path):
    path.write_bytes(b"\xff\xfe{}")


MADE = [link, loop, os.mkfifo, os.mkdir, huge, deep, no_text]


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_what_is_no_plain_file_is_named_and_the_others_are_read(folder, make, capsys):
    make(folder / "ben.json")
    assert handed_in.main([str(folder)]) == 1
    out, err = capsys.readouterr()
    assert err == "ben.json is no file of check.export\n"
    assert [line.split()[0] for line in out.splitlines()] == ["who", "anna"]


def test_what_is_skipped_is_named_in_one_line(folder, capsys, monkeypatch):
    for name in ["ben.JSON", "carl\n.ipynb", ".DS_Store", "class.html"]:
        (folder / name).write_text(json.dumps(HONEST))
    assert handed_in.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err == "not read, because the name does not end in .json: ben.JSON, carl?.ipynb, class.html\n"

    def at_once(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(class_page.keep_up, "__defaults__", (at_once,))
    handed_in.main([str(folder), f"--page={folder / 'class.html'}"])
    assert "Not read: ben.JSON, carl?.ipynb<" in (folder / "class.html").read_text()


def test_a_name_cannot_forge_a_line_of_the_table(folder, capsys):
    (folder / "ben\ncarl  53 of 53\x1b[2J.json").write_text(json.dumps(HONEST))
    handed_in.main([str(folder)])
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2 and "\x1b" not in out + err and len(err.splitlines()) == 1


def test_numbers_that_are_none_are_not_added_up(folder, capsys):
    works = {"swap": {"attempts": int("9" * 4000), "hints": [*range(5000)]}, "shift": {"attempts": -5}}
    (folder / "ben.json").write_text(json.dumps(HONEST | {"exercises": works}))
    assert handed_in.main([str(folder)]) == 0
    hints = len(EXERCISES["swap"].hints)
    assert capsys.readouterr().out.splitlines()[2].split()[4:6] == [str(handed_in.MOST), str(hints)]


def test_a_name_is_no_formula_of_a_spreadsheet(folder, capsys):
    (folder / "=1+1.json").write_text(json.dumps(HONEST))
    handed_in.main([str(folder), "--csv"])
    assert "\n'=1+1,swap" in capsys.readouterr().out.replace("\r", "")


def test_a_function_that_is_huge_or_deep_stops_nobody(folder, capsys, monkeypatch):
    functions = {"swap": "x" * (handed_in.LONGEST + 1), "shift": "(" * 5000}
    (folder / "ben.json").write_text(json.dumps(HONEST | {"functions": functions}))
    _, _, texts, long, others = handed_in.read(folder)
    assert texts["ben"] == {"shift": functions["shift"]} and long["ben"] == ["swap"] and not others
    assert alike.nodes("-" * 9000 + "1") == alike.nodes(functions["shift"]) == ()
    monkeypatch.setattr(regrade, "judged", lambda functions, front: dict.fromkeys(functions, "SyntaxError"))
    for flags in [], ["--judge"]:
        handed_in.main([str(folder), *flags])
        about_swap = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ben, swap")]
        assert about_swap == [
            "ben, swap: its function has more than 10,000 characters: it is neither judged nor compared"
        ]
    handed_in.main([str(folder), "--judge", "--csv"])
    assert 'ben,swap,1,2,0,0,"its function has more than' in capsys.readouterr().out


def test_a_verdict_that_is_none_does_not_stop_the_judge(monkeypatch):
    written = 'nonsense\n[1]\n{"swap": "", "another": ""}\n'
    monkeypatch.setattr(regrade.subprocess.Popen, "communicate", lambda self, *_, **__: (written, None))
    monkeypatch.setattr(regrade, "ROOT", "/nowhere")
    assert regrade.judged({"swap": "", "shift": ""}, []) == {
        "swap": "",
        "shift": "it was not judged: the time was over, or it ended the judge",
    }


def test_the_page_of_the_class_is_written_anew_until_ctrl_c(folder, tmp_path, monkeypatch):
    page, seen = tmp_path / "class.html", []

    def meanwhile(seconds):
        seen.append(page.read_text())
        if len(seen) == 2:
            raise KeyboardInterrupt
        tried = {"exercises": {"shift": {"attempts": 3}}}
        (folder / "<b>.json").write_text(json.dumps(HONEST | tried))
        link(folder / "carl.json")

    monkeypatch.setattr(class_page.keep_up, "__defaults__", (meanwhile,))
    assert ringside.main(["handed-in", str(folder), "--page", str(page)]) == 0
    assert "1 students" not in seen[0] and "anna" in seen[0] and 'http-equiv="refresh"' in seen[0]
    assert "2 students" in seen[1] and "&lt;b&gt;" in seen[1] and "<b>" not in seen[1]
    assert "shift (1)" in seen[1] and "Not read: carl.json" in seen[1]


@pytest.mark.parametrize("page", ["/nowhere/class.html", ".", "/", ""])
def test_a_page_that_cannot_be_written_is_said(folder, capsys, page):
    assert handed_in.main([str(folder), f"--page={page}"]) == 1
    assert "name another file" in capsys.readouterr().err


def test_a_folder_that_disappears_is_said(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(class_page.keep_up, "__defaults__", (lambda _: folder.rename(tmp_path / "moved"),))
    assert handed_in.main([str(folder), f"--page={tmp_path / 'class.html'}"]) == 1
    assert capsys.readouterr().err == f"{folder} cannot be read: No such file or directory\n"


def test_a_claim_that_cannot_be_graded_does_not_count():
    claimed = [{"said": "6", "right": True}]
    names = [NEEDS_ITS_PICTURE, *(f"made up {number}" for number in range(1000))]
    assert handed_in.predicted(dict.fromkeys(names, claimed)) == (0, 0)


@pytest.mark.parametrize("name", [name for name, each in QUESTIONS.items() if isinstance(each, Number)])
def test_numbers_are_graded_without_their_picture(name):
    right = is_right(QUESTIONS[name], QUESTIONS[name].right.text)
    assert right is (None if name == NEEDS_ITS_PICTURE else True)
