"""Attempts at vocab_parallel_loss."""

G = """
class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad

"""

BODY = (
    G
    + """
def vocab_parallel_loss(x, target):
    n = x.shape[1]
    m = x.detach().max(dim=1).values
    {largest}
    total = {total}
    place = {place}
    here = (place >= 0) & (place < n)
    logit = torch.where(here, x.gather(1, place.clamp(0, n - 1)[:, None]).squeeze(1), 0)
    right = {right}
    return {loss}
"""
)
GOOD = {
    "largest": "dist.all_reduce(m, dist.ReduceOp.MAX)",
    "total": "G.apply(torch.exp(x - m[:, None]).sum(1))",
    "place": "target - rank * n",
    "right": "G.apply(logit)",
    "loss": "(m + torch.log(total) - right).mean()",
}

RIGHT = {
    "a one-hot": G
    + """
def vocab_parallel_loss(x, target):
    m = x.detach().amax(1)
    dist.all_reduce(m, dist.ReduceOp.MAX)
    x = x - m[:, None]
    mine = torch.arange(x.shape[1]) + rank * x.shape[1] == target[:, None]
    total, right = G.apply(torch.stack([x.exp().sum(1), (x * mine).sum(1)]))
    return (total.log() - right).mean()
""",
    "a function of its own": """
def vocab_parallel_loss(x, target):
    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            m = x.amax(1)
            dist.all_reduce(m, dist.ReduceOp.MAX)
            powers = (x - m[:, None]).exp()
            mine = torch.arange(x.shape[1]) + rank * x.shape[1] == target[:, None]
            sums = torch.stack([powers.sum(1), (x * mine).sum(1)])
            dist.all_reduce(sums)
            ctx.save_for_backward((powers / sums[0][:, None] - mine.to(x.dtype)) / len(x))
            return (m + sums[0].log() - sums[1]).mean()
        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]
    return Loss.apply(x)
""",
    "row by row at the end": BODY.format(**GOOD | {"loss": "sum(m + torch.log(total) - right) / len(m)"}),
}

WRONG = {
    "no maximum": (BODY.format(**GOOD | {"largest": "m = torch.zeros_like(m)"}), "the loss"),
    "a maximum of its own": (
        BODY.format(**GOOD | {"largest": "pass"}),
        "the largest logit of its own columns",
    ),
    "the target is a column of its own": (
        BODY.format(**GOOD | {"place": "target"}),
        "taken for a column of this rank's x",
    ),
    "the logit of its own columns": (
        BODY.format(**GOOD | {"right": "logit"}),
        "its logit is missing",
    ),
    "without the maximum at the end": (
        BODY.format(**GOOD | {"loss": "(torch.log(total) - right).mean()"}),
        "is not added again to the logarithm",
    ),
    "the sum over rows": (
        BODY.format(**GOOD | {"loss": "(m + torch.log(total) - right).sum()"}),
        "that is the sum over the rows; take the mean",
    ),
    "sums up all the logits": (
        """
def vocab_parallel_loss(x, target):
    whole = torch.zeros(len(x), world_size * x.shape[1], dtype=x.dtype)
    whole[:, rank * x.shape[1] : (rank + 1) * x.shape[1]] = x.detach()
    dist.all_reduce(whole)
    first = rank * x.shape[1]
    whole = torch.cat([whole[:, :first], x, whole[:, first + x.shape[1] :]], 1)
    return torch.nn.functional.cross_entropy(whole, target)
""",
        "no  on 4 ranks",
    ),
    "a number in place of the maximum": (
        BODY.format(**GOOD | {"largest": "m = torch.full_like(m, 200)"}),
        "a number that is too large for exp",
    ),
    "G in both directions": (
        BODY.format(**GOOD).replace("return grad", "grad = grad.clone(); dist.all_reduce(grad); return grad"),
        "no  on 4 ranks",
    ),
}
