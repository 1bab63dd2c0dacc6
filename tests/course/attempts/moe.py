"""Attempts at moe."""

SOLVED = """
def moe(x, choice, expert):
    order = choice.argsort(stable=True)
    goes = choice.bincount(minlength=world_size)
    comes = torch.empty_like(goes)
    dist.all_to_all_single(comes, goes)
    goes, comes = goes.tolist(), comes.tolist()
    mine = x.new_empty(sum(comes), x.shape[1])
    dist.all_to_all_single(mine, x[order], comes, goes)
    back = torch.empty_like(x)
    dist.all_to_all_single(back, expert(mine), goes, comes)
    y = torch.empty_like(x)
    y[order] = back
    return y
"""

RIGHT = {
    "the order undone by its own argsort": SOLVED.replace(
        "    y = torch.empty_like(x)\n    y[order] = back\n    return y\n", "    return back[order.argsort()]\n"
    ),
    "a list of rows for each expert": """
def moe(x, choice, expert):
    rows = [(choice == e).nonzero().flatten() for e in range(world_size)]
    goes = [len(each) for each in rows]
    came = torch.empty(world_size, dtype=torch.int64)
    dist.all_to_all_single(came, torch.tensor(goes))
    comes = came.tolist()
    mine = torch.empty(sum(comes), x.shape[1], dtype=x.dtype)
    dist.all_to_all_single(mine, torch.cat([x[each] for each in rows]), comes, goes)
    back = torch.empty(len(x), x.shape[1], dtype=x.dtype)
    dist.all_to_all_single(back, expert(mine), goes, comes)
    y = torch.zeros_like(x)
    for each, done in zip(rows, back.split(goes)):
        y[each] = done
    return y
""",
    "with index_copy": SOLVED.replace("y[order] = back", "y.index_copy_(0, order, back)"),
}

WRONG = {
    "in the order of the experts": (SOLVED.replace("y[order] = back", "y = back"), "the right rows in another order"),
    "the order applied once more": (
        SOLVED.replace("y[order] = back", "y = back[order]"),
        "the right rows in another order",
    ),
    "its own expert for all": (
        "def moe(x, choice, expert):\n    return expert(x)\n",
        "expert should be called once, with all the tokens that have chosen it",
    ),
    "no counts first": (
        SOLVED.replace("dist.all_to_all_single(comes, goes)", "comes.copy_(goes)"),
        "rank",
    ),
    "the lists not swapped on the way back": (
        SOLVED.replace("expert(mine), goes, comes)", "expert(mine), comes, goes)"),
        "rank",
    ),
    "minlength forgotten": (
        SOLVED.replace("bincount(minlength=world_size)", "bincount(minlength=world_size + 1)"),
        "rank",
    ),
    "the expert left out": (SOLVED.replace("expert(mine)", "mine"), " and should "),
    "no minlength": (
        SOLVED.replace("minlength=world_size", ""),
        "ValueError: all_to_all_single cannot cut its input of",
    ),
    "the expert for each sender": (
        SOLVED.replace("expert(mine)", "torch.cat([expert(part) for part in mine.split(comes)])"),
        "expert should be called once, with all the tokens that have chosen it",
    ),
    "reads what is under way": (
        SOLVED.replace(
            "dist.all_to_all_single(mine, x[order], comes, goes)",
            "work = dist.all_to_all_single(mine, x[order], comes, goes, async_op=True)",
        )
        .replace("expert(mine), goes", "done, goes")
        .replace("    back = ", "    done = expert(mine)\n    work.wait()\n    back = "),
        "rank 0 reads the tensor of its all_to_all_single (line 8) before it waits for that (line 10)",
    ),
}
