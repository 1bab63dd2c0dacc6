"""Attempts at shift."""

RIGHT = {
    "batched": """
def shift(x):
    arriving = torch.empty_like(x)
    left, right = rank - 1 if rank else world_size - 1, (rank + 1) % world_size
    calls = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, arriving, left)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return arriving
""",
    "receive first, then wait": """
def shift(x):
    got = torch.zeros_like(x)
    receiving = dist.irecv(got, src=(rank + world_size - 1) % world_size)
    sending = dist.isend(x, dst=(rank + 1) % world_size)
    for work in (sending, receiving):
        work.wait()
    return got
""",
    "both in flight": """
def shift(x):
    new = x.clone()
    work = [dist.irecv(new, (rank - 1) % world_size), dist.isend(x, (rank + 1) % world_size)]
    for each in work:
        each.wait()
    return new
""",
}

HEAD = """
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(x)
"""

WRONG = {
    "a chain": (
        """
def shift(x):
    new = torch.empty_like(x)
    if rank == 0:
        dist.send(x, 1)
        dist.recv(new, world_size - 1)
    else:
        dist.recv(new, rank - 1)
        dist.send(x, (rank + 1) % world_size)
    return new
""",
        "right result, but in 4 steps, one after the other, where 1 is enough: a blocking call makes the next one "
        "wait until it is over",
    ),
    "odd and even": (
        """
def neighbours():
    return (rank - 1) % world_size, (rank + 1) % world_size

def shift(x):
    left, right = neighbours()
    new = x.clone()
    if rank % 2:
        dist.recv(new, left)
        dist.send(x, right)
    else:
        dist.send(x, right)
        dist.recv(new, left)
    return new
""",
        "right result, but in 2 steps, one after the other, where 1 is enough: a blocking call makes the next one "
        "wait until it is over",
    ),
    "everyone sends first": (
        f"def shift(x):{HEAD}    dist.send(x, right)\n    dist.recv(arriving, left)\n    return arriving\n",
        "wait in send",
    ),
    "everyone receives first": (
        f"def shift(x):{HEAD}    dist.recv(arriving, left)\n    dist.send(x, right)\n    return arriving\n",
        "wait in recv",
    ),
    "waits too early": (
        f"""
def shift(x):{HEAD}
    dist.isend(x, right).wait()
    dist.irecv(arriving, left).wait()
    return arriving
""",
        "wait in send",
    ),
    "the wrong way round": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, left)
    dist.recv(arriving, right)
    sending.wait()
    return arriving
""",
        "rank 1's is where rank 3's should",
    ),
    "in place": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x.clone(), right)
    dist.recv(arriving, left)
    sending.wait()
    x.copy_(arriving)
    return x
""",
        "x was changed",
    ),
    "nothing returned": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    dist.recv(arriving, left)
    sending.wait()
""",
        "should be a tensor and is None",
    ),
    "round the ring one by one": (
        f"""
def shift(x):{HEAD}
    parcel = torch.empty(world_size, len(x), dtype=x.dtype)
    parcel[rank] = x
    for step in range(world_size - 1):
        sending = dist.isend(parcel[(rank - step) % world_size], right)
        dist.recv(parcel[(rank - 1 - step) % world_size], left)
        sending.wait()
    return parcel[rank - 1]
""",
        "sent 3 N where 1 N",
    ),
    "x itself": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    dist.recv(arriving, left)
    sending.wait()
    return x
""",
        "ranks 0-3: the answer is x itself, as it was; return the tensor that you received into",
    ),
    "what recv returns": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    arriving = dist.recv(arriving, left)
    sending.wait()
    return arriving
""",
        "is an int; dist.recv fills the tensor that you pass in, and returns only the sender's number: return that",
    ),
    "both tensors": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    dist.recv(arriving, left)
    sending.wait()
    return arriving, x
""",
        "should be a tensor and is a tuple of 2 tensors; return one tensor",
    ),
    "into x while it is sent": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    dist.recv(x, left)
    sending.wait()
    return x
""",
        "nobody knows what went out; receive into another tensor, and change this one only after wait()",
    ),
    "never waited for, although kept": (
        f"""
def shift(x):{HEAD}
    sending = dist.isend(x, right)
    receiving = dist.irecv(arriving, left)
    sending.wait()
    return arriving
""",
        "wait",
    ),
    "the built-in": (
        """
def shift(x):
    everyone = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everyone, x)
    return everyone[rank - 1]
""",
        "uses the built-in all_gather",
    ),
}
