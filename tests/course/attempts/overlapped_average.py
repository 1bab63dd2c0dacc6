"""Attempts at overlapped_average."""

BODY = """
def overlapped_average(model, cap):
    held, under_way = [], []

    def leave():
        bucket = torch.cat([p.grad.flatten() for p in held])
        {start}
        {emptied}

    def ready(p):
        {collect}

    def finish():
        {flush}
        for params, bucket, work in under_way:
            {wait}
            {divide}
            for p, piece in zip(params, bucket.split([p.numel() for p in params])):
                p.grad.copy_(piece.view_as(p))
        {clear}

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(ready)
    return finish
"""
GOOD = {
    "start": "under_way.append((list(held), bucket, dist.all_reduce(bucket, async_op=True)))",
    "emptied": "held.clear()",
    "collect": "held.append(p); sum(q.numel() for q in held) >= cap and leave()",
    "flush": "held and leave()",
    "wait": "work.wait()",
    "divide": "bucket /= world_size",
    "clear": "under_way.clear()",
}

RIGHT = {
    "divides first": BODY.format(
        **GOOD | {"start": "bucket /= world_size; " + GOOD["start"], "divide": "pass"},
    ),
    "counts as it goes": """
def overlapped_average(model, cap):
    state = {"held": [], "numbers": 0, "calls": []}
    def leave():
        params, state["held"], state["numbers"] = state["held"], [], 0
        flat = torch.cat([p.grad.view(-1) for p in params])
        state["calls"].append((params, flat, dist.all_reduce(flat, op=dist.ReduceOp.SUM, async_op=True)))
    def hook(p):
        state["held"].append(p)
        state["numbers"] += p.grad.numel()
        if state["numbers"] >= cap:
            leave()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    def finish():
        if state["held"]:
            leave()
        while state["calls"]:
            params, flat, work = state["calls"].pop(0)
            work.wait()
            at = 0
            for p in params:
                p.grad = (flat[at : at + p.numel()] / world_size).view_as(p)
                at += p.numel()
    return finish
""",
    "a class": """
class Bucket:
    def __init__(self):
        self.params, self.flat, self.work = [], None, None
    def numbers(self):
        return sum(p.numel() for p in self.params)
    def leave(self):
        self.flat = torch.cat([p.grad.flatten() for p in self.params])
        self.work = dist.all_reduce(self.flat, async_op=True)
    def back(self):
        self.work.wait()
        for p, piece in zip(self.params, self.flat.split([p.numel() for p in self.params])):
            p.grad.copy_(piece.div(world_size).view_as(p))

def overlapped_average(model, cap):
    buckets = [Bucket()]
    def hook(p):
        buckets[-1].params.append(p)
        if buckets[-1].numbers() >= cap:
            buckets[-1].leave()
            buckets.append(Bucket())
    def finish():
        if buckets[-1].params:
            buckets[-1].leave()
        else:
            buckets.pop()
        for bucket in buckets:
            bucket.back()
        buckets[:] = [Bucket()]
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    return finish
""",
}

WRONG = {
    "no finish": (
        "def overlapped_average(model, cap):\n    for p in model.parameters():\n"
        "        p.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))\n",
        "no  on 4 ranks",
    ),
    "no buckets": (
        BODY.format(**GOOD | {"collect": "held.append(p); leave()"}),
        "gives its calls 1, 4, 4, 12, 3, 15, 1, 4, 4, 12, 3, 15 numbers, where 21, 18, 21, 18 are asked",
    ),
    "waits in the hook": (
        BODY.format(
            **GOOD | {"start": "dist.all_reduce(bucket); under_way.append((list(held), bucket, None))", "wait": "pass"}
        ),
        "rank 0 waits for its all_reduce (line 6) before it goes on computing",
    ),
    "all when the pass is over": (
        BODY.format(**GOOD | {"collect": "held.append(p)"}),
        "the backward pass is at the first layer and no all_reduce has begun: start each",
    ),
    "the sum": (BODY.format(**GOOD | {"divide": "pass"}), "no  on 4 ranks"),
    "the last bucket never leaves": (BODY.format(**GOOD | {"flush": "pass"}), "no  on 4 ranks"),
    "old gradients stay in the bucket": (BODY.format(**GOOD | {"emptied": "pass"}), "no  on 4 ranks"),
    "never waits": (
        BODY.format(**GOOD | {"wait": "pass"}),
        "rank 0 ",
    ),
    "closes a bucket when it holds more than cap": (
        BODY.format(**GOOD | {"collect": "held.append(p); sum(q.numel() for q in held) > cap and leave()"}),
        "gives its calls 21, 18, 21, 18 numbers, where 9, 12, 18, 9, 12, 18 are asked",
    ),
    "closes a bucket one too late": (
        BODY.format(**GOOD | {"collect": "sum(q.numel() for q in held) >= cap and leave(); held.append(p)"}),
        "no  on 4 ranks",
    ),
    "calls finish": (
        BODY.format(**GOOD).replace("return finish", "return finish()"),
        "it should return a function, which is called after each backward pass, and returned nothing",
    ),
}
