"""Attempts at ring_attention."""

SOLVED = """
def ring_attention(x):
    q, k, v = x
    block = torch.stack([k, v])
    largest = q.new_full((len(q), 1), -torch.inf)
    total, y = torch.zeros_like(largest), torch.zeros_like(q)
    for step in range(world_size):
        scores = q @ block[0].T / q.shape[1] ** 0.5
        now = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)
        powers, keep = torch.exp(scores - now), torch.exp(largest - now)
        total = keep * total + powers.sum(dim=1, keepdim=True)
        y = keep * y + powers @ block[1]
        largest = now
        if step < world_size - 1:
            coming = torch.empty_like(block)
            sending = dist.isend(block, (rank + 1) % world_size)
            dist.recv(coming, (rank - 1) % world_size)
            sending.wait()
            block = coming
    return y / total
"""

RIGHT = {
    "first use, then send": SOLVED,
    "to the left": SOLVED.replace("(rank + 1)", "(rank - 2 + world_size)")
    .replace("(rank - 1)", "(rank + 1)")
    .replace("(rank - 2 + world_size)", "(rank - 1)"),
    "keys and values in two messages": """
def ring_attention(x):
    q, k, v = x
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    parts = []
    for step in range(world_size):
        scores = q @ k.T / 2
        parts.append((torch.logsumexp(scores, 1, keepdim=True), torch.softmax(scores, 1) @ v))
        if step < world_size - 1:
            next_k, next_v = torch.empty_like(k), torch.empty_like(v)
            work = [dist.isend(k.contiguous(), right, tag=1), dist.isend(v.contiguous(), right, tag=2)]
            work += [dist.irecv(next_k, left, tag=1), dist.irecv(next_v, left, tag=2)]
            for each in work:
                each.wait()
            k, v = next_k, next_v
    weights = torch.softmax(torch.cat([size for size, _ in parts], dim=1), dim=1)
    return sum(weights[:, i : i + 1] * y for i, (_, y) in enumerate(parts))
""",
    "all blocks kept, one softmax": """
def ring_attention(x):
    q, k, v = x
    blocks = [torch.stack([k, v])]
    for _ in range(world_size - 1):
        coming = torch.empty_like(blocks[0])
        sending = dist.isend(blocks[-1], (rank + 1) % world_size)
        dist.recv(coming, (rank - 1) % world_size)
        sending.wait()
        blocks.append(coming)
    keys, values = torch.cat(blocks, dim=1)
    return torch.softmax(q @ keys.T / 2, dim=1) @ values
""",
}

WRONG = {
    "its own block only": (
        "def ring_attention(x):\n    q, k, v = x\n    return torch.softmax(q @ k.T / 2, dim=1) @ v\n",
        " should ",
    ),
    "no maximum": (
        SOLVED.replace(
            "now = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)", "now = 0 * largest.clamp(0, 0)"
        ),
        " should ",
    ),
    "the largest begins at 0": (SOLVED.replace("-torch.inf", "0"), "look for a division by zero"),
    "the largest of the first block for all": (
        SOLVED.replace(
            "now = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)",
            "now = largest if step else scores.max(dim=1, keepdim=True).values",
        ),
        " should ",
    ),
    "what was kept is not rescaled": (SOLVED.replace("keep * ", ""), " should "),
    "queries travel, too": (
        SOLVED.replace("torch.stack([k, v])", "torch.stack([k, v, q])"),
        "the queries travel, too",
    ),
    "one round too many": (SOLVED.replace("if step < world_size - 1:", "if True:"), "that is p rounds"),
}
