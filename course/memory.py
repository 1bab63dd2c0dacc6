"""What a student has tried, looked at and solved, kept in a file of the student's own.

It stands in Jupyter's data folder of the user (JUPYTER_DATA_DIR moves it), not beside the chapters: a fresh clone or
`git pull` must neither lose it nor carry it along.

    course.progress()           prints which exercises are solved, and what was predicted wrong, by topic; on a hub
                                there is a button below that hands in
    check.export("anna.json")   writes all of it into a file to hand in; `ringside handed-in FOLDER` reads many

Of a solved function the file holds a hash, and not the function. Beside it are a file with every answer to a question
(`course/ask.py`), by the question's name, and the folder `solved` with the text of each function that passed, which
later cells run (`course/yours.py`). All of it is handed in.

Left out: proof. Whoever can write a file can write this one; the lecturer judges the functions again.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from IPython.display import display
from jupyter_core.paths import jupyter_data_dir

from course.exercises import EXERCISES, TASKS, VARIANTS
from course.questions import QUESTIONS
from course.yours import kept as text_of

NOTHING: dict[str, Any] = {"attempts": 0, "hints": [], "solution": False, "solved": ""}
"""Checks that were given a verdict, the numbers of the hints, whether ours was looked at, and the hash of the function
that solved it first."""


HAND_IN = "RINGSIDE_HAND_IN"
"""The environment variable with the file that `check.export()` and the button of `progress()` write on a hub."""


def _file() -> Path:
    return Path(jupyter_data_dir()) / "ringside" / "progress.json"


def kept() -> dict[str, dict]:
    """By exercise what NOTHING has; an unreadable file counts as none.

    Names that this version of the course does not know are kept: another version does.
    """
    try:
        return read(json.loads(_file().read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def read(found) -> dict[str, dict]:
    """What of this is in the form of NOTHING; the rest of each exercise is as if nothing had been done."""
    if not isinstance(found, dict):
        return {}
    return {
        name: {key: work[key] if type(work.get(key)) is type(none) else none for key, none in NOTHING.items()}
        for name, work in found.items()
        if isinstance(work, dict)
    }


def attempted(name: str) -> None:
    """A check of this exercise begins."""
    _keep(name, attempts=kept().get(name, NOTHING)["attempts"] + 1)


def hinted(name: str, number: int) -> None:
    """That hint was looked at."""
    _keep(name, hints=sorted({*kept().get(name, NOTHING)["hints"], number}))


def looked_up(name: str) -> None:
    """Our solution was looked at."""
    _keep(name, solution=True)


def solved(name: str, source: str) -> None:
    """Remember that the function in `source` solves it, unless an earlier one did; later cells run the last one."""
    if f"def {TASKS[name].name}(" in source:  # not a name for ours
        with suppress(OSError):  # said below, about the progress
            _put(text_of(name), source)
    if not kept().get(name, NOTHING)["solved"]:
        _keep(name, solved=hashlib.sha256(source.encode()).hexdigest())


def answers() -> dict[str, list[dict[str, Any]]]:
    """By question all answers, the first one first: what was `said` (None: skipped), and whether it is `right`."""
    try:
        return read_answers(json.loads(_answers_file().read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def read_answers(found) -> dict[str, list[dict[str, Any]]]:
    """What of this are answers."""
    if not isinstance(found, dict):
        return {}
    return {
        name: [{"said": each["said"], "right": each["right"]} for each in given if _is_answer(each)]
        for name, given in found.items()
        if isinstance(given, list)
    }


def _is_answer(found) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("said"), str | None)
        and isinstance(found.get("right"), bool | None)
    )


def answered(name: str, said: str | None, right: bool | None) -> None:
    """The question was answered so, or skipped (said: None); right is None where the answer is withheld."""
    everything = answers()
    everything.setdefault(name, []).append({"said": said, "right": right})
    _write(_answers_file(), everything)


def _answers_file() -> Path:
    return _file().with_name("answers.json")


def _keep(name: str, **news) -> None:
    everything = kept()
    everything[name] = NOTHING | everything.get(name, {}) | news
    _write(_file(), everything)


def _write(file: Path, everything: dict) -> None:
    """A folder that cannot be written to costs the memory, not the verdict."""
    try:
        _put(file, json.dumps(everything, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        print(f"(Your progress could not be kept in {file.name}: {error.strerror}.)")


def _put(file: Path, text: str) -> None:
    """In place as a whole: an interrupted write would lose everything."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def wrong() -> dict[str, tuple[list[str], int]]:
    """By topic the questions whose last answer was wrong, and how many were answered; what was skipped is no answer."""
    found: dict[str, tuple[list[str], int]] = {}
    for name, given in answers().items():
        said = [each for each in given if each["said"] is not None and each["right"] is not None]
        if said and name in QUESTIONS:
            names, count = found.get(QUESTIONS[name].topic, ([], 0))
            found[QUESTIONS[name].topic] = (names + [name] * (not said[-1]["right"]), count + 1)
    return found


def show() -> None:
    """`course.progress()`."""
    _list()
    if os.environ.get(HAND_IN):
        from ipywidgets import Button, Output, VBox

        button, said = Button(description="Hand in", tooltip="as often as you like"), Output()
        button.on_click(said.capture(clear_output=True)(lambda _: export()))
        display(VBox([button, said]))


def _list() -> None:
    """Print every exercise with a mark if it is solved; then, by topic, the questions that were answered wrong."""
    done = {name for name, work in kept().items() if work["solved"]} & set(EXERCISES)
    for name in EXERCISES:
        print(f"  {'done' if name in done else 'open'}  {name}")
    tried = {name: work for name, work in kept().items() if name in VARIANTS}
    print(*(f"  {'done' if work['solved'] else 'open'}  {name}\n" for name, work in tried.items()), sep="", end="")
    print(f"{len(done)} of {len(EXERCISES)} solved")
    topics = wrong()
    if not topics:
        return
    missed = {topic: (names, count) for topic, (names, count) in topics.items() if names}
    width = max(map(len, missed), default=0)
    for topic, (names, count) in sorted(missed.items()):
        again = ", ".join(f'ask("{name}")' for name in names)
        print(f"  {topic:{width}}  {len(names)} of {count} wrong: {again}")
    every = topics.values()
    how = "; to be asked again: from course import again, then again()" if missed else ""
    print(f"{sum(len(names) for names, _ in every)} of {sum(count for _, count in every)} predicted wrong{how}")


def export(path: str = "") -> None:
    """Write what was tried, solved and answered into a file to hand in: "anna.json", by which you are known.

    On a hub that names the student's file in RINGSIDE_HAND_IN (docs/hub.md), `check.export()` hands in.
    """
    handed_in = os.environ.get(HAND_IN, "") if path == "" else ""
    path = path or handed_in
    if not isinstance(path, str) or Path(path).suffix != ".json":
        print('check.export wants a file that has your name: check.export("anna.json")')
        return
    functions = {name: text_of(name).read_text(encoding="utf-8") for name in TASKS if text_of(name).exists()}
    everything = {"exercises": kept(), "answers": answers(), "functions": functions}
    try:
        Path(path).write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        print(f"Nothing was written: {error.strerror}: {path}")
        return
    print(f"Handed in: {path}" if handed_in else f"{path} is written; hand it in as it is.")
    _list()
