"""The exercises of chapter 15: tokens to experts and back, that exchange's way back, Ulysses and ring attention."""

from fractions import Fraction

import numpy as np

from course.exercises.exercise import AT_ONCE, Exercise, neighbours

WIDTH = 4
FLOATS = ("float32", "float64", "float32")
ONLY = frozenset({"all_to_all_single"})

ROUTED = """
def _trial_alike(seed, *shape):  # the same on every rank
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(torch.{dtype})
_trial_experts = [_trial_alike(e, 4, 4) for e in range({p})]
def _trial_chosen(r):  # by the tokens of rank r; of rank 0 no token wants the last expert
    chosen = torch.randint({p}, ({lengths}[r],), generator=torch.Generator().manual_seed(r))
    return chosen.clamp(max={p} - 2) if r == 0 else chosen
_trial_choice, _trial_calls = _trial_chosen(rank), []
def _trial_expert(tokens):
    _trial_calls.append(len(tokens))
    if _trial_calls != [sum(int((_trial_chosen(r) == rank).sum()) for r in range({p}))]:
        raise RuntimeError("expert should be called once, with all the tokens that have chosen it and no others")
    return torch.tanh(tokens @ _trial_experts[rank])
def _trial_moe(x):
    return torch.stack([torch.tanh(x[i] @ _trial_experts[e]) for i, e in enumerate(_trial_choice.tolist())])
"""

THERE_AND_BACK = """
_trial_goes = {counts}[rank]
_trial_comes = [counts[rank] for counts in {counts}]
def _trial_up(like):
    return (1 + torch.arange(like.numel()) % 7 + 10 * rank).view(like.shape).to(like.dtype)
def _trial_both_ways(exchange, x):
    leaf = x.clone().requires_grad_()
    out = exchange(leaf, list(_trial_goes), list(_trial_comes))
    if not isinstance(out, torch.Tensor) or out.shape != (sum(_trial_comes), 2):
        return out
    if out.requires_grad:
        (out * _trial_up(out)).sum().backward()  # out.backward(...) imports sympy in every rank, for a second
    grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    return torch.cat([out.detach().flatten(), grad.flatten()])
def _trial_by_the_book(x):
    out, grad = x.new_empty(sum(_trial_comes), 2), torch.empty_like(x)
    dist.all_to_all_single(out, x, _trial_comes, _trial_goes)
    dist.all_to_all_single(grad, _trial_up(out), _trial_goes, _trial_comes)
    return torch.cat([out.flatten(), grad.flatten()])
"""

HEADS = """
def _trial_whole(x):
    everyone = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everyone, x)
    return torch.cat(everyone).chunk(world_size, dim=1)[rank].contiguous()
"""


def as_it_lies(trial, rank: int) -> np.ndarray:
    """What to_heads returns if x is sent as it is in memory, its first tokens to rank 0."""
    return np.concatenate([x.reshape(trial.p, -1)[rank] for x in trial.given]).reshape(trial.expected[rank].shape)


def by_sender_last(trial, rank: int) -> np.ndarray:
    """What to_heads returns if token 0 of every rank comes before token 1 of any."""
    pieces = np.stack([np.split(x, trial.p, axis=1)[rank] for x in trial.given])
    return pieces.swapaxes(0, 1).reshape(trial.expected[rank].shape)


def other_heads(trial, rank: int) -> np.ndarray:
    """What to_heads returns if rank r gets the heads r, r + p, r + 2p, ..."""
    return np.concatenate([x[:, rank :: trial.p] for x in trial.given])


def the_same_rows(trial, rank: int) -> np.ndarray:
    """The answer itself, if it has the right rows in another order; else nothing that could be one."""
    values, right = (
        np.asarray(each, np.float64).reshape(len(each), -1)
        for each in (trial.answers[rank]["values"], trial.expected[rank])
    )
    close = np.abs(values[:, None] - right[None]).max(axis=2) <= 1e-4
    return values if close.any(axis=0).all() and close.any(axis=1).all() else np.full(values.shape, np.nan)


def another_rank(trial, rank: int) -> np.ndarray:
    """What some other rank should return, if it is that; else nothing that could be one."""
    values = trial.answers[rank]["values"]
    others = [each for r, each in enumerate(trial.expected) if r != rank]
    found = (each for each in others if each.shape == values.shape and np.abs(values - each).max() <= 1e-4)
    return next(found, np.full(values.shape, np.nan))


ATTENTION = """
def _trial_attention(x):
    everyone = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everyone, x)
    _, k, v = torch.cat(everyone, dim=1)
    return torch.softmax(x[0] @ k.T / x.shape[2] ** 0.5, dim=1) @ v
"""

