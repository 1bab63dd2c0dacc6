"""Attempts at ring_any_length."""

RING = """
def ring_any_length(x):
    chunks = list(SPLIT)
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mine = chunks[(rank - 2 - step) % world_size]
        arriving = torch.empty_like(BUFFER)
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        mine += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(chunks[(rank - 1 - step) % world_size], left)
        sending.wait()
"""
SPLIT, BUFFER = "x.tensor_split(world_size)", "mine"


def ring(split=SPLIT, buffer=BUFFER):
    return RING.replace("SPLIT", split).replace("BUFFER", buffer)


RIGHT = {
    "sizes by hand": ring("x.split([len(x) // world_size + (k < len(x) % world_size) for k in range(world_size)])"),
    "the rest to the last": ring("x.tensor_split([k * len(x) // world_size for k in range(1, world_size)])"),
    "padded": """
def ring_any_length(x):
    padded = torch.zeros(-(-len(x) // world_size) * world_size, dtype=x.dtype)
    padded[: len(x)] = x
    chunks = list(padded.chunk(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(chunks[(rank - 1 - step) % world_size], left)
        sending.wait()
    x.copy_(padded[: len(x)])
""",
}

WRONG = {
    "chunk, which may give too few": (ring("x.chunk(world_size)"), "IndexError: list index out of range"),
    "one buffer like the first": (
        ring(buffer="chunks[0]"),  # which of two ranks is seen first is chance
        "receives 12 bytes of float32 (line 8)",
    ),
    "the rest in the last chunk": (
        ring(
            "[*x[: (world_size - 1) * (len(x) // world_size)].chunk(world_size - 1), "
            "x[(world_size - 1) * (len(x) // world_size) :]]"
        ),
        "4 numbers in one message (line 7), where 3 are asked",
    ),
    "the rest is left out": (
        ring("x[: len(x) // world_size * world_size].chunk(world_size)"),
        "x (elements 8-9) holds a0 and should hold a0 + b0 + c0 + d0",
    ),
    "padding that is not copied back": (
        RIGHT["padded"].replace("    x.copy_(padded[: len(x)])\n", ""),
        "x is as it was; the answer must be in x itself",
    ),
    "whole vectors": (
        """
def ring_any_length(x):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    passing, arriving = x.clone(), torch.empty_like(x)
    for step in range(world_size - 1):
        sending = dist.isend(passing, right)
        dist.recv(arriving, left)
        sending.wait()
        x += arriving
        passing, arriving = arriving, passing
""",
        "that is the whole vector sent p - 1 times; send one chunk of it at a time",
    ),
}
