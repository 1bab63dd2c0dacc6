"""Attempts at train_step."""

SOLVED = """
from course.gpt import is_cut
from course.solutions.f_and_g import F, G
from course.solutions.grad_norm import grad_norm

def train_step(x, w, loss_of, mesh):
    data, tensor = mesh.get_group("data"), mesh.get_group("tensor")
    copies = dist.get_world_size(data)
    mine = x.chunk(copies)[mesh.get_local_rank("data")]
    loss = loss_of(w, mine, lambda y: F.apply(y, tensor), lambda y: G.apply(y, tensor))
    loss.backward()
    for p in w.values():
        dist.all_reduce(p.grad, group=data)
        p.grad /= copies
    cut = [p.grad for key, p in w.items() if is_cut(key)]
    kept = [p.grad for key, p in w.items() if not is_cut(key)]
    norm = float(grad_norm(cut, kept, tensor))
    with torch.no_grad():
        for p in w.values():
            p -= 0.5 * min(1.0, 1.0 / norm) * p.grad
            p.grad = None
    loss = loss.detach()
    dist.all_reduce(loss, group=data)
    return loss / copies
"""

RIGHT = {
    "one call for each gradient": SOLVED,
    "a float, and zeros instead of None": SOLVED.replace("return loss / copies", "return loss.item() / copies").replace(
        "p.grad = None", "p.grad.zero_()"
    ),
    "started at once, waited for later": SOLVED.replace(
        """    for p in w.values():
        dist.all_reduce(p.grad, group=data)
        p.grad /= copies
""",
        """    handles = [dist.all_reduce(p.grad, group=data, async_op=True) for p in w.values()]
    for handle in handles:
        handle.wait()
    for p in w.values():
        p.grad /= copies
""",
    ),
}

WRONG = {
    "not written": ("def train_step(x, w, loss_of, mesh):\n    ...\n", "not written yet"),
    "gradients not averaged": (
        SOLVED.replace("dist.all_reduce(p.grad, group=data)", "pass").replace("p.grad /= copies", "pass"),
        " should ",
    ),
    "summed, not averaged": (SOLVED.replace("p.grad /= copies", "pass"), " should "),
    "averaged over all ranks": (
        SOLVED.replace("dist.all_reduce(p.grad, group=data)", "dist.all_reduce(p.grad)").replace(
            "p.grad /= copies", "p.grad /= world_size"
        ),
        " should ",
    ),
    "no f": (SOLVED.replace("lambda y: F.apply(y, tensor)", "lambda y: y"), " should "),
    "no g": (SOLVED.replace("lambda y: G.apply(y, tensor)", "lambda y: y"), " should "),
    "not clipped": (SOLVED.replace("min(1.0, 1.0 / norm)", "1.0"), " should "),
    "clipped by the norm of its own pieces": (
        SOLVED.replace(
            "float(grad_norm(cut, kept, tensor))", "float(torch.stack([g.norm() for g in cut + kept]).norm())"
        ),
        " should ",
    ),
    "gradients pile up": (SOLVED.replace("p.grad = None", "pass"), " should "),
    "the loss of its own part": (
        SOLVED.replace("    dist.all_reduce(loss, group=data)\n    return loss / copies", "    return loss"),
        " should ",
    ),
    "every copy reads the whole batch": (
        SOLVED.replace('mine = x.chunk(copies)[mesh.get_local_rank("data")]', "mine = x"),
        "right result, but rank 0 gives",
    ),
    "gradients twice": (
        SOLVED.replace("p.grad /= copies", "p.grad /= copies; dist.all_reduce(p.grad, group=data); p.grad /= copies"),
        "where",
    ),
    "nothing returned": (SOLVED.replace("return loss / copies", "loss / copies"), "should be a tensor and is None"),
}
