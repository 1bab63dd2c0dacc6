"""Attempts at bucketed_average."""

RIGHT = {
    "plan first": """
def bucketed_average(grads, cap):
    plan, full = [], True
    for grad in grads[::-1]:
        if full:
            plan.append([])
        plan[-1].append(grad)
        full = sum(g.numel() for g in plan[-1]) >= cap
    for held in plan:
        flat = torch.cat([g.reshape(-1) for g in held]) / world_size
        dist.all_reduce(flat)
        start = 0
        for g in held:
            g[...] = flat[start:start + g.numel()].reshape(g.shape)
            start += g.numel()
""",
    "counting": """
def bucketed_average(grads, cap):
    held, size = [], 0
    left = len(grads)
    for g in reversed(grads):
        held, size, left = held + [g], size + g.numel(), left - 1
        if size >= cap or left == 0:
            bucket = torch.cat([h.flatten() for h in held])
            dist.all_reduce(bucket, op=dist.ReduceOp.SUM)
            for h, piece in zip(held, bucket.split([h.numel() for h in held])):
                h.copy_(piece.view_as(h)).div_(world_size)
            held, size = [], 0
""",
    "all under way at once": """
def bucketed_average(grads, cap):
    under_way, held = [], []
    for i in reversed(range(len(grads))):
        held.append(grads[i])
        if i == 0 or sum(g.numel() for g in held) >= cap:
            bucket = torch.cat([g.flatten() for g in held])
            under_way.append((held, bucket, dist.all_reduce(bucket, async_op=True)))
            held = []
    for held, bucket, work in under_way:
        work.wait()
        for g, piece in zip(held, bucket.split([g.numel() for g in held])):
            g.copy_(piece.view_as(g) / world_size)
""",
    "vector_to_parameters": """
def bucketed_average(grads, cap):
    todo = list(grads)
    while todo:
        held = [todo.pop()]
        while todo and sum(map(torch.numel, held)) < cap:
            held.append(todo.pop())
        bucket = torch.nn.utils.parameters_to_vector(held)
        dist.all_reduce(bucket)
        torch.nn.utils.vector_to_parameters(bucket / world_size, held)
""",
}

BODY = """
def bucketed_average(grads, cap):
    held = []
    for grad in {order}:
        held.append(grad)
        if {closes}:
            average(held)
            held = []
    {last}

def average(held):
    bucket = torch.cat([grad.flatten() for grad in held])
    dist.all_reduce(bucket)
    {divide}
    for grad, piece in zip(held, bucket.split([grad.numel() for grad in held])):
        {back}
"""
GOOD = {
    "order": "reversed(grads)",
    "closes": "sum(grad.numel() for grad in held) >= cap",
    "last": "if held: average(held)",
    "divide": "bucket /= world_size",
    "back": "grad.copy_(piece.view_as(grad))",
}

WRONG = {
    "the last bucket stays": (
        """
def bucketed_average(grads, cap):
    held = []
    for g in reversed(grads):
        held.append(g)
        if sum(t.numel() for t in held) >= cap:
            flat = torch.cat([t.flatten() for t in held])
            dist.all_reduce(flat)
            flat /= world_size
            for t, piece in zip(held, flat.split([t.numel() for t in held])):
                t.copy_(piece.view_as(t))
            held = []
""",
        "it was never full, so it never left; after the loop average what is still in it",
    ),
    "one call each": (
        BODY.format(**GOOD | {"closes": "True"}),
        "right result, but rank 0 gives its calls 1, 5, 2, 4, 3, 1, 6, 2 numbers, where 8, 8, 8 are asked",
    ),
    "one bucket": (BODY.format(**GOOD | {"closes": "False"}), "rank 0 gives its calls 24 numbers, where 8, 8, 8 are"),
    "closes when it is too full": (
        BODY.format(**GOOD | {"closes": "sum(grad.numel() for grad in held) > cap"}),
        "where 8, 8, 8 are asked",
    ),
    "counts tensors": (BODY.format(**GOOD | {"closes": "len(held) >= cap"}), "where 8, 8, 8 are asked"),
    "forgets the one that is not full": (BODY.format(**GOOD | {"last": "pass"}), "no  on 2 ranks"),
    "the sum": (BODY.format(**GOOD | {"divide": "pass"}), "that is the sum; divide it by world_size"),
    "divides twice": (
        BODY.format(**GOOD | {"back": "grad.copy_(piece.view_as(grad) / world_size)"}),
        "all of it is 4 times too small",
    ),
    "names instead of memory": (BODY.format(**GOOD | {"back": "grad = piece.view_as(grad)"}), "x is as it was"),
    "takes two ranks for granted": (BODY.format(**GOOD | {"divide": "bucket /= 2"}), "no  on 4 ranks"),
    "divides before the wait": (
        BODY.format(**GOOD | {"divide": "work.wait()"}).replace(
            "dist.all_reduce(bucket)", "work = dist.all_reduce(bucket, async_op=True); bucket /= world_size"
        ),
        "rank 0 writes to the tensor of its all_reduce (line 12) before it waits for that (line 13)",
    ),
}
