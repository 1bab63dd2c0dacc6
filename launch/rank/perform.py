"""In the rank: carry out this rank's part of a Schedule with torch's point-to-point calls.

launch/execute.py turns a Schedule into one plain program per rank; here it is performed, one
`dist.batch_isend_irecv` per step, receives first: gloo says that a receive is ready on the connection that also
carries the data the other way, and behind them it would make a pair that sends both ways take twice as long. A rank
knows no Schedule, so that it need not load `collectives`. What arrives is kept aside until every message of the step
has been sent, so all reads of a step see the buffers from before it.

Pieces of a buffer are [first chunk, number of chunks]; a step is a dict of three lists:
"sends" of [dst, [[buffer, piece], ...]], "recvs" of [src, [[buffer, piece, op], ...]], and "locals" of
[src_buffer, piece, dst_buffer, piece, op], where op is "copy" or "reduce" (add).
"""

import torch
import torch.distributed as dist


def run(programs: dict, x: torch.Tensor, rank: int) -> torch.Tensor:
    """Perform the steps of `rank`; `x` is its first buffer. Return the buffer that holds the result, as a new tensor.

    ValueError if `x` does not divide into the schedule's chunks.
    """
    chunks = programs["chunks"]
    if not isinstance(x, torch.Tensor) or x.dim() != 1 or x.numel() % chunks:
        shape = list(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
        raise ValueError(f"the schedule has {chunks} chunks: it needs a 1-D tensor of a multiple of that, got {shape}")
    buffers = {name: torch.zeros_like(x).view(chunks, -1) for name in programs["buffers"]}
    buffers[programs["buffers"][0]].copy_(x.view(chunks, -1))
    for step in programs["steps"][rank]:
        perform(step, buffers)
    return buffers[programs["result"]].flatten()


def perform(step: dict, buffers: dict[str, torch.Tensor]) -> None:
    """One step on this rank's `buffers`, each of shape (chunks, elements of a chunk), in place."""
    _exchange(step["sends"], step["recvs"], buffers)
    for src_buffer, src_piece, dst_buffer, dst_piece, op in step["locals"]:
        _apply(op, _piece(buffers, dst_buffer, dst_piece), _piece(buffers, src_buffer, src_piece).clone())


def _exchange(sends: list, recvs: list, buffers: dict) -> None:
    """Send and receive this step's messages at the same time, then put what arrived in its places."""
    some = next(iter(buffers.values()))
    arrived = [some.new_empty(sum(piece[1] for _, piece, _ in pieces), some.shape[1]) for _, pieces in recvs]
    calls = [dist.P2POp(dist.irecv, message, src) for (src, _), message in zip(recvs, arrived, strict=True)]
    calls += [dist.P2POp(dist.isend, _joined(pieces, buffers), dst) for dst, pieces in sends]
    if calls:
        for work in dist.batch_isend_irecv(calls):
            work.wait()
    for (_, pieces), message in zip(recvs, arrived, strict=True):
        parts = message.split([piece[1] for _, piece, _ in pieces])
        for (buffer, piece, op), part in zip(pieces, parts, strict=True):
            _apply(op, _piece(buffers, buffer, piece), part)


def _joined(pieces: list, buffers: dict) -> torch.Tensor:
    """One contiguous message of all the pieces; a single piece is not copied."""
    views = [_piece(buffers, buffer, piece) for buffer, piece in pieces]
    return views[0] if len(views) == 1 else torch.cat(views)


def _piece(buffers: dict, buffer: str, piece: list) -> torch.Tensor:
    first, count = piece
    return buffers[buffer][first : first + count]


def _apply(op: str, target: torch.Tensor, arriving: torch.Tensor) -> None:
    if op == "reduce":
        target += arriving
    else:
        target.copy_(arriving)
