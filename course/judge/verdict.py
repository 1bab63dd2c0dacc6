"""What is wrong with a trial, as a sentence that teaches.

The faults are looked for in the order in which one explains the others: it used the built-in, it sent another dtype,
it did not wait, or not soon enough, the result is wrong, it touched what it should not, it talked to the wrong ranks,
the result came otherwise than by messages, it sent too many bytes, or too many of them far, or between machines, it
sent too many messages, or too much in one, it never made a call that is asked for, its calls were given something else
than asked, it waited too early, or hides nothing. The first that is found is said.
"""

import ast
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np

from course.exercises.exercise import MESSAGES_ONLY
from course.judge import causes, diagnosis, overlap
from course.judge.knowledge import knowledge
from course.judge.overlap import built_ins_of
from launch.shared.errors import DeadlockError, LostMessageError, name_ranks

LIST_ITEM = re.compile(r"^\s*((\w+)\[.+\]) = ", re.MULTILINE)


@np.errstate(invalid="ignore")  # in memory that nobody has filled numpy may meet a nan that it warns of
def fault(trial) -> str:
    """The first fault of a `course.judge.trial.Trial` that came to its end, as a sentence; "" if there is none."""
    judges = (
        built_in,
        _sent_dtype,
        unawaited,
        _hurried,
        _result,
        _raced,
        _touched,
        _peers,
        _knows_by_message,
        _bytes,
        _far,
        _across,
        _budget,
        _messages,
        _numbers_in_one,
        _fan,
        _steps,
        _uses,
        _calls,
        _given,
        overlap.waits,
        overlap.hides,
    )
    return next(filter(None, (judge(trial) for judge in judges)), "")


def praise(trial) -> str:
    """What was right, as one line."""
    counts = trial.calls.counts()
    if not counts.messages:
        return "right on every rank"
    sent = f"{_plural(counts.messages, 'message')} in {_plural(counts.steps, 'step')}"
    if "x" in trial.exercise.call:
        sent += f", the busiest rank sent {_number(Fraction(counts.busiest, _whole(trial)))} N"
    return f"right on every rank; {sent}"


def built_in(trial) -> str:
    """What it used that it may not; of a trial that failed on the way, too, where that is the deeper fault."""
    allowed = trial.exercise.allowed
    used = sorted({event.op for event in trial.calls.events} - allowed) if trial.calls else []
    if not used:
        return ""
    if not allowed:
        return f"it calls {used[0]}, but every rank can know this without a word from the others"
    return f"it uses the built-in {used[0]}; use only {_listed(allowed)}"


def _sent_dtype(trial) -> str:
    others = {event.dtype.removeprefix("torch.") for event in trial.calls.events if event.dtype} - {trial.dtype}
    if not _keeps_dtype(trial) or not others:
        return ""
    return f"it sends {sorted(others)[0]}, but x is {trial.dtype}: make buffers with torch.empty_like"


def unawaited(trial, lines: set[int] | None = None) -> str:
    """A call that is not waited for may still be under way: the result would be right by luck. With `lines` only the
    calls of these."""
    for event in sorted(trial.calls.events, key=lambda event: event.rank) if trial.calls else ():
        if event.end is None and (lines is None or event.line in lines):
            what = f"isend to rank {event.peer}" if event.op == "send" else f"irecv from rank {event.peer}"
            what = what if event.op in MESSAGES_ONLY else f"{event.op} with async_op"
            return f"rank {event.rank} never waits for its {what} (line {event.line}): keep what it returns, and wait()"
    return ""


def _hurried(trial) -> str:
    """A built-in whose tensor is used before it was waited for: the numbers are right or wrong as it happens."""
    return causes.hurried(trial.calls, built_in=True)


def dropped(trial) -> str:
    """Of a trial that hung or lost a message: a call that the function never waits for, whoever happened to suffer.

    Which messages are lost, and whether one rank waits for ever for it, is chance; the sentence is not.
    """
    if trial.calls is None or not isinstance(trial.error, (DeadlockError, LostMessageError)):
        return ""
    lines = never_waited(trial.source)
    return unawaited(trial, lines) if lines else ""


