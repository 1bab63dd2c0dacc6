"""What a class has handed in, as one table: `python -m course.handed_in FOLDER` reads what `check.export` wrote there.

A line for each student: how many exercises are solved, with how many checks and hints, how many questions were answered
right at first, and which exercises are open. Below it the functions that several students have handed in letter for
letter: a fact, and not yet a judgement. With `--csv` one line for each student and exercise, for a spreadsheet.

Left out: a proof that a file is the student's own.
"""

import csv
import json
import sys
from pathlib import Path

from course import memory
from course.exercises import EXERCISES

COLUMNS = ("who", "exercise", "solved", "attempts", "hints", "solution")


def read(folder: Path) -> tuple[dict[str, dict], dict[str, dict], list[str]]:
    """By student (the file's name) what they did, what they answered, and the files that are none of `check.export`.

    OSError if the folder cannot be read.
    """
    found, said, others = {}, {}, []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json":
            continue
        try:
            handed = json.loads(path.read_text(encoding="utf-8"))
            found[path.stem] = memory.read(handed["exercises"])
            said[path.stem] = memory.read_answers(handed.get("answers"))  # none in a file of before
        except (OSError, ValueError, TypeError, KeyError):
            others.append(path.name)
    return found, said, others


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
        first = [given[0]["right"] for given in answers[who].values() if given and given[0]["said"] is not None]
        counts = f"{checks:>5}  {hints:>5}  {looked:>9}  {f'{sum(first)} of {len(first)}':>9}"
        still = ", ".join(name for name in EXERCISES if name not in done) if done else "all"
        lines.append(f"{who:{width}}  {len(done):>2} of {len(EXERCISES)}  {counts}  {still}".rstrip())
    return lines + same(found)


def same(found: dict[str, dict]) -> list[str]:
    """ "shift: anna and ben have handed in the same function, letter for letter"."""
    lines = []
    for name in EXERCISES:
        by_hash: dict[str, list[str]] = {}
        for who, works in found.items():
            if mark := works.get(name, memory.NOTHING)["solved"]:
                by_hash.setdefault(mark, []).append(who)
        for people in by_hash.values():
            if len(people) > 1:
                named = f"{', '.join(people[:-1])} and {people[-1]}"
                lines.append(f"{name}: {named} have handed in the same function, letter for letter")
    return lines


def rows(found: dict[str, dict]) -> list[tuple]:
    """One for each student and exercise, in the order of COLUMNS."""
    return [
        (who, name, int(bool(work["solved"])), work["attempts"], len(work["hints"]), int(work["solution"]))
        for who, works in found.items()
        for name in EXERCISES
        for work in [works.get(name, memory.NOTHING)]
    ]


def main(arguments: list[str]) -> int:
    """Print the table of the folder that is named; 0 if every file in it could be read."""
    folders = [Path(each) for each in arguments if each != "--csv"]
    if len(folders) != 1 or not folders[0].is_dir():
        print("python -m course.handed_in FOLDER [--csv]: a folder with the files of check.export", file=sys.stderr)
        return 2
    found, said, others = read(folders[0])
    if not found:
        print(f"There is no file of check.export in {folders[0]}.", file=sys.stderr)
    elif "--csv" in arguments:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows(found)])
    else:
        print(*table(found, said), sep="\n")
    for name in others:
        print(f"{name} is no file of check.export", file=sys.stderr)
    return int(bool(others) or not found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
