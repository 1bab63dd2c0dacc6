"""What the ranks answered, as the durable output of the cell: the same bytes on every run.

Text first, grouped by rank and in rank order, then the values of the last expression, then figures and other rich
output, each with the ranks it came from. Ranks that said exactly the same share one entry. The live picture of the
running cell is a widget (widgets.RankLog); what is printed here is what a notebook file keeps and what nbval
compares.
"""

from __future__ import annotations

import re
import sys

from launch.cell import Answer
from launch.doing import doing
from launch.errors import RankError, RanksStopped, Trouble, name_ranks

GROUP_IS_THERE = "trying to initialize the default process group twice"
SHOWN_TRACEBACKS = 4  # different ones; more are named only


def show(answers: list[Answer]) -> None:
    """Writes and displays everything that the ranks printed, returned and displayed."""
    show_text(sys.stdout, alike(answers, lambda answer: str(answer.out)))
    show_text(sys.stderr, alike(answers, lambda answer: str(answer.err)))
    show_values(answers)
    show_displays(answers)


def show_text(stream, groups: list[tuple[list[int], str]]) -> None:
    if groups:
        stream.write("".join(prefixed(ranks, text) for ranks, text in groups))
        stream.flush()


def alike(answers: list[Answer], key) -> list[tuple[list[int], object]]:
    """[(ranks, what they have in common)] in the order of their lowest ranks; empty things are left out."""
    groups: list[tuple[list[int], object]] = []
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
    """Every line with the ranks that wrote it in front: '[ranks 0-3] hello'."""
    label = f"[{name_ranks(ranks)}] "
    return "".join(f"{label}{line}\n" for line in text.removesuffix("\n").split("\n"))


def show_values(answers: list[Answer]) -> None:
    """Values that are text, one entry per group, aligned: 'ranks 0-3: tensor([6.])'."""
    lines = []
    for ranks, text in alike(answers, lambda a: plain_value(a.value)):
        label = f"{name_ranks(ranks)}: "
        lines.append(label + text.replace("\n", "\n" + " " * len(label)) + "\n")
    if lines:
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


def plain_value(value: dict | None) -> str:
    """The text of a value that has no other form; '' for figures and the like, which are displayed."""
    return value["data"].get("text/plain", "") if value and value["data"].keys() <= {"text/plain"} else ""


def show_displays(answers: list[Answer]) -> None:
    """Figures, HTML and the like, rank by rank; ranks that displayed the same things share one showing."""
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
    """What the rank displayed, and its last value where that has more than one form."""
    rich_value = answer.value is not None and not plain_value(answer.value)
    shown = [*answer.displays, answer.value] if rich_value else answer.displays
    return [{"data": item["data"], "metadata": item["metadata"]} for item in shown]


def raise_failures(answers: list[Answer], stopped: bool = False) -> None:
    """Raises what the notebook shows for ranks that failed: RankError, or RanksStopped after the stop button."""
    if stopped:
        places = alike(answers, lambda a: doing(a.was_doing) if a.was_doing else "had finished")
        raise RanksStopped("; ".join(f"{name_ranks(ranks)}: {place}" for ranks, place in places))
    trouble = answers[0].trouble
    failures = alike([a for a in answers if a.status in ("error", "died")], what_failed)
    if not failures and not trouble:
        return
    report = []
    for ranks, _ in failures[:SHOWN_TRACEBACKS]:
        answer = next(a for a in answers if a.rank == ranks[0])
        if answer.traceback and answer.ename != "MismatchError":  # which the sentence below tells better
            report += [f"{name_ranks(ranks)}:", *answer.traceback, ""]
    freed = [a.rank for a in answers if a.status == "freed"]
    if freed and not trouble:
        verb = "was" if len(freed) == 1 else "were"
        report.append(f"{name_ranks(freed)} {verb} waiting in vain and {verb} freed; the variables are still there.")
    if trouble:
        raise in_words(trouble, report)
    failed = tuple(sorted(rank for ranks, _ in failures for rank in ranks))
    message = "; ".join(f"{name_ranks(ranks)}{what}" for ranks, what in failures)
    raise RankError(message, failed, tuple(report))


def in_words(trouble: Trouble, report: list[str]) -> RankError:
    """The exception for trouble between ranks."""
    error = trouble.kind(trouble.sentence, trouble.ranks, tuple(report))
    error.edges = trouble.edges
    return error


def what_failed(answer: Answer) -> str:
    """': ValueError: no such thing' or ' died (killed by SIGKILL)'."""
    if answer.status == "died":
        return f" died ({answer.evalue})"
    evalue = re.sub(r" at 0x[0-9a-f]+", "", answer.evalue)  # addresses differ from run to run
    if evalue.startswith(GROUP_IS_THERE):  # torch's words; a program from elsewhere begins with init_process_group
        evalue += " The ranks have a process group already; %%ranks --bare leaves it to the cell."
    return f": {answer.ename}: {evalue}" if evalue else f": {answer.ename}"