def never_waited(source: str) -> set[int]:
    """The lines of isend and irecv whose value is not kept, or kept under a name that is never used."""
    tree, found = ast.parse(source), set()
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    idle = {value.value for value in alone if isinstance(value, ast.Attribute)}  # sending.wait, without ()
    used = {node.id for node in read if node not in idle}
    for node in ast.walk(tree):
        value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in ("isend", "irecv"):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if target is None or isinstance(target, ast.Name) and target.id not in used:
                found.add(value.lineno)
    return found


def _result(trial) -> str:
    judged = [
        (rank, seen, expected)
        for rank, (seen, expected) in enumerate(zip(trial.answers, trial.expected, strict=True))
        if expected is not None
    ]
    for rank, seen, expected in judged:
        if kind := _wrong_kind(trial, seen, expected):
            return f"rank {rank}: the answer {kind}{diagnosis.place_in_x(trial, rank)}"
    wrong = [rank for rank, seen, expected in judged if not _right(trial)(seen["values"], expected).all()]
    if not wrong:
        return ""
    if trial.exercise.in_place and not _changed(trial):
        why = f"the answer must be in x itself: x += y, or x.copy_(y){_list_items(trial)}"
        return f"{name_ranks(wrong)}: x is as it was; {diagnosis.slip_of(trial, wrong[0]) or why}"
    others = f"; {name_ranks(wrong[1:])} {'are' if len(wrong) > 2 else 'is'} wrong too" if wrong[1:] else ""
    same = [rank for rank in wrong if trial.answers[rank].get("is x") and trial.calls.events]
    if not trial.exercise.in_place and same and not _changed(trial):
        return f"{name_ranks(same)}: the answer is x itself, as it was; return the tensor that you received into"
    first = first_wrong(trial)
    assert first, "some rank is wrong"
    return diagnosis.explain(trial, first) + others


def _list_items(trial) -> str:
    """What to say of `chunks[i] = y`, if the function has such a line."""
    found = LIST_ITEM.search(trial.source)
    return f"; {found[1]} = ... only puts another tensor into the list" if found and found[2] != "x" else ""


def _wrong_kind(trial, seen: dict, expected) -> str:
    """What is wrong with an answer before its numbers are looked at."""
    if seen["is"] == "NoneType":
        return "should be a tensor and is None: the function must return it"
    if seen["is"] != "Tensor":
        article = "an" if seen["is"][0] in "aeiou" else "a"
        return f"should be a tensor and is {article} {seen['is']}{_of_what(trial, seen)}"
    if seen["device"] != "cpu":
        return f"is on the device {seen['device']} and should be on cpu, as x is"
    if _keeps_dtype(trial) and seen["dtype"] != trial.dtype:
        return f"is {seen['dtype']} and should be {trial.dtype}, as x is"
    if "values" not in seen or seen["values"].dtype.kind not in "iuf":
        return "should be an ordinary tensor of real numbers"
    if seen["values"].shape != expected.shape:
        shape, longer = list(seen["values"].shape), seen["values"].ndim == expected.ndim + 1
        joined = longer and seen["values"].size == expected.size
        do = "; torch.cat joins pieces end to end, torch.stack puts them in rows" if joined else ""
        return f"has shape {shape} and should have {list(expected.shape)}{do}"
    return ""


def _of_what(trial, seen: dict) -> str:
    """What is known of an answer that is no tensor, and what to do."""
    if seen.get("tensors"):
        return f" of {_plural(seen['tensors'], 'tensor')}; return one tensor"
    if seen["is"] == "int" and "recv" in trial.exercise.allowed:
        return "; dist.recv fills the tensor that you pass in, and returns only the sender's number: return that tensor"
    return ""


