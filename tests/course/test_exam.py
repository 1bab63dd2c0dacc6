"""The exam: 60 minutes whatever the seed, one exam a seed, no answers in it, and a notebook that runs."""

import re
from itertools import combinations

import nbformat
import pytest

from collectives import all_gather, all_reduce, broadcast, scatter
from course import ringside
from course.chapters import notebooks
from course.exercises import EXERCISES, TASKS
from course.pack import run
from course.pack.paper import right
from course.questions import QUESTIONS
from course.questions.question import Choose, Number, Statement
from course.teach import exam, solved, variants
from course.teach.quantity import quantity
from course.teach.stated import STATED

SEEDS = [f"a lecture in spring {number}" for number in range(40)]
CLAIM = re.compile(r"\*(?:Easy|Medium|Hard), (\d+) minutes\.\*")


def test_every_exam_has_60_points_and_no_two_questions_of_one_chapter():
    for seed in SEEDS:
        names, written = exam.chosen(seed)
        assert sum(exam.points(QUESTIONS[name]) for name in names) + exam.WRITTEN_POINTS * len(written) == 60, seed
        assert len({exam._chapter(name) for name in names}) == len(names) == exam.CHOSEN + exam.COMPUTED
    for seed in SEEDS[:5]:
        text = nbformat.writes(exam.exam(seed))
        assert sum(map(int, re.findall(r"\((\d+) points\)", text))) == 60, seed


def test_a_seed_is_one_exam_and_another_text_another():
    assert exam.exam(SEEDS[0]) == exam.exam(SEEDS[0]) and exam.key(SEEDS[0]) == exam.key(SEEDS[0])
    assert len({str(exam.chosen(seed)) for seed in SEEDS}) == len(SEEDS)


def test_what_is_chosen_from_is_of_its_kind():
    assert all(isinstance(QUESTIONS[name], Choose | Statement) for name in exam.TO_CHOOSE)
    assert all(isinstance(QUESTIONS[name], Number) for name in exam.TO_COMPUTE)
    assert len({*exam.TO_CHOOSE, *exam.TO_COMPUTE}) == len(exam.TO_CHOOSE) + len(exam.TO_COMPUTE)


def test_no_exercise_of_it_takes_longer_than_its_points():
    cells = [cell for path in notebooks() for cell in nbformat.read(path, as_version=4).cells]
    for name in sum(exam.TO_WRITE, ()):
        at = next(place for place, cell in enumerate(cells) if cell.source == f'check("{name}")')
        text = next(cell.source for cell in reversed(cells[:at]) if CLAIM.search(cell.source))
        assert int(CLAIM.search(text)[1]) <= exam.WRITTEN_POINTS
        assert exam.MILESTONE * len(EXERCISES[name].hints) < exam.WRITTEN_POINTS


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_the_key_tells_what_the_notebook_does_not(seed):
    names, written = exam.chosen(seed)
    given, key = nbformat.writes(exam.exam(seed)), exam.key(seed)
    for name in names:
        assert right(QUESTIONS[name])[1] in key and right(QUESTIONS[name])[1] not in given
    for name in written:
        assert EXERCISES[name].hints[-1] in key and EXERCISES[name].hints[-1] not in given


def test_a_number_without_a_unit_is_asked_without_one():
    asked = [exam._asked(1, QUESTIONS[name]) for name in exam.TO_COMPUTE]
    assert not [text for text in asked if re.search(r"^In [.,]", text, re.MULTILINE)]


def test_the_key_has_the_number_beside_its_formula():
    marked = exam._marked(1, QUESTIONS["dp_per_parameter"])
    assert f"= {16 * (6 * 4e-3 + 1.5 * 262144 / 16e6):.6g}" in marked
    assert "**`2*(p-1)` = 6** messages" in exam._marked(1, QUESTIONS["messages_in_all"])


def test_the_key_says_which_version_of_a_function_is_marked():
    assert "Mark the functions in the notebook" in exam.key(SEEDS[0])


