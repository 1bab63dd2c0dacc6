"""Attempts at overlapped_average."""

RIGHT = {
    "divides first": """
def overlapped_average(model):
    works = []
    def hook(p):
        p.grad /= world_size
        works.append(dist.all_reduce(p.grad, async_op=True))
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    def finish():
        while works:
            works.pop().wait()
    return finish
""",
    "by parameter": """
def overlapped_average(model):
    handles = {}
    def hook(param):
        handles[param] = dist.all_reduce(param.grad, op=dist.ReduceOp.SUM, async_op=True)
    for param in model.parameters():
        param.register_post_accumulate_grad_hook(hook)
    def finish():
        for param in list(handles):
            handles.pop(param).wait()
            param.grad.div_(dist.get_world_size())
    return finish
""",
    "in buckets of two": """
def overlapped_average(model):
    held, under_way = [], []
    def leave():
        if held:
            bucket = torch.cat([p.grad.flatten() for p in held])
            under_way.append((list(held), bucket, dist.all_reduce(bucket, async_op=True)))
            held.clear()
    def hook(p):
        held.append(p)
        if len(held) == 2:
            leave()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    def finish():
        leave()
        for params, bucket, work in under_way:
            work.wait()
            for p, piece in zip(params, bucket.split([p.numel() for p in params])):
                p.grad.copy_(piece.view_as(p) / world_size)
        under_way.clear()
    return finish
""",
}

BODY = """
def overlapped_average(model):
    under_way = []

    def start(p):
        {start}

    def finish():
        {before}
        for p, work in under_way:
            {wait}
            {divide}
        {clear}

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(start)
    return finish
"""
GOOD = {
    "start": "under_way.append((p, dist.all_reduce(p.grad, async_op=True)))",
    "before": "pass",
    "wait": "work.wait()",
    "divide": "p.grad /= world_size",
    "clear": "under_way.clear()",
}

WRONG = {
    "not written": ("def overlapped_average(model):\n    ...\n", "not written yet"),
    "no finish": (
        "def overlapped_average(model):\n    for p in model.parameters():\n"
        "        p.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))\n",
        "no  on 4 ranks",
    ),
    "waits in the hook": (
        BODY.format(**GOOD | {"start": "dist.all_reduce(p.grad); under_way.append((p, None))", "wait": "pass"}),
        "rank 0 waits for its all_reduce (line 5) before it goes on computing",
    ),
    "waits for its handle in the hook": (
        BODY.format(**GOOD | {"start": GOOD["start"] + "; under_way[-1][1].wait()"}),
        "before it goes on computing",
    ),
    "all when the pass is over": (
        BODY.format(
            **GOOD
            | {
                "start": "under_way.append((p, None))",
                "before": "under_way[:] = [(p, dist.all_reduce(p.grad, async_op=True)) for p, _ in under_way]",
            }
        ),
        "the backward pass is at the first layer and no all_reduce has begun: start each",
    ),
    "the sum": (BODY.format(**GOOD | {"divide": "pass"}), "no  on 4 ranks"),
    "keeps old handles": (BODY.format(**GOOD | {"clear": "pass"}), "no  on 4 ranks"),
    "never waits": (
        BODY.format(**GOOD | {"wait": "pass"}),
        "rank 0 never waits for its all_reduce with async_op (line 5): keep what it returns, and wait()",
    ),
    "only what has a bias": (
        BODY.format(**GOOD).replace("model.parameters():", "[p for p in model.parameters() if p.dim() == 1]:"),
        "no  on 4 ranks",
    ),
    "divides what is under way": (
        BODY.format(**GOOD | {"start": GOOD["start"] + "; p.grad /= world_size", "divide": "pass"}),
        "rank 0 writes to the tensor of its all_reduce (line 5) before it waits for that (line 10)",
    ),
    "all in the last hook": (
        BODY.format(
            **GOOD
            | {
                "start": "under_way.append((p, None)); under_way[:] = [(p, dist.all_reduce(p.grad, async_op=True)) "
                "for p, _ in under_way] if len(under_way) == len(list(model.parameters())) else under_way"
            }
        ),
        "the backward pass is at the first layer and no all_reduce has begun",
    ),
    "calls finish": (
        BODY.format(**GOOD).replace("return finish", "return finish()"),
        "it should return a function, which is called after each backward pass, and returned nothing",
    ),
}