def _raced(trial) -> str:
    if trial.exercise.synchronises:
        return ""  # there the numbers do not matter
    luck = causes.raced(trial.calls) or causes.hurried(trial.calls)
    return f"right result by luck: {luck}" if luck else ""


@np.errstate(invalid="ignore")
def first_wrong(trial) -> diagnosis.Wrong | None:
    """Where a trial that came to its end is wrong first; None if all numbers are right."""
    return diagnosis.first_wrong(trial, _right(trial))


def _right(trial):
    """What says for each number whether it is right: the very same, or off by at most `rtol` of the largest."""
    rtol = trial.exercise.rtol

    def right(values, expected) -> np.ndarray:
        values, expected = values.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
        return np.abs(values - expected) <= rtol * float(np.abs(expected).max(initial=0))

    return right


def _touched(trial) -> str:
    changed = _changed(trial)
    if trial.exercise.in_place or not changed:
        return ""
    views = "chunk(" in trial.source or "split(" in trial.source
    remedy = ": the pieces of x are views of it, so clone() the one that you write to" if views else ""
    return f"{name_ranks(changed)}: x was changed; it must stay as it was{remedy}"


def _peers(trial) -> str:
    peers = trial.exercise.peers
    for event in trial.calls.events if peers else ():
        if event.op == "send" and event.peer not in peers(event.rank, trial.p):
            return f"rank {event.rank} sent to rank {event.peer}; it may talk to only {trial.exercise.talks}"
    return ""


def _knows_by_message(trial) -> str:
    """Ranks share no memory: what a rank knows of another's x, a message has told it, if by way of others."""
    for rank, known in enumerate(knowledge(trial.calls)):
        missing = min(trial.exercise.needs(rank, trial.p) - known, default=None)
        if missing is None:
            continue
        if trial.exercise.synchronises:
            return (
                f"rank {rank} may leave before rank {missing} has come: no message tells it that, not even by way of "
                "others"
            )
        return (
            f"right result, but no message has told rank {rank} what rank {missing} had, not even by way of others: "
            "it must come in messages, not by files, stores or other back doors"
        )
    return ""


def in_order_of_arrival(trial) -> str:
    """A result that is right only if the ranks begin in a certain order."""
    line = _receives_from_any(trial.source)
    answers = trial.once_more("reversed") if line else None
    for rank, (seen, expected) in enumerate(zip(answers or (), trial.expected, strict=False)):
        if expected is None or not _wrong_kind(trial, seen, expected) and _right(trial)(seen["values"], expected).all():
            continue
        return (
            f"right result by luck: line {line} receives from any rank, and with the messages in another order rank "
            f"{rank} has another result; name the rank that you receive from, or use the number that recv returns"
        )
    return ""


