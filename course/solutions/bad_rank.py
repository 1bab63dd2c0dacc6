"""Two tests: a rank that is in no call is not in the one that the others wait in; else one call differs from the rest.

Two mistakes: to accuse a rank because it has made the fewest calls (its group may wait for another group), and to
compare a call with those of other groups.
Another way: count, for each call, how many ranks of its group are in it; seven of eight point at the eighth.
"""


def bad_rank(logs):
    """The rank that the others wait for; logs[rank] are its last calls, the oldest first."""
    last = {rank: calls[-1] for rank, calls in logs.items()}
    for rank, call in last.items():
        others = [last[other] for other in call.group if other != rank]
        same = [other for other in others if (other.group, other.number) == (call.group, call.number)]
        if call.over or same and all(other.shape != call.shape for other in same):
            return rank
