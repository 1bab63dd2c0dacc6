"""Attempts at row_parallel_linear."""

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
BODY = G + "\n\ndef row_parallel_linear(x, weight, bias):\n    return {out}\n"

RIGHT = {
    "functional": BODY.format(out="G.apply(torch.nn.functional.linear(x, weight)) + bias"),
    "a share of the bias on each rank, its gradient whole": BODY.format(
        out="G.apply(x @ weight.T + bias.detach() / world_size) + bias - bias.detach()"
    ),
    "in place, behind autograd's back": """
def row_parallel_linear(x, weight, bias):
    part = weight @ x
    dist.all_reduce(part.data)
    return part + bias
""",
    "Megatron's name for it": G.replace("class G", "class ReduceFromRanks")
    + """

def row_parallel_linear(x, weight, bias):
    output = ReduceFromRanks.apply(torch.einsum("i,oi->o", x, weight))
    output = output + bias
    return output
""",
}

WRONG = {
    "not written": ("def row_parallel_linear(x, weight, bias):\n    ...\n", "not written yet"),
    "the bias p times": (BODY.format(out="G.apply(x @ weight.T + bias)"), "rank 0: the output is "),
    "no bias": (BODY.format(out="G.apply(x @ weight.T)"), "the output is "),
    "not added up": (BODY.format(out="x @ weight.T + bias"), "no rank has sent anything"),
    "an average": (BODY.format(out="G.apply(x @ weight.T) / world_size + bias"), "the output is "),
    "the bias on rank 0 alone": (
        BODY.format(out="G.apply(x @ weight.T + bias * (rank == 0))"),
        "rank 1: the gradient of bias is 0 0 ...",
    ),
    "x added up": (BODY.format(out="G.apply(x) @ weight.T + bias"), "the output is "),
    "adds up backward, too": (
        BODY.format(out="G.apply(x @ weight.T) + bias").replace(
            "return grad", "grad = grad.clone(); dist.all_reduce(grad); return grad"
        ),
        "rank 0: the gradient of x is ",
    ),
    "torch's own, whose backward adds up": (
        "import warnings\nfrom torch.distributed.nn.functional import all_reduce\n\n\n"
        "def row_parallel_linear(x, weight, bias):\n"
        "    with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n"
        "        return all_reduce(x @ weight.T) + bias\n",
        "times too large",
    ),
    "detached": (BODY.format(out="G.apply((x @ weight.T).detach()) + bias"), "the gradient of x is 0 0 ..."),
}