def _receives_from_any(source: str) -> int:
    """The first line with a recv or irecv that names no rank; 0 if there is none."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("recv", "irecv"):
            named = node.args[1:2] + [each.value for each in node.keywords if each.arg in ("src", "group_src", None)]
            if all(isinstance(value, ast.Constant) and value.value is None for value in named):
                return node.lineno
    return 0


def smuggled(trial) -> str:
    """A result that stays right although all that is sent is changed on the way did not come in messages."""
    waiting = [rank for rank in range(trial.p) if trial.exercise.needs(rank, trial.p) - {rank}]
    if trial.exercise.synchronises or not waiting:
        return ""
    answers = trial.once_more("tampered")
    for rank in waiting if answers else ():
        seen, expected = answers[rank], trial.expected[rank]
        if expected is None or _wrong_kind(trial, seen, expected):
            continue
        if _right(trial)(seen["values"], expected).all():
            return (
                f"right result, but not from what was sent: with other numbers in every message rank {rank} had the "
                "same result; it must come in messages, not by files, stores or other back doors"
            )
    return ""


def _bytes(trial) -> str:
    if trial.exercise.busiest is None:
        return ""
    sent, bound = Fraction(trial.calls.counts().busiest, _whole(trial)), trial.exercise.busiest(trial.p)
    if sent <= bound:
        return ""
    why = next((f": {why}" for times, why in trial.exercise.why_bytes.items() if sent == times(trial.p)), "")
    return f"right result, but the busiest rank sent {_number(sent)} N where {_number(bound)} N are enough{why}"


def _far(trial) -> str:
    """What leaves a machine, if two ranks make one."""
    sent: Counter[int] = Counter()
    for event in trial.calls.events:
        if event.op == "send" and event.peer != event.rank ^ 1:
            sent[event.rank] += event.bytes
    if trial.exercise.far is None or not sent:
        return ""
    most, bound = Fraction(max(sent.values()), _whole(trial)), trial.exercise.far(trial.p)
    if most <= bound:
        return ""
    return (
        f"right result, but {_number(most)} N went farther than to the neighbour rank ^ 1, where {_number(bound)} N "
        "are enough: which rank should get the long messages?"
    )


def _across(trial) -> str:
    """What goes between the machines, if the first half of the ranks is one and the second half the other."""
    if trial.exercise.across is None:
        return ""
    bound, given = trial.exercise.across(trial.p), Counter[int]()
    for event in sorted(trial.calls.events, key=lambda event: (event.rank, event.line)):
        if event.op in MESSAGES_ONLY or len({2 * member // trial.p for member in event.group}) == 1:
            continue
        given[event.rank] += event.bytes
        alone, together = (Fraction(each, _whole(trial)) for each in (event.bytes, given[event.rank]))
        if together > bound:
            much = f"{_number(alone)} N to {event.op}" if alone > bound else f"{_number(together)} N to its collectives"
            return (
                f"right result, but rank {event.rank} gives {much} between the machines (line {event.line}), where "
                f"{_number(bound)} N are enough: share the work inside the machine first, so that each rank takes only "
                "its own piece across"
            )
    return ""


def _budget(trial) -> str:
    """What one rank gives to all the built-ins of one group together."""
    if trial.exercise.budget is None:
        return ""
    given: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for event in trial.calls.events:
        if event.op not in MESSAGES_ONLY and len(event.group) > 1:
            given[event.rank, tuple(sorted(event.group))] += event.bytes
    for (rank, group), found in sorted(given.items()):
        enough = trial.exercise.budget(group, trial.p)
        if found > enough:
            return (
                f"right result, but rank {rank} gives {found:,} bytes to the collectives of {name_ranks(group)}, where "
                f"{enough:,} are enough"
            )
    return ""


def _messages(trial) -> str:
    return _too_many("messages", trial.calls.counts().messages, trial.exercise.messages, trial.p)


def _numbers_in_one(trial) -> str:
    most = trial.exercise.numbers and trial.exercise.numbers(trial.draw)
    for event in sorted(trial.calls.events, key=lambda event: (event.rank, event.start)) if most else ():
        found = sum(map(math.prod, event.shape))
        if event.op == "send" and found > most:
            return (
                f"right result, but rank {event.rank} sends {found} numbers in one message (line {event.line}), where "
                f"{most} are asked"
            )
    return ""


def _fan(trial) -> str:
    """A rank that alone has as many messages as make more steps than are asked, if it has one at a time."""
    if not trial.exercise.one_port:
        return ""
    most = trial.exercise.steps(trial.p)
    for op, does, other in (("send", "sends", "sends"), ("recv", "receives", "receives")):
        for rank in range(trial.p):
            found = sum(event.op == op and event.rank == rank for event in trial.calls.events)
            if found > most:
                return (
                    f"right result, but rank {rank} {does} {_plural(found, 'message')}, which pass through its NIC one "
                    f"after the other; in a tree no rank {other} more than {most} (log2(p), rounded up)"
                )
    return ""


def _one_port(trial) -> int:
    """How many steps it takes if in each of them a rank sends or receives one message."""
    starts = {}
    for event in trial.calls.events:
        if event.op == "send":
            starts.setdefault((event.rank, event.peer), event.start)
    last = [0] * trial.p
    for step in trial.recording.steps:
        pairs = {(each.src, each.dst) for each in step.transfers if each.src != each.dst}
        while pairs:  # what can go first goes first; what a rank sends, in the order in which it does
            src, dst = min(pairs, key=lambda pair: (max(last[pair[0]], last[pair[1]]), starts.get(pair, 0)))
            last[src] = last[dst] = max(last[src], last[dst]) + 1
            pairs.remove((src, dst))
    return max(last)


def _steps(trial) -> str:
    steps = trial.calls.counts().steps
    if trial.exercise.one_port:
        steps = max(steps, _one_port(trial))
    many = _too_many("steps, one after the other,", steps, trial.exercise.steps, trial.p)
    return f"{many}: {trial.exercise.why_steps}" if many and trial.exercise.why_steps else many


def _uses(trial) -> str:
    """Built-ins without which it moves or keeps more than it should."""
    for ops, (times, why) in trial.exercise.uses.items():
        for rank in range(trial.p):
            calls = sum(event.op in ops for event in built_ins_of(trial, rank))
            if calls < times:
                called = "calls" if calls else "never calls"
                often = f" {_plural(calls, 'time')}, where {times} are asked" if calls else ""
                return f"right result, but rank {rank} {called} {' or '.join(sorted(ops))}{often}: {why}"
    return ""


def _calls(trial) -> str:
    """Built-ins: what they send inside is not recorded, so what is judged is how often and with how much."""
    built_in = [built_ins_of(trial, rank) for rank in range(trial.p)]
    most, bound = max(map(len, built_in)), trial.exercise.calls
    if bound is not None and most > bound(trial.p):
        return f"right result, but with {most} calls of built-ins where {_number(Fraction(bound(trial.p)))} will do"
    most, bound = max([0, *(event.bytes for mine in built_in for event in mine)]), trial.exercise.call_bytes
    if bound is not None and most > bound(trial.p):
        return f"right result, but one call moves {most} bytes: a few numbers per rank are enough, not the data"
    return ""


def _given(trial) -> str:
    """What each call of a built-in was given, and in which order."""
    if trial.exercise.given is None:
        return ""
    asked = trial.exercise.given(trial.draw)
    for rank in range(trial.p):
        found = [sum(map(math.prod, event.shape)) for event in built_ins_of(trial, rank)]
        if found != asked:
            gives, where = (", ".join(map(str, numbers)) for numbers in (found, asked))
            return f"right result, but rank {rank} gives its calls {gives} numbers, where {where} are asked"
    return ""


def _too_many(what: str, number: int, bound, p: int) -> str:
    if bound is None or number <= bound(p):
        return ""
    return f"right result, but in {number} {what} where {bound(p)} {'is' if bound(p) == 1 else 'are'} enough"


def _changed(trial) -> list[int]:
    """The ranks whose x holds something else than before."""
    return [
        rank
        for rank, (seen, given) in enumerate(zip(trial.after, trial.given, strict=True))
        if not ("values" in seen and np.array_equal(seen["values"], given))
    ]


def _keeps_dtype(trial) -> bool:
    """Whether all is done in the dtype of x: where there is one, and the answer is copies and sums of it."""
    by_copies = trial.exercise.allowed <= MESSAGES_ONLY or trial.exercise.textbook is not None
    return by_copies and "x" in trial.exercise.call


def _whole(trial) -> int:
    """The bytes of N."""
    return {"x": trial.given, "expected": trial.expected}[trial.exercise.whole][0].nbytes


def _listed(allowed: frozenset[str]) -> str:
    """What may be used, as a student types it."""
    names = {"send": "send, isend", "recv": "recv, irecv"}
    return ", ".join(names.get(op, op) for op in sorted(allowed, key=lambda op: (op not in names, op != "send", op)))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _number(value: Fraction) -> str:
    """1.5, 3, 0.667: at most three decimals."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
