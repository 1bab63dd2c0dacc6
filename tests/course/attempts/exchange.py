"""Attempts at exchange."""

CLASS = """
class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, goes, comes):
        ctx.goes, ctx.comes = goes, comes
        out = x.new_empty(sum(comes), x.shape[1])
        dist.all_to_all_single(out, x, comes, goes)
        return out

    @staticmethod
    def backward(ctx, grad):
        {backward}
        return {back}, None, None


def exchange(x, goes, comes):
    return Exchange.apply(x, goes, comes)
"""
ROOM, CALL = "back = grad.new_empty(sum(ctx.goes), 2); ", "dist.all_to_all_single(back, grad, ctx.goes, ctx.comes)"


def filled(backward, back="back"):
    return CLASS.format(backward=backward, back=back)


RIGHT = {
    "as the hint has it": filled(ROOM + CALL),
    "the forward pass the other way round": filled("with torch.no_grad(): back = exchange(grad, ctx.comes, ctx.goes)"),
    "with names": filled(
        "back = torch.empty(sum(ctx.goes), grad.shape[1], dtype=grad.dtype); "
        "dist.all_to_all_single(back, grad.contiguous(), input_split_sizes=ctx.comes, output_split_sizes=ctx.goes)"
    ),
    "asynchronous": filled(ROOM + CALL.replace(")", ", async_op=True).wait()")),
}

WRONG = {
    "the gradient stays where it is": (filled("back = grad.new_zeros(sum(ctx.goes), 2)"), " and should "),
    "the lists not swapped": (
        filled(
            "back = grad.new_empty(sum(ctx.comes), 2); " + CALL.replace("ctx.goes, ctx.comes", "ctx.comes, ctx.goes")
        ),
        "rank",
    ),
    "equal pieces": (filled(ROOM + "dist.all_to_all_single(back, grad)"), "rank"),
    "room for what comes": (filled(ROOM.replace("goes", "comes") + CALL), "rank"),
    "the gradient of something else": (filled(ROOM + CALL, "2 * back"), " and should "),
    "backward returns nothing": (filled(ROOM + CALL, "None"), " and should "),
}
