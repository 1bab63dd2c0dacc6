"""The run that was judged, under its verdict: a failed one with its first wrong cell framed, a right one beside ours.

Where nobody could see a picture, in a script or a terminal, there is none.

Left out: the picture (`widgets.Player`), and the recording that stays behind (`launch.recording()`).
"""

from course.judge import verdict
from course.judge.holding import Answers
from launch.shared.errors import DeadlockError

_cleared: int | None = None
"""The number of the execution for which `clear` has done its work."""


def failed(trial) -> None:
    """Displays who waited for whom, if ranks are stuck, and the run of a trial with a fault, if anything was sent."""
    if shell() is None:
        return
    if isinstance(trial.error, DeadlockError):
        from launch.magics import show
        from widgets.wait_for import WaitFor

        show(shell(), WaitFor(trial.error.edges, trial.p))
    recording = trial.recording
    if recording is None or not len(recording.steps):
        return
    wrong = None if trial.failure else verdict.first_wrong(trial)
    _show(recording, Answers(trial).cell(wrong.rank, wrong.element) if wrong else None)


def solved(trial) -> None:
    """Displays the run of a right answer, and the textbook's below it, if messages were sent."""
    if not trial.calls.counts().messages or shell() is None:
        return
    print(f"Your run on {trial.p} ranks:", flush=True)
    _show(trial.recording)
    ours = trial.exercise.textbook(trial.p) if trial.exercise.textbook else None
    if ours is not None and len(ours.steps):
        print(f"By the book, {ours.title}:", flush=True)
        _show(ours)


def clear() -> None:
    """Closes what the last run of this cell displayed; a second check in the cell leaves the first one's alone."""
    from launch.magics import forget_last_run

    global _cleared
    ours = shell()
    if ours is not None and ours.execution_count != _cleared:
        _cleared = ours.execution_count
        forget_last_run(ours)


def _show(schedule, frame=None) -> None:
    """A Player under the cell; without the frame if the cell is not in the picture, and none if it is too large."""
    from launch.magics import show
    from widgets import Player

    for options in ({"frame": frame}, {}):
        try:
            player = Player(schedule, **options)
        except ValueError:
            continue
        show(shell(), player)
        return


def shell():
    """The notebook's shell; None where there is no front end."""
    from IPython import get_ipython

    ours = get_ipython()
    return ours if getattr(ours, "kernel", None) is not None else None