EXERCISES = (
    Exercise(
        name="moe",
        asks="row i of the result is what expert choice[i] computes from row i of x. Expert e is on rank e, and "
        "expert(rows) is this rank's: call it once. At most three all_to_all_single; x stays as it is",
        lines=12,
        x=f"torch.randn(lengths[rank], {WIDTH}).to(dtype)",
        expected="_trial_moe(x)",
        in_place=False,
        setup=ROUTED,
        call="{name}(x, _trial_choice.clone(), _trial_expert)",
        allowed=ONLY,
        calls=lambda p: 3,
        rtol=1e-4,
        slips={
            the_same_rows: "the right rows in another order: they come back in the order in which you sent them, so "
            "put each where its token was: y[order] = back"
        },
        hints=(
            "order = choice.argsort() puts the tokens for expert 0 first, then those for expert 1, and so on: "
            "x[order]. counts = choice.bincount(minlength=world_size) says how many each expert gets.",
            "The others do not know your counts: send them first, one number to each rank. Then the tokens: "
            "all_to_all_single(out, rows, what comes from each, what goes to each), with lists.",
            "On the way back the two lists change places: what came, goes.",
            "The results come back in the order in which you sent the tokens. y[order] = back puts each in its row.",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
    Exercise(
        name="exchange",
        asks="it sends goes[d] rows of x to each rank d and returns the rows that come, comes[s] from rank s. In the "
        "backward pass each row's gradient goes back to the rank that the row came from. One all_to_all_single in "
        "each direction. We compare the rows that came, and the gradient of x",
        lines=3,
        x="torch.randn(sum(counts[rank]), 2).to(dtype)",
        expected="_trial_by_the_book(x)",
        in_place=False,
        setup=THERE_AND_BACK,
        call="_trial_both_ways({name}, x)",
        allowed=ONLY,
        calls=lambda p: 2,
        hints=(
            "grad has a row for each row that came: comes[s] of them belong to rank s. They go back there.",
            "So you send comes[s] rows to rank s, and goes[d] rows come from rank d: both lists change places.",
            "back = grad.new_empty(sum(ctx.goes), grad.shape[1]); dist.all_to_all_single(back, grad.contiguous(), "
            "ctx.goes, ctx.comes)",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
    Exercise(
        name="to_heads",
        asks="x is this rank's tokens with all heads (tokens, heads, d). It returns all tokens, in order, with "
        "this rank's heads only: (world_size * tokens, heads // world_size, d). One all_to_all_single; x stays "
        "as it is",
        lines=5,
        x="torch.randint(low, high, (3, 2 * p, 2)).to(dtype) * scale",
        expected="_trial_whole(x)",
        in_place=False,
        setup=HEADS,
        allowed=ONLY,
        calls=lambda p: 1,
        slips={
            as_it_lies: "x was sent as it lies in memory, where the first 1/p is the first tokens with all heads; "
            "put the heads for rank 0 first, then those for rank 1, and send that",
            other_heads: "these are every p-th head, beginning with head number rank; a rank's heads are neighbours: "
            "x.chunk(world_size, dim=1)[rank]",
            by_sender_last: "the right numbers, with token 0 of every rank before token 1 of any; what comes is all "
            "tokens of rank 0, then all of rank 1, and this order is the right one",
            the_same_rows: "the right heads of the right tokens in another order: all tokens of rank 0 come first, "
            "then those of rank 1, each rank's as they are in its x",
            another_rank: "these are the heads of another rank: of the pieces that you send, number r goes to rank r",
        },
        hints=(
            "all_to_all_single sends the first 1/p of the memory to rank 0, the next to rank 1, and so on. In x the "
            "first 1/p is the first tokens. You want it to be the first heads.",
            "x.chunk(world_size, dim=1) are the pieces for the ranks; torch.stack puts one behind the other.",
            "What comes is (world_size, tokens, heads // world_size, d), the tokens of rank 0 first: "
            "out.flatten(0, 1).",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
    Exercise(
        name="ring_attention",
        asks="it returns softmax(q @ K.T / sqrt(d)) @ V of this rank's queries, where K and V are the keys and "
        "values of all ranks. They travel round a ring: p - 1 steps, and in each every rank passes one rank's k and v "
        "to a neighbour. x, the stack of this rank's q, k and v, stays as it is",
        lines=20,
        x="torch.randn(3, 3, 4); x[0, 0] -= x[0, 0].mean(); x[1] += 150 - 300 * (rank % 2); "
        "far = torch.tensor([5, 5, -5, -5]); x[0, 0] -= far; x[1] += 8 * far; x = x.to(dtype)",
        expected="_trial_attention(x)",
        in_place=False,
        setup=ATTENTION,
        messages=lambda p: 2 * p * (p - 1),
        busiest=lambda p: Fraction(2, 3) * (p - 1),
        steps=lambda p: 2 * (p - 1),
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: Fraction(2, 3) * p: "that is p rounds; after p - 1 of them you have seen all blocks",
            lambda p: p - 1: "the queries travel, too; each rank needs its own only",
        },
        peers=neighbours,
        talks="its neighbours",
        rtol=1e-3,
        hints=(
            "A block may bring a larger maximum, now. total and y were computed with the old one, largest: multiply "
            "both by torch.exp(largest - now) before you add. (In the first round that is exp(-inf) = 0.)",
            "total = torch.exp(largest - now) * total + powers.sum(dim=1, keepdim=True).",
            "y gets the same factor, plus powers @ block[1]: the values of this block. After the loop: y / total.",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
)
