"""Player: plays a Schedule or a Recording in the notebook, step by step.

Python supplies the schedule once, the browser plays it (js/player.js): stepping, scrubbing and the keyboard work while
the kernel is busy. `player.step` and `player.playing` are shared with the browser, so a cell can set them too.

Left out: the picture itself (js/stage.js), what is drawn where no browser runs it (_strip.py), a schedule's arithmetic
(collectives).
"""

from collections.abc import Sequence

import traitlets

from collectives import Schedule
from widgets import _strip
from widgets._packing import goal, pack
from widgets.base import join, styles
from widgets.question import Asked
from widgets.wait_for import headline, stuck

MOST_BUFFERS = 12  # of one rank; more are a picture of several screens
MOST_ANSWERS = 9  # a digit each
NUMBERS = ("messages", "steps", "busiest")  # what js/predict.js can ask about a whole schedule


class Player(Asked):
    """Plays `schedule`: any algorithm of `collectives`, or `launch.recording()`.

    >>> Player(all_reduce.ring(ranks=4))                       # doctest: +SKIP

    nbytes    N in bytes (the larger buffer of one rank): amounts are then told in bytes, else as multiples of N
    step      0 stands before the first step, k after k steps; can be set and read at any time
    playing   True while it plays. The first Player that a notebook shows plays once by itself, if motion is welcome
    predict   a question in front of what it asks about. A step (counted from 1): which cells will it write? Or
              "messages", "steps", "busiest": the number the whole schedule comes to. It can be skipped; `predicted`
              then holds what was said, what is, and the sentence about it. Nothing in Python waits for it.
    answers   puts a question for a number to a room: up to nine answers, such as (6, 12, "2p(p-1)"), each with a key
              that counts a hand for it; `predicted` then says how many hands each had
    frame     (rank, buffer, chunk), such as (2, "data", 1): that cell is framed as the one that is wrong, and `step`
              is the last one, where that is seen

    A run that ended in a deadlock opens at its end, with each stuck rank in red and an arrow to the rank it waits for.

    A click on a cell, or Enter on the one that the arrow keys and [ ] have chosen, traces its content back to the data
    that ranks had of their own: the messages that brought it, with their steps and, of a recorded run, lines of code.
    Esc ends it; ? lists all keys.

    Of a recording with more tensors than a picture can hold it plays the beginning, and its title says so;
    `launch.recording().part(first, last)` plays other steps.

    TypeError for anything that is not a Schedule, ValueError for one with more transfers than a browser can play, or
    without the cell that is to be framed.
    """

    _played = False  # whether a Player of this process has been shown
    _entry, _sheets = "player.js", ("frame.css", "stage.css", "player.css")
    _esm, _css = join(_entry), styles(*_sheets, "question.css")
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    meta = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        schedule: Schedule,
        *,
        nbytes: float | None = None,
        predict: int | str | None = None,
        answers: Sequence[float | str] | None = None,
        frame: tuple[int, str, int] | None = None,
        **traits,
    ):
        if not isinstance(schedule, Schedule):
            raise TypeError(
                f"Player plays a Schedule, such as all_reduce.ring(ranks=4), or launch.recording(); "
                f"got {type(schedule).__name__} {schedule!r:.60}"
            )
        if nbytes is not None and not nbytes > 0:
            raise ValueError(f"nbytes is N in bytes and positive, got {nbytes!r}")
        if len(schedule.buffers) > MOST_BUFFERS:
            schedule = schedule.beginning(MOST_BUFFERS)  # of a training, say: its title tells which steps these are
        data, meta = pack(schedule)
        self.schedule, self.framed = schedule, frame
        waits = getattr(schedule, "stuck", ())
        question = _question(predict, len(schedule.steps), answers)
        meta |= {"nbytes": nbytes, "goal": goal(schedule), "framed": None if frame is None else _slot(schedule, frame)}
        if waits:
            meta |= {"stuck": [list(edge) for edge in waits], "stuck_words": stuck(waits)}
        if waits and question is None:
            meta["title"] += f": {headline(waits).lower()}"
        if frame is not None or (waits and question is None):
            traits.setdefault("step", len(self.schedule.steps))  # where it is seen
        super().__init__(data=data, meta=meta, question=question, predicted=None, **traits)

    @traitlets.validate("step")
    def _within(self, proposal):
        """Steps outside the schedule become its first or last."""
        return max(0, min(proposal["value"], len(self.schedule.steps)))

    def summary(self) -> str:
        s = self.schedule
        steps = f"{len(s.steps)} step{'s' if len(s.steps) != 1 else ''}"
        return f"{s.title}, {s.ranks} ranks, {steps}"

    def _freshness(self) -> str:
        if self.step and "stuck" not in self.meta:
            return ""
        if self.step or Player._played or self.question:
            return "new"
        Player._played = True
        return "first"

    def behind(self) -> str:
        return _strip.html(self.schedule, f"{self.schedule.ranks} ranks", self._seen())

    def _seen(self) -> int | None:
        """The last step that may be seen; None: all of them."""
        if self.question is None:
            return None
        return self.question["step"] - 1 if self.question["kind"] == "cells" else 0

    def fallback(self) -> str:
        return _strip.html(self.schedule, repr(self), self._seen(), self.framed)


def _slot(schedule: Schedule, frame: tuple[int, str, int]) -> int:
    """The number under which js/schedule.js knows a cell."""
    try:
        rank, name, chunk = frame
        rank, chunk = range(schedule.ranks).index(rank), range(schedule.chunks).index(chunk)
        return (schedule.buffers.index(name) * schedule.ranks + rank) * schedule.chunks + chunk
    except (TypeError, ValueError):
        raise ValueError(
            f"frame is (rank, buffer, chunk) of a cell: a rank from 0 to {schedule.ranks - 1}, a buffer of "
            f"{', '.join(schedule.buffers)}, a chunk from 0 to {schedule.chunks - 1}; got {frame!r}"
        ) from None


def _question(predict: int | str | None, steps: int, answers: Sequence[float | str] | None) -> dict | None:
    if answers is not None and predict not in NUMBERS:
        raise ValueError(f"answers go with predict={', '.join(map(repr, NUMBERS))}; got predict={predict!r}")
    if answers is not None and not 2 <= len(answers) <= MOST_ANSWERS:
        raise ValueError(f"answers are 2 to {MOST_ANSWERS}, for each has a key; got {len(answers)}")
    if predict is None:
        return None
    if predict in NUMBERS:
        return {"kind": predict} | ({"answers": [str(answer) for answer in answers]} if answers else {})
    if isinstance(predict, int) and 1 <= predict <= steps:
        return {"kind": "cells", "step": predict}
    raise ValueError(f"predict is a step from 1 to {steps}, or one of {', '.join(NUMBERS)}; got {predict!r}")
