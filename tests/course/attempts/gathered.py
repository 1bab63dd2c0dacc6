"""Attempts at gathered."""

RIGHT = {
    "with lists": """
class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard):
        pieces = [torch.empty_like(shard) for _ in range(world_size)]
        dist.all_gather(pieces, shard)
        return torch.cat(pieces)

    @staticmethod
    def backward(ctx, grad):
        mine = torch.empty_like(grad.chunk(world_size)[rank])
        dist.reduce_scatter(mine, list(grad.contiguous().chunk(world_size)))
        return mine


def gathered(x):
    return Whole.apply(x)
""",
    "setup_context": """
def gathered(x):
    class Whole(torch.autograd.Function):
        @staticmethod
        def forward(shard):
            whole = torch.empty(world_size, shard.numel(), dtype=shard.dtype)
            dist.all_gather_single(whole.view(-1), shard.detach())
            return whole.flatten()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.shape = inputs[0].shape

        @staticmethod
        def backward(ctx, grad):
            mine = grad.new_zeros(ctx.shape)
            dist.reduce_scatter_single(mine, grad.contiguous())
            return mine

    return Whole.apply(x)
""",
    "a hook instead of a function": """
def gathered(x):
    whole = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(whole, x.detach())
    whole.requires_grad_()

    def scatter(grad):
        mine = torch.empty_like(x)
        dist.reduce_scatter_single(mine, grad.contiguous())
        x.grad = mine

    whole.register_hook(scatter)
    return whole
""",
}

BODY = """
def gathered(x):
    class Gather(torch.autograd.Function):
        @staticmethod
        def forward(ctx, shard):
            whole = torch.empty(world_size * shard.numel(), dtype=shard.dtype)
            {forward}
            return whole

        @staticmethod
        def backward(ctx, grad):
            piece = torch.empty(grad.numel() // world_size, dtype=grad.dtype)
            {backward}
            return piece

    return {call}
"""
GOOD = {
    "forward": "dist.all_gather_single(whole, shard)",
    "backward": "dist.reduce_scatter_single(piece, grad.contiguous())",
    "call": "Gather.apply(x)",
}

WRONG = {
    "cuts out its part": (
        BODY.format(**GOOD | {"backward": "piece = grad.chunk(world_size)[rank]"}),
        "that is this rank's own gradient of its shard",
    ),
    "the average": (
        BODY.format(**GOOD | {"backward": GOOD["backward"] + "; piece /= world_size"}),
        "the gradients of the shard were averaged",
    ),
    "all-reduces": (
        BODY.format(
            **GOOD
            | {"backward": "grad = grad.clone(); dist.all_reduce(grad); piece = grad.chunk(world_size)[rank].clone()"}
        ),
        "it uses the built-in all_reduce; use only ",
    ),
    "never gathered": (
        BODY.format(**GOOD | {"forward": "whole = shard.repeat(world_size)"}),
        "and should be ",
    ),
    "no way back": (
        """
def gathered(x):
    whole = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(whole, x.detach())
    return whole
""",
        "rank 0: the answer (from element ",
    ),
    "in half precision": (
        BODY.format(
            **GOOD | {"backward": "half = piece.half(); dist.reduce_scatter_single(half, grad.half()); piece = half"}
        ),
        "rank 0: the answer (from element 80 on)",
    ),
    "gathers once more": (
        BODY.format(**GOOD | {"forward": 2 * (GOOD["forward"] + "; ")}),
        "right result, but with 3 calls of built-ins where 2 will do",
    ),
    "gathers all gradients": (
        BODY.format(
            **GOOD
            | {
                "backward": "every = grad.new_empty(world_size * len(grad)); dist.all_gather_single(every, grad); "
                "piece = every.view(world_size, world_size, -1)[:, rank].sum(0)"
            }
        ),
        "right result, but rank 0 never calls reduce_scatter or reduce_scatter_single",
    ),
}
