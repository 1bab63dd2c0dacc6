"""Who did not wait: an op of the rank's own that touches the tensor of a call before the wait for it is over.

`work = dist.all_reduce(x, async_op=True); x /= 4; work.wait()` ends with the right numbers or with wrong ones, as it
happens. The op log has the ops between the call and the end of its wait, and where in memory they read and wrote, so
that nothing here depends on luck.

Left out: tensors that are scattered too widely; sends (`_replay` knows which of them were written to), calls that
are not waited for, what DDP does in C++.
"""

from typing import NamedTuple

from launch.replay._calls import Call
from launch.replay._replay import MOST_AHEAD, Replay
from launch.replay._torch_ops import makes, runs

ITSELF = """_unsafe_view wait_tensor all_gather_into_tensor all_reduce all_to_all_single broadcast
reduce_scatter_tensor""".split()
"""Ops that only hand their tensor on, and the functional collectives, which are the call itself."""


class EarlyUse(NamedTuple):
    """Before it waited, the call's rank wrote to what the call works on, or read what it brings."""

    call: Call
    wrote: bool


def used_before_wait(replay: Replay) -> list[EarlyUse]:
    """The first such use of each call."""
    found = []
    for rank in replay.ranks.values():
        for number, (begin, _) in rank.spans.items():
            event = rank.events[number]
            wait = event["wait_row"]  # gloo's reduce_scatter copies its result only in the wait itself
            if event["kind"] == "send" or begin is None or wait is None or event["native"]:
                continue
            for row in rank.rows[begin + 1 : min(wait, begin + MOST_AHEAD)]:
                if type(row[0]) is not int or rank.ops[row[0]].name in ITSELF:
                    continue
                outs, ins = row[1:3]
                wrote = _meets(rank, outs, [*event["ins"], *event["outs"]])
                reads = [] if makes(rank.ops[row[0]].name) else ins  # torch.zeros_like(x) asks x for its shape alone
                if wrote or _meets(rank, reads, event["outs"]):
                    found.append(EarlyUse(Call(rank.number, number, event), wrote))
                    break
    return found


def _meets(rank, numbers: list[int], places: list) -> bool:
    """Whether any of the places of an op's row lies over one of those of a call: [storage, first byte, bytes]."""
    for place in (rank.places[n] for n in numbers if n >= 0):
        cut = runs(place, place.shape) if place.numel else None
        firsts, length = cut or ((), 0)  # none: too scattered to know
        for first in firsts:
            lo, hi = first * place.itemsize, (first + length) * place.itemsize
            if any(p and p[0] == place.storage and p[1] < hi and lo < p[1] + p[2] for p in places):
                return True
    return False
