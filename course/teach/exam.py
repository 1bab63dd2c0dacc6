"""`ringside exam SEED [FOLDER] [--variants 3]`: an exam of 60 minutes, as a notebook for students and a key for you.

It has six multiple-choice or true-or-false questions, five numbers to compute, and two functions to write; no two
questions are from the same chapter. It has 60 points, one a minute. SEED is any text of 12 characters or more; the same
text gives the same exam, and the course is public, so keep it as you keep the exam. Without one a seed is drawn and
printed.

`check.export` hands in every function solved on an account, also before the exam, so the functions are marked in the
notebook; `ringside handed-in FOLDER --judge` only helps.

With --variants the same questions come with other numbers and their choices in another order (variants.py), and the
functions ask for something else (course/exercises/variants.py).

Left out: questions that need the chapter around them.
"""

import hashlib
import secrets
import sys
from pathlib import Path
from random import Random

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course.chapters import notebooks
from course.exercises import EXERCISES
from course.pack.paper import right
from course.pages import to_html
from course.questions import CHAPTERS, QUESTIONS
from course.questions.question import Choose, Number, Question, Statement
from course.teach import homework, variants
from course.teach.quantity import quantity

SHORTEST = 12
"""Characters of a seed: the exams of all short ones could be made and learned."""

CHOSEN, CHOSEN_POINTS = 6, 3
COMPUTED, COMPUTED_POINTS = 5, 4
WRITTEN_POINTS = 11  # for each of two
MILESTONE = 2  # points for each hint that a function follows that is not right

TO_CHOOSE = (
    "forgotten alike some_rank_sends_63 rank_2_raises rank_21 same_seed free_after_send gather_busiest thousand_ranks "
    "choose_nan choose_gradients few_bytes_win groups_who_calls topology_myth_threshold compose_scatter_gather "
    "dp_no_sync dp_who_is_slow dp_hook_order tp_myth_batch xla_partial experts_capacity clinic_timeout "
    "clinic_killed cluster_interface cluster_power cap_qkv interview_checkpoint"
).split()

TO_COMPUTE = (
    "messages_in_all broadcast_bytes broadcast_tree scatter_root reduce_value all_gather_sends reduce_scatter_value "
    "ring_many_ranks long_message estimate_gradients groups_rank_5 dp_per_parameter sharding_bytes_per_parameter "
    "estimate_sharded_memory tp_layer_bytes pipe_slots pipe_how_many pipe_boundary_bytes experts_skew cluster_rank "
    "cap_first_loss interview_split interview_overlap"
).split()

TO_WRITE = (
    ("shift", "ring_all_gather", "pairwise_all_to_all", "recursive_doubling_all_reduce"),
    ("distributed_argmax", "distributed_softmax", "clip_norm"),
)
"""By messages, and by built-ins. No chapter asks more than 11 minutes for one of them."""

TITLE = """# Exam{number}

60 minutes, 60 points. Write below each question what you answer and **why**: without a reason it counts less. Paper and
your own notes are allowed, the chapters are not. Run the first cell now, and the last one at the end: it writes the
file that you hand in, together with this notebook."""
MARK_THE_CELL = """Mark the functions in the notebook that each student handed in. `ringside handed-in FOLDER --judge`
judges the last version that passed on that account, which can be from before the exam."""
STEPS = "The steps are those of the chapter's variant; where this one differs, the solution below decides."
ANSWER = "My answer: \n\nBecause: "


def chosen(seed: str) -> tuple[list[str], list[str]]:
    """The names of the questions and of the exercises that a seed stands for."""
    random = Random(hashlib.sha256(seed.encode()).digest())
    names: list[str] = []
    for count, among in (CHOSEN, TO_CHOOSE), (COMPUTED, TO_COMPUTE):
        for name in random.sample(among, len(among)):
            if count and all(_chapter(name) != _chapter(other) for other in names):
                names.append(name)
                count -= 1
    return names, [random.choice(group) for group in TO_WRITE]


def _chapter(question: str) -> str:
    return next(name for name, module in CHAPTERS.items() if QUESTIONS[question] in module.QUESTIONS)


def points(question: Question) -> int:
    return COMPUTED_POINTS if isinstance(question, Number) else CHOSEN_POINTS


def asked(seed: str, variant: int) -> list[Question]:
    """The questions of a variant, from 1."""
    return [variants.variant(QUESTIONS[name], variant) for name in chosen(seed)[0]]


def exam(seed: str, variant: int = 1, number: str = "") -> nbformat.NotebookNode:
    """The students' notebook; `number` is how it calls its variant."""
    questions, written = asked(seed, variant), chosen(seed)[1]
    cells = [
        new_markdown_cell(TITLE.format(number=number)),
        new_code_cell("%load_ext launch\nfrom course import check"),
    ]
    for place, question in enumerate(questions, start=1):
        cells += [new_markdown_cell(_asked(place, question)), new_markdown_cell(ANSWER)]
    for place, name in enumerate(written, start=len(questions) + 1):
        task = homework.task(name, variant)
        asks = f"## {place} ({WRITTEN_POINTS} points)\n\nWrite `{name}`: {task.asks}."
        stub = homework.stub(name) if number else _stub(name)
        cells += [new_markdown_cell(asks), new_code_cell(stub), new_code_cell(f'check("{task.key}")')]
    cells += [new_markdown_cell("## Hand in"), new_code_cell('check.export("YOUR_NAME.json")')]
    for place, cell in enumerate(cells):
        cell.id = f"exam-{place:02}"
    return new_notebook(cells=cells)


