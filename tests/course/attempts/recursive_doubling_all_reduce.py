"""Attempts at recursive_doubling_all_reduce."""

RIGHT = {
    "batched": """
def recursive_doubling_all_reduce(x):
    for bit in range(world_size.bit_length() - 1):
        got = torch.empty_like(x)
        partner = rank ^ (1 << bit)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, partner), dist.P2POp(dist.irecv, got, partner)]):
            work.wait()
        x += got
""",
    "lower starts its receive first": """
def recursive_doubling_all_reduce(x):
    got, distance = torch.zeros_like(x), world_size // 2
    while distance:
        partner = rank + distance if rank % (2 * distance) < distance else rank - distance
        if rank < partner:
            receiving = dist.irecv(got, partner)
            dist.isend(x, partner).wait()
        else:
            sending = dist.isend(x, partner)
            receiving = dist.irecv(got, partner)
            sending.wait()
        receiving.wait()
        x.add_(got)
        distance //= 2
""",
    "recursive": """
def recursive_doubling_all_reduce(x, d=1):
    if d < world_size:
        keep = x.clone()
        receive = dist.irecv(x, rank ^ d)
        send = dist.isend(keep, rank ^ d)
        send.wait(); receive.wait()
        x += keep
        recursive_doubling_all_reduce(x, 2 * d)
""",
}

LOOP = """
def recursive_doubling_all_reduce(x):
    arriving = torch.empty_like(x)
    distance = 1
    while distance < {limit}:
        partner = {partner}
        sending = dist.isend(x, partner)
        dist.recv(arriving, partner)
        sending.wait()
        {add}
        distance {grow}
"""

WRONG = {
    "receives into x while it is sent": (
        """
def recursive_doubling_all_reduce(x):
    distance = 1
    while distance < world_size:
        receiving = dist.irecv(x, rank ^ distance)
        dist.send(x, rank ^ distance)
        receiving.wait()
        distance *= 2
""",
        "rank 0 wrote to the tensor of its send (line 5) before that was over",
    ),
    "doubles x": (
        """
def recursive_doubling_all_reduce(x):
    d, got = 1, torch.empty_like(x)
    while d < world_size:
        w = dist.irecv(got, rank ^ d)
        dist.send(x, rank ^ d)
        w.wait()
        x *= 2
        d *= 2
""",
        "rank 0: x holds a0 + a0 + a0 + a0 and should hold a0 + b0 + c0 + d0: rank 0's was added 4 times",
    ),
    "lower speaks first": (
        """
def recursive_doubling_all_reduce(x):
    got, distance = torch.zeros_like(x), world_size // 2
    while distance:
        partner = rank + distance if rank % (2 * distance) < distance else rank - distance
        if rank < partner:
            dist.send(x, partner)
            dist.recv(got, partner)
        else:
            dist.recv(got, partner)
            dist.send(x, partner)
        x.add_(got)
        distance //= 2
""",
        "right result, but in 4 steps, one after the other, where 2 are enough: a blocking call makes the next one "
        "wait until it is over",
    ),
    "partners that are not mutual": (
        LOOP.format(limit="world_size", partner="(rank + distance) % world_size", add="x += arriving", grow="*= 2"),
        "wait",
    ),
    "a round too few": (
        LOOP.format(limit="world_size // 2", partner="rank ^ distance", add="x += arriving", grow="*= 2"),
        "rank 0: x holds a0 + b0 and should hold a0 + b0 + c0 + d0: ranks 2-3's never came here",
    ),
    "right only for two and four": (
        LOOP.format(limit="min(world_size, 4)", partner="rank ^ distance", add="x += arriving", grow="*= 2"),
        "no  on 8 ranks",
    ),
    "everybody in turn": (
        """
def recursive_doubling_all_reduce(x):
    mine, arriving = x.clone(), torch.empty_like(x)
    for distance in range(1, world_size):
        sending = dist.isend(mine, rank ^ distance)
        dist.recv(arriving, rank ^ distance)
        sending.wait()
        x += arriving
""",
        "the busiest rank sent 3 N where 2 N are enough",
    ),
    "adds what it began with": (
        """
def recursive_doubling_all_reduce(x):
    mine, arriving = x.clone(), torch.empty_like(x)
    distance = 1
    while distance < world_size:
        sending = dist.isend(mine, rank ^ distance)
        dist.recv(arriving, rank ^ distance)
        sending.wait()
        x += arriving
        distance *= 2
""",
        "rank 3's never came here",
    ),
}
