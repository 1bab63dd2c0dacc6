"""`check("name")`: run the student's function on real ranks, watch what they send, and say what is right and wrong.

The function travels as text (course/carry.py) to ranks of its own, is tried there on several world sizes
(course/trial.py), and the verdict is printed line by line: the same on every run, but for the numbers of a wrong
result, which are fresh. Below it the run that was judged plays (course/playback.py), and `launch.recording()` has it.
A check never raises: an unsolved chapter still runs through.
"""

import json
from difflib import get_close_matches
from inspect import getsource

from course import carry, progress
from course.exercises import EXERCISES, Exercise

COLLECT = """
def _collected():
    space = {{}}
    exec({code}, space)
    try:
        source = space["carry"]({name}, globals())
        return {{"source": source, "blank": space["has_blank"](source)}}
    except space["CannotCarry"] as error:
        return {{"error": str(error)}}
_carried = _collected()
del _collected
"""


def check(name: str = "", hint: int | None = None) -> None:
    """Judge the student's function `name`, or with hint=1, 2, ... print the next help instead.

    `check.progress()` prints which exercises are solved.
    """
    exercise = EXERCISES.get(name) if isinstance(name, str) else None
    if exercise is None:
        close = get_close_matches(str(name), EXERCISES, n=1)
        print(f"There is no exercise {name!r}. {f'Did you mean {close[0]!r}? ' if close else ''}", end="")
        print(f"There are: {', '.join(EXERCISES)}.")
    elif hint is not None:
        _print_hint(exercise, hint)
    elif _judge(exercise):
        progress.solved(name)


check.progress = progress.show


def _print_hint(exercise: Exercise, number: int) -> None:
    if number not in range(1, len(exercise.hints) + 1):
        print(f"{exercise.name} has {len(exercise.hints)} hints: hint=1 to hint={len(exercise.hints)}.")
        return
    print(f"Hint {number} of {len(exercise.hints)}: {exercise.hints[number - 1]}")


def _judge(exercise: Exercise) -> bool:
    """Print the verdict; True when everything is right."""
    from course import playback, verdict  # here, because a chapter that only imports `check` need not load the launcher
    from course.trial import Trial
    from launch.magics import session

    playback.clear()
    print(f"{exercise.name}: {exercise.asks}")
    source = _source_of(exercise)
    if source is None:
        return False
    trials = []
    for p, dtype in zip(exercise.world_sizes, exercise.dtypes, strict=True):
        trial = Trial(exercise, source, p, dtype)
        fault = trial.fault()
        where = f"on {p} ranks, {dtype}"
        if fault:
            print(f'  no  {where}: {fault}\nNot yet. A hint: check("{exercise.name}", hint=1)', flush=True)
            session().keep(trial.recording)
            playback.failed(trial)
            return False
        print(f"  ok  {where}: {verdict.praise(trial)}", flush=True)
        trials.append(trial)
    print("Solved.", flush=True)
    session().keep(trials[0].recording)
    playback.solved(trials[0])
    return True


def _source_of(exercise: Exercise) -> str | None:
    """The student's function as text, from the ranks of this notebook; None if there is none yet, which is said."""
    from launch.errors import LaunchError
    from launch.magics import session
    from launch.output import raise_failures

    try:
        ranks = session()
        raise_failures(ranks.execute(COLLECT.format(code=repr(getsource(carry)), name=json.dumps(exercise.name))))
        everyones = ranks.pull("_carried")
    except LaunchError as error:
        print(f"  no  {error}")
        return None
    carried = everyones[0]
    other = next((rank for rank, theirs in enumerate(everyones) if theirs != carried), None)
    if other is not None:
        print(
            f"  no  {exercise.name} is not the same on rank 0 and on rank {other}: run its cell on all ranks, and make "
            "inside it what differs from rank to rank"
        )
    elif "error" in carried:
        print(f"  no  {carried['error']}")
    elif carried["blank"] is not None:
        print(
            f"  not written yet (about {exercise.lines} lines). Replace the ... and run the cell, then check again.\n"
            f'A hint: check("{exercise.name}", hint=1)'
        )
    else:
        return carried["source"]
    return None
