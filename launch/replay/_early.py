"""Missing waits: ops and calls that touch the tensor of a call before the wait for it is over.

`work = dist.all_reduce(x, async_op=True); x /= 4; work.wait()` ends with the right numbers or with wrong ones, as it
happens. The op log has the ops between the call and the end of its wait, and where in memory they read and wrote, so
that nothing here depends on luck.

Left out: calls that are not waited for, and what DDP does in C++.
"""

from launch.replay._torch_ops import Op, Place, makes, runs
from launch.shared.capture import BEGIN, END

ITSELF = """_unsafe_view wait_tensor _wrap_tensor_autograd all_gather_into_tensor all_reduce all_to_all_single broadcast
reduce_scatter_tensor""".split()
"""Ops that only hand their tensor on, and the functional collectives, which are the call itself."""


def early_uses(rows: list, ops: list[Op], places: list[Place], events: list[dict]) -> tuple[set[int], dict[int, bool]]:
    """Two results: the numbers of the sends whose data are overwritten before they are over; and for each other call
    whose tensors are used before its wait, whether they were written (True) or only read (False)."""
    changed, used, under_way, waited = set(), {}, {}, set()
    for at, row in enumerate(rows):
        if row[0] == BEGIN:
            event = events[row[1]]
            for number, other in under_way.items():
                if _meet(_written(event), _sent(other)):
                    changed.add(number)
                if _meet(_written(other), _sent(event)):
                    changed.add(row[1])
            if event["kind"] != "collective" or event["wait_row"] is not None:
                under_way[row[1]] = event
        elif row[0] == END:
            under_way.pop(row[1], None)
            waited.add(row[1])
        elif type(row[0]) is int and under_way:
            outs = _spans(places, row[1])
            ins = [] if makes(ops[row[0]].name) else _spans(places, row[2])  # torch.zeros_like(x) asks x for its shape
            for number, event in under_way.items():
                if event["kind"] == "send":
                    if _meet(outs, _sent(event)):
                        changed.add(number)
                elif number not in used and event["wait_row"] is not None and at < event["wait_row"]:
                    # gloo's reduce_scatter copies its result only in the wait itself
                    wrote = _meet(outs, event["ins"] + event["outs"])
                    own = event["native"] or ops[row[0]].name in ITSELF
                    if not own and (wrote or _meet(ins, event["outs"])):
                        used[number] = wrote
    return changed & waited, used


def _written(event: dict) -> list:
    return [] if event["kind"] == "send" else event["outs"]


def _sent(event: dict) -> list:
    return event["ins"] if event["kind"] == "send" else []


def _spans(places: list[Place], numbers: list[int]) -> list[tuple[int, int, int]]:
    """(storage, first byte, bytes) of the places of an op; none of one that is too scattered."""
    found = []
    for place in (places[n] for n in numbers if n >= 0 and places[n].numel):
        cut, size = runs(place, place.shape), place.itemsize
        if cut is not None:
            found += [(place.storage, first * size, cut[1] * size) for first in cut[0]]
    return found


def _meet(some: list, others: list) -> bool:
    """Whether any [storage, first byte, bytes] lies over any of the others."""
    return any(a and b and a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2] for a in some for b in others)