def test_both_are_written_and_every_cell_runs(tmp_path, capsys):
    assert ringside.main(["exam", SEEDS[1], str(tmp_path)]) == 0
    assert SEEDS[1] in capsys.readouterr().out and "Key to the exam" in (tmp_path / "key.html").read_text()
    notebook = nbformat.read(tmp_path / "exam.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert run.fill(notebook) == []
    run.execute(notebook, "exam", "0")
    said = "".join(str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code")
    assert said.count("Solved.") == 2 and "not written" not in said


@pytest.mark.parametrize("seed", ["7", "2026-12"])
def test_a_seed_that_can_be_guessed_is_refused(seed, tmp_path, capsys):
    assert exam.main(seed, tmp_path / "exam") == 2 and not (tmp_path / "exam").exists()
    assert "too easy to guess" in capsys.readouterr().err


def test_no_drawn_seed_looks_like_an_option(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("secrets.token_bytes", lambda count: b"\xfb" * count)  # "-" as base64
    assert exam.main(None, tmp_path) == 0
    assert ringside.main(["exam", capsys.readouterr().out.split()[-1], str(tmp_path)]) == 0


def test_without_a_seed_one_is_drawn_and_said(tmp_path, capsys):
    assert exam.main(None, tmp_path) == 0
    assert exam.key(capsys.readouterr().out.split()[-1]).startswith("# Key")


def value(question):
    return quantity(question.right.text, question.unit, question.p)


@pytest.mark.parametrize("name", variants.VARIED)
def test_a_template_with_the_first_numbers_is_the_question_of_the_chapter(name):
    made, ours = variants.VARIED[name], QUESTIONS[name]
    assert made.text.format(**made.numbers[0]) == ours.text and len(made.numbers) == variants.MOST
    right = quantity(made.right.format(**made.numbers[0]), ours.unit, None)
    expected = 3 if name == "broadcast_tree" else value(ours)  # its p is in the picture
    assert right == pytest.approx(expected, rel=ours.within or 1e-9)


@pytest.mark.parametrize("name", variants.VARIED)
def test_each_variant_has_another_text_and_another_right_answer(name):
    made = [variants.variant(QUESTIONS[name], number) for number in (1, 2, 3)]
    assert len({each.text for each in made}) == 3
    values = [3 if value(each) is None else value(each) for each in made]
    tolerance = QUESTIONS[name].within
    assert all(abs(a - b) > 2 * tolerance * b for a, b in combinations(values, 2))


def test_each_question_of_an_exam_has_three_variants():
    assert all(isinstance(QUESTIONS[name], Choose) or name in STATED for name in exam.TO_CHOOSE)
    assert {*exam.TO_COMPUTE} <= {*variants.VARIED}
    for name in STATED:
        made = [variants.variant(QUESTIONS[name], number) for number in (1, 2, 3)]
        assert len({each.text for each in made}) == 3
        assert {each.true for each in made} == {True, False}, "a neighbour's answer would do"


def counted(schedule):
    return float(schedule.counts(nbytes=1).busiest)


@pytest.mark.parametrize("number", [2, 3])
def test_what_is_right_in_a_variant_is_what_schedules_and_loops_count(number):
    """Each with its numbers, by another way than its formula."""
    numbers = {name: made.numbers[number - 1] for name, made in variants.VARIED.items()}
    p = {name: each.get("p") for name, each in numbers.items()}
    a_sum = {
        name: sum(10 * rank + numbers[name]["k"] for rank in range(p[name]))
        for name in ("reduce_value", "reduce_scatter_value")
    }
    group = range(4) if numbers["groups_rank_5"]["rank"] < 4 else range(4, 8)
    pipe = numbers["pipe_how_many"]
    cluster = numbers["cluster_rank"]
    expected = a_sum | {
        "messages_in_all": all_reduce.naive(p["messages_in_all"]).counts(nbytes=1).messages,
        "broadcast_bytes": counted(broadcast.flat(p["broadcast_bytes"])),
        "broadcast_tree": len(broadcast.binomial(p["broadcast_tree"]).steps),
        "scatter_root": counted(scatter.flat(p["scatter_root"])),
        "all_gather_sends": counted(all_gather.ring(p["all_gather_sends"])),
        "ring_many_ranks": counted(all_reduce.ring(p["ring_many_ranks"])),
        "groups_rank_5": sum(numbers["groups_rank_5"]["times"] * rank for rank in group),
        "pipe_slots": finished(**numbers["pipe_slots"]),
        "pipe_how_many": next(m for m in range(1, 999) if pipe["parts"] * (pipe["p"] - 1) <= m + pipe["p"] - 1),
        "cluster_rank": cluster["rank"] // cluster["gpus"],
        "interview_overlap": max(numbers["interview_overlap"]["other"], numbers["interview_overlap"]["alone"]) / 1000,
    }
    found = {name: value(variants.variant(QUESTIONS[name], number)) for name in expected}
    assert found == pytest.approx(expected, rel=1e-9)


def finished(m, p):
    """When the last stage is through with the last micro-batch, stage by stage."""
    done = [0] * p
    for _ in range(m):
        for stage in range(p):
            done[stage] = max(done[stage], done[stage - 1] if stage else 0) + 1
    return done[-1]


def test_the_functions_of_a_variant_ask_for_something_else():
    for name in chosen_functions():
        asked, checked = TASKS[f"{name}-2"].asks, f'check("{name}-2")'
        cells = [cell.source for cell in exam.exam(SEEDS[1], 2, " 2").cells]
        assert any(asked in cell for cell in cells) and checked in cells
        key = exam.key(SEEDS[1], 2, " 2")
        assert asked in key and solved.solution(f"{name}-2").strip() in key


def chosen_functions():
    return exam.chosen(SEEDS[1])[1]


def test_three_variants_ask_the_same_with_other_numbers_and_each_has_its_key(tmp_path, capsys):
    assert ringside.main(["exam", SEEDS[1], str(tmp_path), "--variants", "3"]) == 0
    assert len(list(tmp_path.iterdir())) == 6 and "exam_1 to _3.ipynb" in capsys.readouterr().out
    for number in (1, 2, 3):
        given, told = (tmp_path / f"exam_{number}.ipynb").read_text(), (tmp_path / f"key_{number}.html").read_text()
        assert f"# Exam {number}" in given and f"Key to the exam {number}" in told
    for questions in zip(*(exam.asked(SEEDS[1], number) for number in (1, 2, 3)), strict=True):
        assert len({each.name for each in questions}) == 1
        if isinstance(questions[0], Choose):
            assert (
                len({each.answers[each.right] for each in questions}) == 1
                and len({each.right for each in questions}) == 3
            )
    assert exam.main(SEEDS[1], tmp_path, 4) == 2 and "up to 3 variants" in capsys.readouterr().err
