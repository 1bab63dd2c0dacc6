"""Attempts at train_step."""

SOLVED = """
from course.gpt import is_cut
from course.solutions.f_and_g import F, G
from course.solutions.grad_norm import grad_norm

def train_step(x, w, loss_of, mesh):
    data, pipe, tensor = (mesh.get_group(name) for name in ("data", "pipe", "tensor"))
    copies = dist.get_world_size(data)
    works = []
    def leave(p):
        works.append(dist.all_reduce(p.grad, group=data, async_op=True))
    hooks = [p.register_post_accumulate_grad_hook(leave) for p in w.values()]
    mine = x.chunk(copies)[mesh.get_local_rank("data")]
    loss = loss_of(w, mine, lambda y: F.apply(y, tensor), lambda y: G.apply(y, tensor))
    loss.backward()
    for work in works:
        work.wait()
    for hook in hooks:
        hook.remove()
    for p in w.values():
        p.grad /= copies
    loss = loss.detach()
    dist.all_reduce(loss, group=data)
    loss /= copies
    cut = [p.grad for key, p in w.items() if is_cut(key)]
    kept = [p.grad for key, p in w.items() if not is_cut(key)]
    squares = grad_norm(cut, kept, tensor).square().view(())
    dist.all_reduce(squares, group=pipe)
    dist.all_reduce(loss, group=pipe)
    norm = float(squares.sqrt())
    with torch.no_grad():
        for p in w.values():
            p -= 0.5 * min(1.0, 1.0 / norm) * p.grad
            p.grad = None
    return loss
"""
HOOK = "works.append(dist.all_reduce(p.grad, group=data, async_op=True))"
HOOKS = "hooks = [p.register_post_accumulate_grad_hook(leave) for p in w.values()]"

RIGHT = {
    "a float, and zeros instead of None": SOLVED.replace("return loss\n", "return loss.item()\n").replace(
        "p.grad = None", "p.grad.zero_()"
    ),
    "buckets of two gradients": SOLVED.replace(
        HOOK,
        """held.append(p)
        if len(held) == 2:
            full()
    held = []
    def full():
        bucket = torch.cat([p.grad.flatten() for p in held])
        works.append((list(held), bucket, dist.all_reduce(bucket, group=data, async_op=True)))
        held.clear()""",
    ).replace(
        """    for work in works:
        work.wait()
""",
        """    if held:
        full()
    for params, bucket, work in works:
        work.wait()
        for p, piece in zip(params, bucket.split([p.numel() for p in params])):
            p.grad.copy_(piece.view_as(p))
""",
    ),
    "embeddings and biases only after the pass": SOLVED.replace(
        HOOKS, HOOKS.replace("w.values()", "w.values() if p.dim() > 1")
    ).replace(
        "    for work in works:", "    for p in w.values():\n        p.dim() > 1 or leave(p)\n    for work in works:"
    ),
}

WRONG = {
    "averaged after the pass": (
        SOLVED.replace(HOOKS, "hooks = []").replace(
            "    for work in works:", "    for p in w.values():\n        leave(p)\n    for work in works:"
        ),
        "rank 0 has no all_reduce with ranks 0,2 in flight",
    ),
    "the hook waits": (
        SOLVED.replace(HOOK, "dist.all_reduce(p.grad, group=data)"),
        "rank 0 has no all_reduce with ranks 0,2 in flight",
    ),
    "hooks not removed": (SOLVED.replace("hook.remove()", "pass"), "never waits for its all_reduce"),
    "summed, not averaged": (SOLVED.replace("p.grad /= copies", "pass"), "not divided by the number of replicas"),
    "averaged over all ranks": (
        SOLVED.replace("(p.grad, group=data, async_op=True)", "(p.grad, async_op=True)").replace(
            "p.grad /= copies", "p.grad /= world_size"
        ),
        "among ranks that are no group of the mesh",
    ),
    "no f": (SOLVED.replace("lambda y: F.apply(y, tensor)", "lambda y: y"), "so their copies of a weight drift apart"),
    "no g": (
        SOLVED.replace("lambda y: G.apply(y, tensor)", "lambda y: y"),
        "return different losses in the first step",
    ),
    "not clipped": (SOLVED.replace("min(1.0, 1.0 / norm)", "1.0"), "the gradients were not clipped"),
    "clipped by the norm of its own stage": (
        SOLVED.replace("    dist.all_reduce(squares, group=pipe)\n", ""),
        "each stage has clipped by the norm of its own weights",
    ),
    "gradients pile up": (SOLVED.replace("p.grad = None", "pass"), "adds to the gradients of the step before"),
    "the loss of its own part": (
        SOLVED.replace("    dist.all_reduce(loss, group=data)\n    loss /= copies\n", ""),
        "only the loss that it returns is wrong",
    ),
    "every copy reads the whole batch": (
        SOLVED.replace('mine = x.chunk(copies)[mesh.get_local_rank("data")]', "mine = x"),
        "right result, but rank 0 gives",
    ),
}
