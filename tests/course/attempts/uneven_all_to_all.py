"""Attempts at uneven_all_to_all."""

RIGHT = {
    "as rows of two": """
def uneven_all_to_all(x, counts):
    table = torch.empty(world_size, dtype=torch.int64)
    dist.all_to_all_single(table, torch.tensor(counts, dtype=torch.int64))
    come = [int(number) for number in table]
    out = x.new_empty(sum(come))
    dist.all_to_all_single(out, x, output_split_sizes=come, input_split_sizes=list(counts))
    return out
""",
    "the counts in the dtype of x": """
def uneven_all_to_all(x, counts):
    come = x.new_empty(world_size)
    dist.all_to_all_single(come, x.new_tensor(counts))
    come = come.int().tolist()
    pieces = [x.new_empty(number) for number in come]
    out = torch.cat(pieces)
    dist.all_to_all_single(out, x, come, counts)
    return out
""",
    "under way": """
def uneven_all_to_all(x, counts):
    come = torch.zeros(len(counts), dtype=torch.int32)
    dist.all_to_all_single(come, torch.tensor(counts, dtype=torch.int32), async_op=True).wait()
    come = come.tolist()
    out = torch.zeros(sum(come), dtype=x.dtype)
    work = dist.all_to_all_single(out, x.clone(), come, counts, async_op=True)
    work.wait()
    return out
""",
    "padded to the longest": """
def uneven_all_to_all(x, counts):
    room = 16
    out, buffer = torch.zeros(world_size, 1 + room, dtype=x.dtype), torch.zeros(world_size, 1 + room, dtype=x.dtype)
    for row, piece in zip(buffer, x.split(counts)):
        row[0] = len(piece)
        row[1:1 + len(piece)] = piece
    dist.all_to_all_single(out, buffer)
    return torch.cat([row[1:1 + int(row[0])] for row in out])
""",
}

COUNTS = """
    incoming = torch.empty(world_size, dtype=torch.int64)
    dist.all_to_all_single(incoming, torch.tensor(counts))
    incoming = incoming.tolist()
"""
BODY = """
def uneven_all_to_all(x, counts):{counts}
    out = torch.empty(sum(incoming), dtype=x.dtype)
    {exchange}
    return {result}
"""
GOOD = {"counts": COUNTS, "exchange": "dist.all_to_all_single(out, x, incoming, counts)", "result": "out"}

WRONG = {
    "what goes is what comes": (BODY.format(**GOOD | {"counts": "\n    incoming = counts"}), "no  on 4 ranks"),
    "the lists the wrong way round": (
        BODY.format(**GOOD | {"exchange": "dist.all_to_all_single(out, x, counts, incoming)"}),
        "no  on 4 ranks",
    ),
    "as if pieces were equal": (BODY.format(**GOOD | {"exchange": "dist.all_to_all_single(out, x)"}), "no  on 4 ranks"),
    "everything to everyone": (
        """
def uneven_all_to_all(x, counts):
    parts = [None] * world_size
    dist.all_gather_object(parts, x.split(counts))
    return torch.cat([pieces[rank] for pieces in parts])
""",
        "uses the built-in all_gather",
    ),
    "zeros mark the end of what came": (
        """
def uneven_all_to_all(x, counts):
    rows = x.new_zeros(world_size, 16)
    for row, piece in zip(rows, x.split(counts)):
        row[: len(piece)] = piece
    out = torch.empty_like(rows)
    dist.all_to_all_single(out, rows)
    return out[out != 0]
""",
        "no  on 4 ranks, float32: rank 0: the answer has shape [",
    ),
    "one call for each rank": (
        """
def uneven_all_to_all(x, counts):
    come = []
    for src in range(world_size):
        got = torch.empty(world_size, dtype=torch.int64)
        dist.all_to_all_single(got, torch.tensor(counts))
        come = got.tolist()
    out = torch.empty(sum(come), dtype=x.dtype)
    dist.all_to_all_single(out, x, come, counts)
    return out
""",
        "with 5 calls of built-ins where 2 will do",
    ),
    "always float32": (
        BODY.format(**GOOD).replace("dtype=x.dtype", "dtype=torch.float32"),
        "no  on 2 ranks",
    ),
}
