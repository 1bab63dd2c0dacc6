"""What a class has handed in, as one table: `ringside handed-in FOLDER` reads what `check.export` wrote there.

A line for each student: how many exercises are solved, with how many checks and hints, how many questions were answered
right at first, and which exercises are open. Below it the functions that are alike (alike.py): a fact, and not
yet a judgement. With `--csv` one line for each student and exercise, for a spreadsheet.

A file can be edited. A link, a pipe or a huge file is named and not read, and so is what does not end in .json.
Answers to questions are graded again, except clicks on the cells of a picture: those count as the file says. `--judge`
judges each function once more on this machine (regrade.py), which takes some ten seconds a student and a few for
each exercise, and says where the verdict is another one.

Left out: a proof that a file is the student's own.
"""

import csv
import json
import os
import stat
import sys
from functools import partial
from pathlib import Path

from course import memory
from course.ask import for_browser
from course.exercises import EXERCISES, TASKS, VARIANTS
from course.questions import QUESTIONS
from course.questions.question import Choose, Click, FindLine, Number, Order, Question, Statement
from course.teach import alike, class_page, homework, regrade
from course.teach.quantity import is_right

COLUMNS = ("who", "exercise", "solved", "attempts", "hints", "solution", "judged again")

LARGEST = 2**20
"""Bytes of a file of `check.export`; with every exercise solved it has a tenth of that."""

LONGEST = 10_000
"""Characters of one function: the longest of ours has a third of that."""

TOO_LONG = f"its function has more than {LONGEST:,} characters: it is neither judged nor compared"

MOST = 9999
"""Checks that are believed of one exercise."""


def read(folder: Path) -> tuple[dict[str, dict], dict[str, dict], dict[str, dict], dict[str, list], list[str]]:
    """By student (the file's name) what they did, what they answered, their functions and the names of those that are
    too long; and the .json files that are none of `check.export`.

    OSError if the folder cannot be read.
    """
    found, said, texts, long, others = {}, {}, {}, {}, []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json":
            continue
        try:
            if not path.stem.isprintable():
                raise ValueError(path.stem)
            handed = json.loads(_text(path))
            works = memory.read(handed["exercises"])
            for name, work in works.items():
                work["attempts"] = max(0, min(work["attempts"], MOST))
                work["hints"] = work["hints"][: len(TASKS[name].hints) if name in TASKS else 0]
            answers = memory.read_answers(handed.get("answers"))  # none in a file of before
            functions = {
                name: text
                for name, text in handed.get("functions", {}).items()
                if name in TASKS and isinstance(text, str)
            }
            long[path.stem] = [name for name, text in functions.items() if len(text) > LONGEST]
            texts[path.stem] = {name: text for name, text in functions.items() if name not in long[path.stem]}
            found[path.stem], said[path.stem] = works, answers
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            others.append(_plain(path.name))
    return found, said, texts, long, others


def skipped(folder: Path) -> list[str]:
    """The names of what `read` skips: whatever does not end in .json, but for hidden files."""
    paths = sorted(folder.iterdir())
    return [_plain(path.name) for path in paths if path.suffix != ".json" and not path.name.startswith(".")]


def _text(path: Path) -> str:
    """What is in a plain file. OSError or ValueError of a link, a pipe, a device or a folder, and of what is huge."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would wait for its writer
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or len(data := file.read(LARGEST + 1)) > LARGEST:
            raise ValueError(f"{path.name} is no plain file, or too large")
    return data.decode("utf-8")


def _plain(text: str) -> str:
    """Without what would move the cursor of a terminal or begin a line."""
    return "".join(each if each.isprintable() else "?" for each in text)


def table(found: dict[str, dict], answers: dict[str, dict]) -> list[str]:
    """The lines of the table, and of what is the same."""
    width = max(len("who"), *map(len, found))
    lines = [f"{'who':{width}}  solved  checks  hints  looked up  predicted  open"]
    for who, works in found.items():
        known = {name: works.get(name, memory.NOTHING) for name in EXERCISES}
        done = [name for name, work in known.items() if work["solved"]]
        checks, hints, looked = (
            sum(work["attempts"] for work in known.values()),
            sum(len(work["hints"]) for work in known.values()),
            sum(work["solution"] for work in known.values()),
        )
        right, answered = predicted(answers[who])
        counts = f"{checks:>5}  {hints:>5}  {looked:>9}  {f'{right} of {answered}':>9}"
        still = ", ".join(name for name in EXERCISES if name not in done) if done else "all"
        lines.append(f"{who:{width}}  {len(done):>2} of {len(EXERCISES)}  {counts}  {still}".rstrip())
    return lines


def of_variants(found: dict[str, dict], dealt: dict[str, int]) -> list[str]:
    """What became of the variants that `ringside homework` or an exam gave out; `dealt` is the class's list, if any."""
    lines = [f"{who} is in the class's list and has handed in nothing" for who in dealt if who not in found]
    for who, works in found.items():
        mine = {name: work for name, work in works.items() if name in VARIANTS}
        if dealt and who not in dealt:
            lines.append(f"{who} is not in the class's list")
        elif others := [name for name in mine if dealt and TASKS[name].variant != dealt[who]]:
            lines.append(f"{who} was given variant {dealt[who]}, and has tried {', '.join(others)}")
        if mine:
            done = [name for name, work in mine.items() if work["solved"]]
            still = [name for name in mine if name not in done]
            lines.append(f"{who}, variants: solved {', '.join(done) or 'none'}; open {', '.join(still) or 'none'}")
    return lines


