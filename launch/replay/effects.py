"""What a built-in collective did, told as transfers between the tensors that its ranks gave it.

How the library moved the data cannot be seen from outside: gloo and NCCL choose their own algorithm. So a recorded
built-in is one step in which everything goes straight from where it was to where it is wanted. That shows what the
collective means; it says nothing about messages, and `Recording.counts` leaves it out.
"""

from launch.replay.matching import Call, Collective, Move

SUMMING = ("all_reduce", "reduce", "reduce_scatter")


def effect(collective: Collective, place) -> list:
    """The moves of one call by all its ranks. `place(call, side, index)` is the region of one of its tensors, or
    None."""
    calls = {call.rank: call for call in collective.calls}
    name = kind_of(collective)
    tell = _TELL.get(name)
    if tell is None:
        return []
    order = [rank for rank in collective.ranks if rank in calls]
    pairs = tell(calls, order, place)
    op = "reduce" if name in SUMMING else "copy"
    moves = []
    for src, dst, source, target in pairs:
        if (
            source is None
            or target is None
            or (src == dst and source == target)
            or source.hi - source.lo != target.hi - target.lo
            or source.hi == source.lo  # all_to_all_single with a split of 0
        ):
            continue
        own = src == dst  # a rank's own part is put in its place before others are added to it
        moves.append(
            Move(collective.step - (own and op == "reduce"), src, dst, source, target, "copy" if own else op,
                 calls[dst].end, collective.calls, 0, calls[dst].event["reduce"].lower() or "sum"))  # fmt: skip
    return moves


def kind_of(collective: Collective) -> str:
    """What the call does, whatever form it has: "all_gather" for all_gather_single."""
    return collective.calls[0].event["op"].removesuffix("_coalesced").removesuffix("_single")


def _all_reduce(calls, order, place):
    for index in range(len(calls[order[0]].event["ins"])):
        for dst in order:
            for src in order:
                yield src, dst, place(calls[src], "ins", index), place(calls[dst], "outs", index)


def _broadcast(calls, order, place):
    root = calls[order[0]].event["peer"]
    for index in range(len(calls[order[0]].event["ins"])):
        for dst in order:
            if root in calls and dst != root:
                yield root, dst, place(calls[root], "ins", index), place(calls[dst], "outs", index)


def _reduce(calls, order, place):
    root = calls[order[0]].event["peer"]
    for src in order:
        if root in calls:
            yield src, root, place(calls[src], "ins", 0), place(calls[root], "outs", 0)


def _all_gather(calls, order, place):
    for dst in order:
        yield from _gather_at(dst, calls, order, place)


def _gather(calls, order, place):
    root = calls[order[0]].event["peer"]
    if root in calls:
        yield from _gather_at(root, calls, order, place)


def _gather_at(dst, calls, order, place):
    for number, src in enumerate(order):
        yield src, dst, place(calls[src], "ins", 0), block_of(calls[dst], "outs", number, len(order), place)


def _scatter(calls, order, place):
    root = calls[order[0]].event["peer"]
    for number, dst in enumerate(order):
        if root in calls:
            yield root, dst, block_of(calls[root], "ins", number, len(order), place), place(calls[dst], "outs", 0)


def _reduce_scatter(calls, order, place):
    for number, dst in enumerate(order):
        for src in order:
            yield src, dst, block_of(calls[src], "ins", number, len(order), place), place(calls[dst], "outs", 0)


def _all_to_all(calls, order, place):
    for here, src in enumerate(order):
        for there, dst in enumerate(order):
            yield (
                src,
                dst,
                block_of(calls[src], "ins", there, len(order), place),
                block_of(calls[dst], "outs", here, len(order), place),
            )


_TELL = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}


def block_of(call: Call, side: str, number: int, ranks: int, place):
    """The part of a call's tensors that belongs to the `number`-th rank: the list's item, or that part of one
    tensor."""
    if len(call.event[side]) > 1 or ranks == 1:
        return place(call, side, number)
    whole = place(call, side, 0)
    if whole is None:
        return None
    splits = call.event["splits"][side == "ins"] if call.event["splits"] else []
    size = whole.hi - whole.lo
    sizes = [split * size // sum(splits) for split in splits] if splits and sum(splits) else [size // ranks] * ranks
    lo = whole.lo + sum(sizes[:number])
    return whole._replace(lo=lo, hi=lo + sizes[number])
