"""Attempts at bad_rank."""

RIGHT = {
    "two searches": """
def bad_rank(logs):
    for rank in logs:
        if logs[rank][-1].over:
            return rank
    for rank in logs:
        mine = logs[rank][-1]
        theirs = [logs[other][-1] for other in mine.group if other != rank]
        beside = [call for call in theirs if call.group == mine.group and call.number == mine.number]
        if beside and mine not in beside:
            return rank
""",
    "by counting": """
from collections import Counter

def bad_rank(logs):
    last = {rank: calls[-1] for rank, calls in logs.items()}
    idle = [rank for rank in last if last[rank].over]
    if idle:
        return idle[0]
    shapes = Counter((call.group, call.number, call.shape) for call in last.values())
    ranks = Counter((call.group, call.number) for call in last.values())
    for rank, call in last.items():
        if shapes[call.group, call.number, call.shape] == 1 and ranks[call.group, call.number] > 1:
            return rank
""",
    "whose call most do not know": """
def bad_rank(logs):
    def differs(rank):
        mine = logs[rank][-1]
        if mine.over:
            return 9
        theirs = [logs[other][-1] for other in mine.group]
        return sum((call.group, call.number) == (mine.group, mine.number) and call != mine for call in theirs)
    return max(logs, key=differs)
""",
    "by argmax": """
import numpy as np

def bad_rank(logs):
    def differs(rank):
        mine = logs[rank][-1]
        theirs = [logs[other][-1] for other in mine.group]
        return 9 * mine.over + sum((c.group, c.number) == (mine.group, mine.number) and c != mine for c in theirs)
    return np.argmax([differs(rank) for rank in range(len(logs))])
""",
}

WRONG = {
    "always rank 0": ("def bad_rank(logs):\n    return 0\n", "it was not rank 0: that one waits in call"),
    "only who is in no call, else nothing": (
        """
def bad_rank(logs):
    for rank, calls in logs.items():
        if calls[-1].over:
            return rank
""",
        "should return one rank, an int, and returned nothing",
    ),
    "the fewest calls": (
        """
def bad_rank(logs):
    return min(logs, key=lambda rank: logs[rank][-1].number)
""",
        "and has done its part",
    ),
    "the others in its group are elsewhere": (
        """
def bad_rank(logs):
    for rank, calls in logs.items():
        others = [logs[other][-1] for other in calls[-1].group if other != rank]
        if calls[-1].over or all(call.number != calls[-1].number for call in others):
            return rank
    return 0
""",
        "and has done its part",
    ),
    "counted from 1": (
        """
def bad_rank(logs):
    for rank, calls in logs.items():
        others = [logs[other][-1] for other in calls[-1].group if other != rank]
        same = [call for call in others if (call.group, call.number) == (calls[-1].group, calls[-1].number)]
        if calls[-1].over or same and calls[-1] not in same:
            return rank + 1
""",
        "that one waits in call",
    ),
    "a class of its own": (
        """
def bad_rank(logs):
    from course.night import Night
    Night.why_not = lambda night, rank: ""
    return 0
""",
        "it was not rank 0: that one waits in call",
    ),
    "no such rank": ("def bad_rank(logs):\n    return len(logs)\n", "there is no rank 64"),
}
