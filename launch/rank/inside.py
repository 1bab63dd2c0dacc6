"""What gloo sends inside its collectives: who sends which share of the data to whom, step by step.

Seen in gloo's source (gloo/allreduce.cc, broadcast.cc, allgather.cc ...; torch's ProcessGroupGloo.cpp for
reduce_scatter) and counted on the connections, which tests/launch/test_inside.py does again. A step is a list of (from,
to, share): positions in the group, and bytes as a share of what `amount` says. A rank begins a step when it has what it
received in the one before.

An all_to_all_single may be uneven, and a rank knows its own pieces only: what it sends to each rank, and what comes
from each. Of two other ranks it supposes that the one sends the other what it sends there itself. So each rank is right
about when its own data are there, and about when it has sent all as far as the ranks send alike.

Left out: segments. gloo cuts long tensors, so that a rank passes on the first part while the next one comes: a long
all_reduce is a little quicker than its steps.
"""

from __future__ import annotations

Step = list[tuple[int, int, float]]


def steps_of(op: str, p: int, root: int) -> list[Step] | None:
    """None for an op that is not known here. `root` is a position in the group of `p`."""
    op = op.removesuffix("_coalesced").removesuffix("_single")
    if op in ("all_reduce", "reduce_scatter"):  # gloo reduces everywhere, and torch keeps a part of it
        return _ring(p, 2 * (p - 1), 1 / p, -1)
    if op == "all_gather":
        return _ring(p, p - 1, 1.0, 1)
    if op == "broadcast":
        return _binomial(p, root)
    if op == "reduce":
        return [*_ring(p, p - 1, 1 / p, -1), [(rank, root, 1 / p) for rank in range(p) if rank != root]]
    if op == "gather":
        return [[(rank, root, 1.0) for rank in range(p) if rank != root]]
    if op == "scatter":
        return [[(root, rank, 1.0) for rank in range(p) if rank != root]]
    if op == "all_to_all":
        return [[(rank, (rank + hop) % p, 1 / p) for hop in range(1, p) for rank in range(p)]]
    if op == "barrier":
        hops = [1 << i for i in range((p - 1).bit_length())]
        return [[(rank, (rank + hop) % p, 0.0) for rank in range(p)] for hop in hops]
    return None


def uneven(own: int, sent: list[int], received: list[int]) -> list[Step]:
    """The step of an all_to_all_single whose pieces differ, in bytes: `own` sends these to each rank of the group, and
    gets those from each."""
    p = len(sent)
    pairs = [(rank, (rank + hop) % p) for hop in range(1, p) for rank in range(p)]
    step = [(src, dst, float(received[src] if dst == own else sent[dst])) for src, dst in pairs]
    return [[(src, dst, nbytes) for src, dst, nbytes in step if nbytes]]


def amount(op: str, ins: int, outs: int) -> int:
    """The bytes of which `steps_of` has shares: of one rank's block in scatter, of what it hands in everywhere else."""
    return outs if op == "scatter" else ins or outs


def _ring(p: int, steps: int, share: float, way: int) -> list[Step]:
    return [[(rank, (rank + way) % p, share) for rank in range(p)] for _ in range(steps)]


def _binomial(p: int, root: int) -> list[Step]:
    """In step k the 2^k ranks that have it, counted from the root, pass it on to the next 2^k."""
    return [
        [((v + root) % p, (v + (1 << k) + root) % p, 1.0) for v in range(min(1 << k, p - (1 << k)))]
        for k in range((p - 1).bit_length())
    ]
