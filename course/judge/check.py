"""`check("name")`: run the student's function on real ranks, watch what they send, and say what is right and wrong.

The function travels as text (carry.py) to ranks of its own, is tried there on several world sizes
(trial.py), and the verdict is printed line by line: the same on every run, but for the numbers of a wrong
result, which are fresh. It says which cell it is about, and is given only of what the student wrote last
(screen.py). Below it the run that was judged plays (playback.py), and `launch.recording()` has it.
A check never raises: an unsolved chapter still runs through.
"""

import ast
import json
import re
from difflib import get_close_matches
from inspect import getsource
from pathlib import Path
from textwrap import wrap

from IPython import get_ipython

from course import memory, withheld
from course.exercises import EXERCISES, TASKS, Exercise
from course.judge import carry, screen

COURSE = Path(__file__).parents[1]

WIDTH = 98
"""Characters of a line of the verdict; JupyterLab would break a longer one in the middle of a word."""

TOGETHER = re.compile(r"(?<=[\w)\]]) (?=[-%*/<>=]=? )|(?<=[-%*/<>=]) (?=[\w(])|(?<=\d) (?=N\b)")
"""The spaces at which no line is broken."""

COLLECT = """
def _collected():
    space, found = {{}}, {{"missing": {name} not in globals()}}
    exec({code}, space)
    found["cells"] = space["cells"]({name}, globals(), get_ipython().compile._filename_map)
    found["values"] = space["values"]({name}, globals())
    found["module"] = getattr(globals().get({name}), "__module__", None)
    try:
        source, line = space["carry"]({name}, globals()), space["line_of"]({name}, globals())
        blanks, stub = space["blanks"](source), space["is_stub"](source, {name})
        return found | {{"source": source, "line": line, "blanks": blanks, "stub": stub}}
    except space["CannotCarry"] as error:
        return found | {{"error": str(error)}}
_carried = _collected()
del _collected
"""


def check(name: str = "", hint: int | None = None) -> None:
    """Judge the student's function `name`, or with hint=1, 2, ... print the next help instead.

    `check.progress()` prints what is solved and predicted; `check.solution(name)` puts ours into a new cell;
    `check.export("anna.json")` writes what was tried and solved into a file to hand in; `check.release("...")` opens
    a chapter whose solutions and answers were withheld.
    """
    exercise = _called(name)
    if exercise is not None and hint is not None:
        _print_hint(exercise, hint)
    elif exercise is not None:
        _judge(exercise)


