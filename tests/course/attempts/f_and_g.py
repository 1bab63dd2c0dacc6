"""Attempts at f_and_g."""

CLASSES = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {f_forward}
        return {f_out}

    @staticmethod
    def backward(ctx, grad):
        {f_backward}
        return {f_grad}


class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {g_forward}
        return {g_out}

    @staticmethod
    def backward(ctx, grad):
        {g_backward}
        return {g_grad}


def f_and_g(x, piece):
    return {call}
"""
GOOD = {
    "f_forward": "pass",
    "f_out": "x.view_as(x)",
    "f_backward": "grad = grad.clone(); dist.all_reduce(grad)",
    "f_grad": "grad",
    "g_forward": "x = x.clone(); dist.all_reduce(x)",
    "g_out": "x",
    "g_backward": "pass",
    "g_grad": "grad",
    "call": "G.apply(piece(F.apply(x)))",
}

RIGHT = {
    "x itself, and a copy of its own": CLASSES.format(
        **GOOD
        | {
            "f_out": "x",
            "f_backward": "total = grad * 1.0; dist.all_reduce(total, op=dist.ReduceOp.SUM)",
            "f_grad": "total",
        }
    ),
    "a hook instead of F": """
class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x).copy_(x)
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad


def f_and_g(x, piece):
    def add_up(grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad

    x = x.view_as(x)
    x.register_hook(add_up)
    return G.apply(piece(x))
""",
    "with async_op": CLASSES.format(
        **GOOD
        | {
            "f_backward": "grad = grad.contiguous().clone(); dist.all_reduce(grad, async_op=True).wait()",
            "g_forward": "x = x + 0; dist.all_reduce(x, async_op=True).wait()",
        }
    ),
}

WRONG = {
    "G adds up in place": (
        """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad
class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x); return x
    @staticmethod
    def backward(ctx, grad): return grad
def f_and_g(x, piece):
    return G.apply(piece(F.apply(x)))
""",
        "what piece(x) returned was overwritten, and its own backward pass needs it: clone() it",
    ),
    "F adds up the gradient in place": (
        """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad
class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone(); dist.all_reduce(x); return x
    @staticmethod
    def backward(ctx, grad): return grad
def f_and_g(x, piece):
    return G.apply(piece(F.apply(x)))
""",
        "F has added up the very tensor that piece(x) passes to a weight of its own, too; clone() the gradient first",
    ),
    "f does nothing": (
        CLASSES.format(**GOOD | {"f_backward": "pass"}),
        "rank 0: the gradient of x is ",
    ),
    "g does nothing": (
        CLASSES.format(**GOOD | {"g_forward": "pass"}),
        "rank 0: the output is ",
    ),
    "g adds up backward, too": (
        CLASSES.format(**GOOD | {"g_backward": "grad = grad.clone(); dist.all_reduce(grad)"}),
        "the gradient of x is ",
    ),
    "f adds up forward, too": (
        CLASSES.format(**GOOD | {"f_forward": "x = x.clone(); dist.all_reduce(x)", "f_out": "x"}),
        "the output is ",
    ),
    "the wrong way round": (CLASSES.format(**GOOD | {"call": "F.apply(piece(G.apply(x)))"}), "the output is "),
    "an average": (
        CLASSES.format(**GOOD | {"f_backward": "grad = grad.clone(); dist.all_reduce(grad); grad /= world_size"}),
        "the gradient of x is ",
    ),
    "without autograd": (
        """
def f_and_g(x, piece):
    with torch.no_grad():
        out = piece(x)
        dist.all_reduce(out)
    return out
""",
        "rank 0: the gradient of x is 0 0 ... and should be",
    ),
    "one all_reduce, of the whole": (
        """
def f_and_g(x, piece):
    out = piece(x)
    dist.all_reduce(out)
    return out
""",
        "what piece(x) returned was overwritten",
    ),
}
