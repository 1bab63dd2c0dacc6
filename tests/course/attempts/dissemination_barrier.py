"""Attempts at dissemination_barrier."""

RIGHT = {
    "one tensor for both, since what is in it does not matter": """
def dissemination_barrier():
    news, distance = torch.ones(1), 1
    while distance < world_size:
        sending = dist.isend(news, (rank + distance) % world_size)
        dist.recv(news, (rank - distance) % world_size)
        sending.wait()
        distance *= 2
""",
    "to the left": """
def dissemination_barrier():
    hop = 1
    while hop < world_size:
        a, b = torch.zeros(1), torch.zeros(1)
        receiving = dist.irecv(b, (rank + hop) % world_size)
        sending = dist.isend(a, (rank - hop) % world_size)
        receiving.wait()
        sending.wait()
        hop = hop * 2
""",
    "batched": """
def dissemination_barrier():
    from math import ceil, log2
    word = torch.tensor([rank])
    for k in range(ceil(log2(world_size))):
        calls = [dist.P2POp(dist.isend, word, (rank + 2**k) % world_size),
                 dist.P2POp(dist.irecv, torch.empty_like(word), (rank - 2**k) % world_size)]
        [work.wait() for work in dist.batch_isend_irecv(calls)]
""",
    "recursive": """
def tell(distance):
    if distance < world_size:
        work = dist.isend(torch.ones(2), (rank + distance) % world_size)
        dist.recv(torch.empty(2), (rank - distance) % world_size)
        work.wait()
        tell(2 * distance)

def dissemination_barrier():
    tell(1)
""",
    "doubling where it can": """
def dissemination_barrier():
    note = torch.zeros(1)
    d = 1
    while d < world_size:
        if world_size & (world_size - 1) == 0:
            to = come = rank ^ d
        else:
            to, come = (rank + d) % world_size, (rank - d) % world_size
        work = dist.isend(torch.ones(1), to)
        dist.recv(note, come)
        work.wait()
        d *= 2
""",
}

ROUND = """
    def round(distance):
        work = dist.isend(torch.ones(1), (rank + distance) % world_size)
        dist.recv(torch.empty(1), (rank - distance) % world_size)
        work.wait()
"""

WRONG = {
    "nothing": ("def dissemination_barrier():\n    pass\n", "may leave before rank"),
    "one round": (f"def dissemination_barrier():{ROUND}    round(1)\n", "may leave before rank"),
    "always the neighbour": (
        f"def dissemination_barrier():{ROUND}    for _ in range(world_size // 2):\n        round(1)\n",
        "may leave before rank",
    ),
    "one round too few if p is odd": (
        f"""
def dissemination_barrier():{ROUND}
    d = 1
    while 2 * d <= world_size:
        round(d)
        d *= 2
""",
        "no  on 5 ranks",
    ),
    "tells before it knows": (
        """
def dissemination_barrier():
    work, d = [], 1
    while d < world_size:
        work.append(dist.isend(torch.ones(1), (rank + d) % world_size))
        work.append(dist.irecv(torch.empty(1), (rank - d) % world_size))
        d *= 2
    for w in work:
        w.wait()
""",
        "may leave before rank",
    ),
    "only reports": (
        """
def dissemination_barrier():
    if rank == 0:
        for src in range(1, world_size):
            dist.recv(torch.empty(1), src)
    else:
        dist.send(torch.ones(1), 0)
""",
        "rank 1 may leave before rank 0 has come",
    ),
    "through rank 0": (
        """
def dissemination_barrier():
    word = torch.ones(1)
    if rank == 0:
        for src in range(1, world_size):
            dist.recv(word, src)
        for dst in range(1, world_size):
            dist.send(word, dst)
    else:
        dist.send(word, 0)
        dist.recv(word, 0)
""",
        "steps, one after the other",
    ),
    "round the ring": (
        f"def dissemination_barrier():{ROUND}    for _ in range(world_size - 1):\n        round(1)\n",
        "messages where",
    ),
    "the built-in": ("def dissemination_barrier():\n    dist.barrier()\n", "uses the built-in barrier"),
}