def solution(name: str = "") -> None:
    """Put our solution of the exercise `name` into a new cell below this one. It is not run."""
    exercise = _called(name)
    if exercise is None:
        return
    path = f"solutions/{exercise.key}.py"
    try:
        text = withheld.text(path) if withheld.SEALED.exists() else (COURSE / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    if not text and exercise.variant > 1:
        print(f"Your lecturer has the solution of {exercise.key}.")
        return
    if not text:
        print("Our solution is withheld in this copy of the course, until your lecturer releases its chapter.")
        return
    memory.looked_up(exercise.name)
    get_ipython().set_next_input(f"%%ranks\n{text}")
    print(f"Our {exercise.name} is in the cell below.")


check.progress = memory.show  # type: ignore[attr-defined]  # check.progress() is what students type
check.solution = solution  # type: ignore[attr-defined]
check.export = memory.export  # type: ignore[attr-defined]
check.release = withheld.release  # type: ignore[attr-defined]


def _called(name) -> Exercise | None:
    """The exercise of that name; None if there is none, which is said."""
    if not isinstance(name, str) and hasattr(name, "__name__"):
        print(f'check wants the name in quotes: check("{name.__name__}")')
        return None
    exercise = TASKS.get(name) if isinstance(name, str) else None
    if exercise is None:
        close = get_close_matches(str(name), EXERCISES, n=1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        _say(f"There is no exercise {name!r}. {meant}There are: {', '.join(EXERCISES)}.")
    return exercise


def _print_hint(exercise: Exercise, number: int) -> None:
    if not exercise.hints:
        print(f'{exercise.key} has no hints of its own; check("{exercise.name}", hint=1) has those of the chapter.')
        return
    if type(number) is not int or number not in range(1, len(exercise.hints) + 1):
        print(f"{exercise.name} has {len(exercise.hints)} hints: hint=1 to hint={len(exercise.hints)}.")
        return
    memory.hinted(exercise.name, number)
    _say(f"Hint {number} of {len(exercise.hints)}: {exercise.hints[number - 1]}")


def _help(exercise: Exercise) -> str:
    return f'A hint: check("{exercise.name}", hint=1)' if exercise.hints else ""


def _judge(exercise: Exercise) -> None:
    """Print the verdict, and keep it."""
    from course.judge import playback  # here, because a chapter that only imports `check` need not load the launcher

    playback.clear()
    _say(f"{exercise.key}: {exercise.asks}")
    try:
        source = _source_of(exercise)
        if source is not None:
            memory.attempted(exercise.key)
            if _tried(exercise, source):
                memory.solved(exercise.key, source)
    except KeyboardInterrupt:  # it struck in our own code, between two runs
        from course.judge.trial import end_ranks

        end_ranks()
        print("  stopped  nothing more was tried", flush=True)


def _tried(exercise: Exercise, source: str) -> bool:
    """Prints a line for each trial, up to the first fault; True when everything is right."""
    from course.judge import playback, verdict
    from course.judge.trial import trials
    from course.judge.under_way import under_way
    from launch.magics import session

    first = None
    with under_way(exercise.name) as say:
        for trial in trials(exercise, source, say):
            fault = trial.fault()
            if fault:
                break
            if trial.draw.index is None:  # on how many ranks is chance, and a right answer's verdict is always the same
                print("  ok  on other ranks, lengths and sizes, drawn at random", flush=True)
            else:
                _say(f"  ok  {trial.where}: {verdict.praise(trial)}")
            if first is None:
                first = trial
                _print_printed(trial)
    if fault:
        _say(f"  {trial.verdict}  {trial.where}: {fault}")
        for line in trial.hints:
            _say(f"      {line}")
        _print_printed(trial)
        if trial.verdict == "no":
            print(f"Not yet. {_help(exercise)}".strip(), flush=True)
        session().keep(lambda: trial.recording)
        playback.failed(trial)
        return False
    print("Solved.", flush=True)
    assert first, "every exercise is tried on some ranks"
    session().keep(lambda: first.recording)
    playback.solved(first)
    return True


def _say(text: str) -> None:
    """Prints lines of at most WIDTH characters, as far as the words are not longer; what goes on is indented. What
    belongs together ("p - 1", "0.75 N") stays on one line."""
    for line in text.split("\n"):
        held = TOGETHER.sub("\0", line)
        lines = wrap(held, WIDTH, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
        print("\n".join(lines).replace("\0", " ") if len(line) > WIDTH else line, flush=True)


def _print_printed(trial) -> None:
    """What the student's own print calls said, below the line of their trial."""
    if lines := trial.prints():
        print("      it printed:", *lines, sep="\n      ", flush=True)


def _differs(name: str, here: dict[str, str], other: int, there: dict[str, str]) -> str:
    """Why the function of rank 0 is not that of another rank, and what to do; `here` and `there` are the variables of
    other cells that it uses."""
    differ = sorted(used for used in here if used in there and here[used] != there[used])
    if not differ:
        return f"{name} is not the same on rank 0 and on rank {other}: run its cell on all ranks"
    values = [
        {used: text if len(text) <= 40 else f"{text[:40]} ..." for used, text in of.items()} for of in (here, there)
    ]
    mine, theirs = (", ".join(f"{used} = {of[used]}" for used in differ) for of in values)
    them = "it" if len(differ) == 1 else "them"
    return (
        f"{name} uses {' and '.join(differ)} from outside of it, which {'is' if them == 'it' else 'are'} not the same "
        f"on all ranks (rank 0: {mine}; rank {other}: {theirs}); work {them} out inside {name}, from rank and "
        "world_size"
    )


def _unwritten(exercise: Exercise, carried: dict) -> str:
    """How much is missing, and what to do: a whole function, or only what stands on these lines."""
    if carried["stub"]:
        return f" (about {exercise.lines} lines). Replace the ... and run the cell"
    source, blanks = carried["source"], carried["blanks"]
    *lines, last = map(str, blanks)
    # What the function uses travels above it, and so on other lines than in its cell; if that is long, it does, too.
    own = ast.parse(source).body[-1]
    begin = own.decorator_list[0].lineno if getattr(own, "decorator_list", ()) else own.lineno
    if begin == carried["line"] <= blanks[0]:
        where = f"lines {', '.join(lines)} and {last}" if lines else f"line {last}"
    else:
        where = " and in ".join(_holders(source, blanks))
    if not lines:
        return f": a blank is left{f' in {where}' if where else ''}. Replace the ... and run the cell"
    return f": {len(blanks)} blanks are left{f', in {where}' if where else ''}. Replace each ... and run the cell"


def _holders(source: str, blanks: list[int]) -> list[str]:
    """The functions and classes that these lines are in, each once."""
    made = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node.name for node in made if any(node.lineno <= line <= (node.end_lineno or 0) for line in blanks)]


def _source_of(exercise: Exercise) -> str | None:
    """The student's function as text, from the ranks of this notebook; None if it cannot be judged, which is said."""
    from launch.kernel.output import raise_failures
    from launch.magics import session
    from launch.shared.errors import LaunchError

    ranks = None
    try:
        ranks = session()
        raise_failures(ranks.execute(COLLECT.format(code=repr(getsource(carry)), name=json.dumps(exercise.name))))
        everyones = ranks.pull("_carried")
        for notice in ranks.take_notices():
            print(f"  {notice}")
    except LaunchError as error:
        gone = "" if ranks is None or ranks.size else screen.stale(exercise.name, None)
        _say(f"  not judged: {gone or error}")
        return None
    carried = everyones[0]
    cells, module = carried["cells"], carried["module"]
    last = cells | ({exercise.name: None} if carried["missing"] else {})
    old = next(filter(None, (screen.stale(name, number) for name, number in last.items())), "")
    what = ("source", "error")
    other = next((r for r, theirs in enumerate(everyones) if any(theirs.get(w) != carried.get(w) for w in what)), None)
    if old:
        _say(f"  not judged: {old}")
        return None
    if exercise.name in cells:
        print(f"  judging {exercise.name} as defined in cell [{cells[exercise.name]}]", flush=True)
    elif module not in ("__main__", None):
        print(f"  judging {exercise.name} of {module}", flush=True)
    if other is not None:
        _say(f"  not judged: {_differs(exercise.name, carried['values'], other, everyones[other]['values'])}")
    elif "error" in carried:
        _say(f"  not judged: {carried['error']}")
    elif carried["blanks"]:
        _say(f"  not written yet{_unwritten(exercise, carried)}, then check again.")
        print(_help(exercise))
    else:
        return carried["source"]
    return None