def _asked(number: int, question: Question) -> str:
    text = f"## {number} ({points(question)} points)\n\n{question.text}"
    match question:
        case Choose(answers=answers):
            return "\n".join([text, "", *(f"{place}. {each.text}" for place, each in enumerate(answers, start=1))])
        case Statement():
            return f"{text}\n\nTrue or false?"
        case Number(unit=unit, p=p):
            return f"{text}\n\nIn {unit}{f', with p = {p}' if p else ''}." if unit else text
    raise TypeError(f"{question.name} cannot be asked on paper")


def _stub(name: str) -> str:
    """The cell that the chapter has for it: the last one that defines it before its check."""
    for path in notebooks():
        sources = [cell.source for cell in nbformat.read(path, as_version=4).cells]
        if f'check("{name}")' in sources:
            before = sources[: sources.index(f'check("{name}")')]
            stub = next(source for source in reversed(before) if f"\ndef {name}(" in source)
            return "%%ranks 4\n" + stub.partition("\n")[2]
    raise LookupError(name)


def key(seed: str, variant: int = 1, number: str = "") -> str:
    """What is right and how it is marked, in Markdown."""
    questions, written = asked(seed, variant), chosen(seed)[1]
    parts = [f"# Key to the exam{number} `{seed}`\n\nA point a minute. Halves may be given.\n\n{MARK_THE_CELL}"]
    parts += [_marked(place, question) for place, question in enumerate(questions, start=1)]
    for place, name in enumerate(written, start=len(questions) + 1):
        steps = "\n".join(f"- {hint}" for hint in EXERCISES[name].hints)
        task = homework.task(name, variant)
        ours, differs = homework.solution(task).strip(), f"\n\nIt asks: {task.asks}. {STEPS}" * (variant > 1)
        parts.append(
            f"## {place}: `{name}` ({WRITTEN_POINTS})\n\n{WRITTEN_POINTS} if the function in the notebook is right. "
            f"If not, {MILESTONE} for each of these that it follows.{differs}\n\n{steps}\n\n"
            f"```python\n{ours}\n```"
        )
    return "\n\n".join(parts) + "\n"


def _marked(number: int, question: Question) -> str:
    answer, why = right(question)
    for_why = points(question) - 2
    lines = [f"## {number}: {question.name} ({points(question)})", question.text]
    lines += [f"2 for the answer: **{answer}**", f"{for_why} for the reason: {why}"]
    match question:
        case Choose():
            others = [each for place, each in enumerate(question.answers) if place != question.right]
        case Number(wrong=wrong):
            others = list(wrong)
            lines[2] = f"2 for the answer: **{_shown(question, question.right.text)}** {question.unit}".rstrip()
            lines[2] += f", within {question.within:.0%}" if question.within else ""
        case _:
            others = []
    if others:
        lines.append("Nothing for these, unless the reason beside it is sound and only a slip led there (1):")
        lines.append("\n".join(f"- {_shown(question, each.text)}: {each.why}" for each in others))
    return "\n\n".join(lines)


def _shown(question: Question, answer: str) -> str:
    """An answer as the key shows it: a formula with the number that it gives."""
    if not isinstance(question, Number):
        return answer.rstrip(".")
    value = quantity(answer, question.unit, question.p)
    return f"`{answer}`" if value is None or answer == f"{value:.6g}" else f"`{answer}` = {value:.6g}"


def main(seed: str | None, folder: Path, count: int = 1) -> int:
    """Write the notebook and the key of each variant into the folder."""
    if not 1 <= count <= variants.MOST:
        print(f"there are up to {variants.MOST} variants: say --variants {variants.MOST}", file=sys.stderr)
        return 2
    if seed is not None and len(seed) < SHORTEST:
        print(f"the seed is too easy to guess: write {SHORTEST} characters or more, or none", file=sys.stderr)
        return 2
    drawn = seed or secrets.token_hex(8)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for variant in range(1, count + 1):
            end, number = (f"_{variant}", f" {variant}") if count > 1 else ("", "")
            given = nbformat.writes(exam(drawn, variant, number)) + "\n"
            (folder / f"exam{end}.ipynb").write_text(given, encoding="utf-8")
            told = to_html(key(drawn, variant, number))
            page = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Key</title>\n{told}</html>\n'
            (folder / f"key{end}.html").write_text(page, encoding="utf-8")
    except OSError as error:
        print(f"nothing can be written to {folder}: {error.strerror}; name another folder", file=sys.stderr)
        return 1
    end = f"_1 to _{count}" if count > 1 else ""
    print(f"for students: {folder / f'exam{end}.ipynb'}\nfor you:      {folder / f'key{end}.html'}, seed {drawn}")
    return 0
