"""Attempts at tree_reduce."""

RIGHT = {
    "an irecv from each child at once": """
def tree_reduce(x):
    kids, d = [], 1
    while rank % (2 * d) == 0 and d < world_size:
        if rank + d < world_size:
            kids.append(rank + d)
        d *= 2
    bufs = [torch.empty_like(x) for _ in kids]
    works = [dist.irecv(b, k) for b, k in zip(bufs, kids)]
    for w, b in zip(works, bufs):
        w.wait()
        x += b
    if rank:
        dist.send(x, rank - d)
""",
    "by halves of the ranks": """
def tree_reduce(x):
    reach = 1
    while reach < world_size:
        reach *= 2
    half = reach // 2
    while half >= 1:
        if half <= rank < 2 * half:
            dist.send(x, rank - half)
        elif rank < half and rank + half < world_size:
            got = torch.empty_like(x)
            dist.recv(got, rank + half)
            x.add_(got)
        half //= 2
""",
    "recursive": """
def tree_reduce(x, step=1):
    if step >= world_size:
        return
    if rank % step == 0:
        if (rank // step) % 2:
            dist.isend(x, rank - step).wait()
        elif rank + step < world_size:
            got = torch.zeros_like(x)
            dist.irecv(got, rank + step).wait()
            x += got
        tree_reduce(x, 2 * step)
""",
    "bits": """
def tree_reduce(x):
    bit = 0
    while not rank >> bit & 1 and 1 << bit < world_size:
        peer = rank | 1 << bit
        if peer < world_size:
            got = x.new_empty(x.shape)
            dist.recv(got, peer)
            x.copy_(x + got)
        bit += 1
    if rank:
        dist.send(x, rank & ~(1 << bit))
""",
}

LOOP = """
def tree_reduce(x):
    arriving = torch.empty_like(x)
    distance = 1
    while distance < world_size:
        if rank % (2 * distance) == distance:
            dist.send(x, rank - distance)
            return
        if {condition}:
            dist.recv(arriving, rank + distance)
            {add}
        distance *= 2
"""

WRONG = {
    "an irecv from everybody at once": (
        """
def tree_reduce(x):
    if rank == 0:
        bufs = [torch.empty_like(x) for _ in range(1, world_size)]
        for w in [dist.irecv(b, s + 1) for s, b in enumerate(bufs)]:
            w.wait()
        for b in bufs: x += b
    else:
        dist.send(x, 0)
""",
        "rank 0 receives 3 messages, which pass through its NIC one after the other; in a tree no rank receives",
    ),
    "the even multiples send": (
        LOOP.format(condition="rank + distance < world_size", add="x += arriving").replace("== distance", "== 0"),
        "left the cell without the matching send; rank 0 raised ValueError: there is no rank -1",
    ),
    "a chain": (
        """
def tree_reduce(x):
    got = torch.empty_like(x)
    if rank + 1 < world_size:
        dist.recv(got, rank + 1)
        x += got
    if rank:
        dist.send(x, rank - 1)
""",
        "in 3 steps, one after the other, where 2 are enough",
    ),
    "one rank too far": (LOOP.format(condition="rank + distance <= world_size", add="x += arriving"), "rank"),
    "always": (LOOP.format(condition="True", add="x += arriving"), "no  on 5 ranks"),
    "never": (LOOP.format(condition="False", add="x += arriving"), "no  on 4 ranks"),
    "forgets to add": (
        LOOP.format(condition="rank + distance < world_size", add="x.copy_(arriving)"),
        "the rank's own piece is missing (it wrote there last on line 10), and so are ranks 1-2's",
    ),
    "an all-reduce": (
        """
def tree_reduce(x):
    got = torch.empty_like(x)
    distance = 1
    while distance < world_size:
        partner = rank ^ distance
        if partner < world_size:
            sending = dist.isend(x, partner)
            dist.recv(got, partner)
            sending.wait()
            x += got
        distance *= 2
""",
        "the busiest rank sent 2 N where 1 N are enough",
    ),
}