def predicted(answers: dict[str, list[dict]]) -> tuple[int, int]:
    """How many first answers are right, and of how many that is known."""
    first = [right for name, given in answers.items() if (right := _right(name, given)) is not None]
    return sum(first), len(first)


def _right(name: str, given: list[dict]) -> bool | None:
    """Whether the first answer is right; the file is believed about the cells of a picture only. None: unknown."""
    if not given or given[0]["said"] is None:
        return None
    said, right = given[0]["said"], given[0]["right"]
    match QUESTIONS.get(name):
        case Question(sealed=True):  # this copy does not know
            return None
        case Choose(answers=answers, right=number):
            return said == answers[number].text
        case Statement(true=true):
            return said == str(true).lower()
        case FindLine(right=numbers):
            return said in [f"line {number}" for number in numbers]
        case Order() as order:
            return said == ", ".join(str(place + 1) for place in for_browser(order)["order"])
        case Number() as number:
            return is_right(number, said)
        case Click():
            return right
    return None


def judge(found: dict[str, dict], texts: dict[str, dict], long: dict[str, list]) -> tuple[dict[str, dict], list[str]]:
    """By student and exercise "right" or the fault, of each function that is there; and sentences about the faults."""
    front = regrade.alone()
    lines = [] if front else ["judged with the network in reach: this machine has no `unshare` for ordinary users"]
    verdicts: dict[str, dict] = {}
    for who, functions in texts.items():
        print(f"judging {who}: {len(functions)} functions ...", file=sys.stderr, flush=True)
        verdicts[who] = {name: fault or "right" for name, fault in regrade.judged(functions, front).items()}
        verdicts[who] |= dict.fromkeys(long[who], TOO_LONG)
        claimed = {name for name, work in found[who].items() if work["solved"] and name in TASKS}
        missing = sorted(claimed - {*verdicts[who]})
        lines += [f"{who}, {name}: handed in as solved, without its function" for name in missing]
        lines += [f"{who}, {name}: {fault}" for name, fault in verdicts[who].items() if fault != "right"]
    right = sum(fault == "right" for each in verdicts.values() for fault in each.values())
    return verdicts, [f"{right} of {sum(map(len, verdicts.values()))} functions are right when judged again", *lines]


def rows(found: dict[str, dict], verdicts: dict[str, dict]) -> list[tuple]:
    """One for each student and exercise, in the order of COLUMNS."""
    return [
        (
            _cell(who),
            name,
            int(bool(work["solved"])),
            work["attempts"],
            len(work["hints"]),
            int(work["solution"]),
            again,
        )
        for who, works in found.items()
        for name in [*EXERCISES, *(name for name in works if name in VARIANTS)]
        for work in [works.get(name, memory.NOTHING)]
        for again in [_cell(verdicts.get(who, {}).get(name, ""))]
    ]


def _cell(text: str) -> str:
    """As a spreadsheet shows it and does not compute it."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _page(folder: Path, page: Path) -> str:
    found, said, _, _, others = read(folder)
    others += [name for name in skipped(folder) if name != page.name]  # it may be in the folder
    return class_page.page(found, {who: predicted(answers) for who, answers in said.items()}, others)


def main(arguments: list[str]) -> int:
    """Print the table of the folder that is named; 0 if every .json file in it could be read."""
    folders = [Path(each) for each in arguments if not each.startswith("--")]
    if len(folders) != 1 or not folders[0].is_dir():
        usage = "ringside handed-in FOLDER [--csv] [--judge] [--class LIST] [--page FILE]"
        print(f"{usage}: FOLDER has the files of check.export", file=sys.stderr)
        return 2
    for path in (Path(each.removeprefix("--page=")) for each in arguments if each.startswith("--page=")):
        try:
            return class_page.keep_up(path, partial(_page, folders[0], path))
        except OSError as error:
            print(f"{folders[0]} cannot be read: {error.strerror}", file=sys.stderr)
            return 1
    try:
        dealt = next((homework.numbers(Path(each[8:])) for each in arguments if each.startswith("--class=")), {})
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    found, said, texts, long, others = read(folders[0])
    verdicts, lines = {}, [f"{who}, {name}: {TOO_LONG}" for who, names in long.items() for name in names]
    if "--judge" in arguments and found:
        verdicts, lines = judge(found, texts, long)
    if not found:
        print(f"There is no file of check.export in {folders[0]}.", file=sys.stderr)
    elif "--csv" in arguments:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows(found, verdicts)])
    else:
        print(
            *table(found, said),
            *map(_plain, of_variants(found, dealt)),
            *map(_plain, lines),
            *map(_plain, alike.sentences(texts)),
            sep="\n",
        )
    for name in others:
        print(f"{name} is no file of check.export", file=sys.stderr)
    if names := skipped(folders[0]):
        print(f"not read, because the name does not end in .json: {', '.join(names)}", file=sys.stderr)
    return int(bool(others) or not found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
