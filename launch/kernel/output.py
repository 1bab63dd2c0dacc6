"""The answers of the ranks as the saved output of the cell, which has the same bytes on every run.

Text first, grouped by rank and in rank order, then the values of the last expression, then figures and other rich
output, each with its ranks. Ranks with equal output share one entry. While the cell runs, a widget shows the text
(widgets.RankLog); what is printed here is what a notebook file keeps and nbval compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TypeVar

from launch.doctor.snapshot import How
from launch.kernel.cell import Answer
from launch.kernel.watchdog import doing
from launch.shared.errors import DeadlockError, RankError, RanksStopped, Trouble, name_ranks

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MOST_COLOURS = 10_000  # changes of colour in a cell's text; JupyterLab draws ten times as many in more than ten seconds
SHOWN_TRACEBACKS = 4  # different ones; of more, the exception alone

Thing = TypeVar("Thing")


def show(answers: list[Answer]) -> None:
    """Shows everything that the ranks printed, returned and displayed."""
    show_text(sys.stdout, alike(answers, lambda answer: str(answer.out)))
    show_text(sys.stderr, alike(answers, lambda answer: str(answer.err)))
    show_values(answers)
    show_displays(answers)


def show_text(stream, groups: list[tuple[list[int], str]]) -> None:
    if groups:
        text = "".join(prefixed(ranks, text) for ranks, text in groups)
        stream.write(COLOUR.sub("", text) if text.count("\x1b") > MOST_COLOURS else text)
        stream.flush()


def alike(answers: list[Answer], key: Callable[[Answer], Thing]) -> list[tuple[list[int], Thing]]:
    """[(ranks, their common key)] in the order of their lowest ranks; without empty keys."""
    groups: list[tuple[list[int], Thing]] = []
    for answer in answers:
        thing = key(answer)
        if not thing:
            continue
        for ranks, other in groups:
            if other == thing:
                ranks.append(answer.rank)
                break
        else:
            groups.append(([answer.rank], thing))
    return groups


def prefixed(ranks: list[int], text: str) -> str:
    """Each line with the ranks that wrote it: '[ranks 0-3] hello'."""
    label = f"[{name_ranks(ranks)}] "
    return "".join(f"{label}{line}\n" for line in text.removesuffix("\n").split("\n"))


def prefixed_lines(sentences: list[tuple[list[int], str]]) -> list[str]:
    """'ranks 0-3: n is a variable of the notebook ...'"""
    return [f"{name_ranks(ranks)}: {text}" for ranks, text in sentences]


def show_values(answers: list[Answer]) -> None:
    """Values that are text, one entry per group of ranks, aligned: 'ranks 0-3: tensor([6.])'."""
    lines = []
    for ranks, text in alike(answers, lambda a: plain_value(a.value)):
        label = f"{name_ranks(ranks)}: "
        lines.append(label + text.replace("\n", "\n" + " " * len(label)) + "\n")
    if lines:
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


def plain_value(value: dict | None) -> str:
    """The text of a value that has no other form; '' for figures and the like."""
    return value["data"].get("text/plain", "") if value and value["data"].keys() <= {"text/plain"} else ""


def show_displays(answers: list[Answer]) -> None:
    """Figures, HTML and the like, rank by rank; ranks that displayed the same share one entry."""
    from IPython.display import publish_display_data

    for ranks, shown in alike(answers, rich_output):
        for item in shown:
            label, text = f"{name_ranks(ranks)}:", item["data"].get("text/plain", "")
            only_text = item["data"].keys() <= {"text/plain"}
            sys.stdout.write(f"{label} {text}\n" if only_text else f"{label}\n")
            sys.stdout.flush()
            if not only_text:
                publish_display_data(data=item["data"], metadata=item["metadata"])


def rich_output(answer: Answer) -> list[dict]:
    """What the rank displayed, and its value if that has more than one form."""
    shown = list(answer.displays)
    if answer.value is not None and not plain_value(answer.value):
        shown.append(answer.value)
    return [{"data": item["data"], "metadata": item["metadata"]} for item in shown]


def raise_failures(answers: list[Answer]) -> None:
    """Raises `failure`, if there is one."""
    if error := failure(answers):
        raise error


def failure(answers: list[Answer]) -> RankError | RanksStopped | None:
    """What the notebook raises for ranks that failed: RankError, or RanksStopped after the stop button.

    Its `hints` are what the failing code itself says (launch/hints).
    """
    if any(answer.was_doing for answer in answers):
        said = [f"{name_ranks(ranks)} {words[len(ranks) > 1]}" for ranks, words in alike(answers, was_doing)]
        lost = [answer for answer in answers if answer.how is How.DIED]
        for ranks, why in alike(lost, lambda a: f" ({a.deaf})" if a.deaf else " "):
            said.append(f"{name_ranks(ranks)} had to be restarted, the variables there are lost{why.rstrip()}")
        return RanksStopped("; ".join(said))
    trouble = answers[0].trouble
    failures = alike([a for a in answers if a.how in (How.RAISED, How.DIED)], what_failed)
    if not failures and not trouble:
        return None
    report = []
    for ranks, _ in failures[:SHOWN_TRACEBACKS]:
        answer = next(a for a in answers if a.rank == ranks[0])
        if answer.traceback and answer.ename != "MismatchError":  # the sentence below says more
            report += [f"{name_ranks(ranks)}:", *answer.traceback, ""]
    freed = [a.rank for a in answers if a.how is How.FREED and not a.ended]
    if freed and not trouble:
        verb = "was" if len(freed) == 1 else "were"
        report.append(f"{name_ranks(freed)} {verb} waiting in vain and {verb} freed; the variables are still there.")
    hints = prefixed_lines(alike([a for a in answers if a.how is How.RAISED], lambda a: a.hint.text))
    if trouble:
        error = as_error(trouble, report)
        error.hints = hints
        return error
    failed = tuple(sorted(rank for ranks, _ in failures for rank in ranks))
    message = "; ".join(f"{name_ranks(ranks)}{what}" for ranks, what in failures)
    error = RankError(message, failed, tuple(report))
    error.hints = hints + cut_off(answers)
    return error


def was_doing(answer: Answer) -> tuple[str, str]:
    """What the rank was doing when the stop button was pressed: the words for one rank and for several."""
    status = answer.was_doing
    if status is None:
        words = ("had finished",) * 2
    elif status.state == "waiting":
        words = (f"waited in {doing(status)}",) * 2
    elif status.state == "running":
        at = f" at {answer.was_at}" if answer.was_at else ""
        words = f"was running Python code{at}", f"were running Python code{at}"
    else:
        words = ("had not begun the cell",) * 2
    return words


def cut_off(answers: list[Answer]) -> list[str]:
    """A sentence if ranks had no process group any more while others waited for them; else []."""
    lost = any(answer.how is How.RAISED and answer.lost for answer in answers)
    gone = [answer.rank for answer in answers if not answer.has_group]
    if not lost or not gone:
        return []
    return [
        f"{name_ranks(gone)}: there is no process group any more, and others waited for it: call "
        "dist.destroy_process_group() on every rank, after the last message"
    ]


def as_error(trouble: Trouble, report: list[str]) -> RankError:
    """The exception for trouble between ranks."""
    error = trouble.kind(trouble.sentence, trouble.ranks, tuple(report))
    if isinstance(error, DeadlockError):
        error.edges = trouble.edges
    return error


def what_failed(answer: Answer) -> str:
    """': ValueError: no such thing' or ' died (killed by SIGKILL)'."""
    if answer.how is How.DIED:
        return f" died ({answer.evalue})"
    evalue = re.sub(r" at 0x[0-9a-f]+", "", answer.evalue)  # addresses differ from run to run
    if answer.came_back:
        evalue += f" (rank {answer.rank} {answer.came_back} and came back without its variables)"
    return f": {answer.ename}: {evalue}" if evalue else f": {answer.ename}"
