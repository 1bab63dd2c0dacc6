"""What a class has handed in, as one table: `python -m course.handed_in FOLDER` reads what `check.export` wrote there.

A line for each student: how many exercises are solved, with how many checks and hints, how many questions were answered
right at first, and which exercises are open. Below it the functions that are alike (course/alike.py): a fact, and not
yet a judgement. With `--csv` one line for each student and exercise, for a spreadsheet.

A file can be edited. `--judge` judges each function once more on this machine (course/regrade.py), which takes some ten
seconds a student and a few for each exercise, and says where the verdict is another one.

Left out: a proof that a file is the student's own.
"""

import csv
import json
import sys
from pathlib import Path

from course import alike, memory, regrade
from course.exercises import EXERCISES
from course.questions import QUESTIONS
from course.questions.question import Choose, FindLine, Statement

COLUMNS = ("who", "exercise", "solved", "attempts", "hints", "solution", "judged again")


def read(folder: Path) -> tuple[dict[str, dict], dict[str, dict], dict[str, dict], list[str]]:
    """By student (the file's name) what they did, what they answered and their functions, and the files that are none
    of `check.export`.

    OSError if the folder cannot be read.
    """
    found, said, texts, others = {}, {}, {}, []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json":
            continue
        try:
            handed = json.loads(path.read_text(encoding="utf-8"))
            found[path.stem] = memory.read(handed["exercises"])
            said[path.stem] = memory.read_answers(handed.get("answers"))  # none in a file of before
            functions = handed.get("functions", {}).items()
            texts[path.stem] = {name: text for name, text in functions if name in EXERCISES and isinstance(text, str)}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            others.append(path.name)
    return found, said, texts, others


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
        first = [right for name, given in answers[who].items() if (right := _right(name, given)) is not None]
        counts = f"{checks:>5}  {hints:>5}  {looked:>9}  {f'{sum(first)} of {len(first)}':>9}"
        still = ", ".join(name for name in EXERCISES if name not in done) if done else "all"
        lines.append(f"{who:{width}}  {len(done):>2} of {len(EXERCISES)}  {counts}  {still}".rstrip())
    return lines


def _right(name: str, given: list[dict]) -> bool | None:
    """Whether the first answer to a question is right, judged again where it is one of several; None: nobody knows."""
    if not given or given[0]["said"] is None:
        return None
    said, right = given[0]["said"], given[0]["right"]
    match QUESTIONS.get(name):
        case Choose(answers=answers, right=number):
            return said == answers[number].text
        case Statement(true=true):
            return said == str(true).lower()
        case FindLine(right=numbers):
            return said in [f"line {number}" for number in numbers]
    return right


def judge(found: dict[str, dict], texts: dict[str, dict]) -> tuple[dict[str, dict], list[str]]:
    """By student and exercise "right" or the fault, of each function that is there; and sentences about the faults."""
    front = regrade.alone()
    lines = [] if front else ["judged with the network in reach: this machine has no `unshare` for ordinary users"]
    verdicts: dict[str, dict] = {}
    for who, functions in texts.items():
        print(f"judging {who}: {len(functions)} functions ...", file=sys.stderr, flush=True)
        verdicts[who] = {name: fault or "right" for name, fault in regrade.judged(functions, front).items()}
        claimed = {name for name, work in found[who].items() if work["solved"] and name in EXERCISES}
        lines += [
            f"{who}, {name}: handed in as solved, without its function" for name in sorted(claimed - {*functions})
        ]
        lines += [f"{who}, {name}: {fault}" for name, fault in verdicts[who].items() if fault != "right"]
    right = sum(fault == "right" for each in verdicts.values() for fault in each.values())
    return verdicts, [f"{right} of {sum(map(len, verdicts.values()))} functions are right when judged again", *lines]


def rows(found: dict[str, dict], verdicts: dict[str, dict]) -> list[tuple]:
    """One for each student and exercise, in the order of COLUMNS."""
    return [
        (who, name, int(bool(work["solved"])), work["attempts"], len(work["hints"]), int(work["solution"]), again)
        for who, works in found.items()
        for name in EXERCISES
        for work in [works.get(name, memory.NOTHING)]
        for again in [verdicts.get(who, {}).get(name, "")]
    ]


def main(arguments: list[str]) -> int:
    """Print the table of the folder that is named; 0 if every file in it could be read."""
    folders = [Path(each) for each in arguments if each not in ("--csv", "--judge")]
    if len(folders) != 1 or not folders[0].is_dir():
        print(
            "python -m course.handed_in FOLDER [--csv] [--judge]: FOLDER has the files of check.export", file=sys.stderr
        )
        return 2
    found, said, texts, others = read(folders[0])
    verdicts, lines = judge(found, texts) if "--judge" in arguments and found else ({}, [])
    if not found:
        print(f"There is no file of check.export in {folders[0]}.", file=sys.stderr)
    elif "--csv" in arguments:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows(found, verdicts)])
    else:
        print(*table(found, said), *lines, *alike.sentences(texts), sep="\n")
    for name in others:
        print(f"{name} is no file of check.export", file=sys.stderr)
    return int(bool(others) or not found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
