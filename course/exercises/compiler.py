"""The exercise of chapter 16 that runs on ranks: a tensor from one placement into another, as DTensor does it."""

from course.exercises.exercise import Exercise

GATHER, SCATTER = frozenset({"all_gather", "all_gather_single"}), frozenset({"reduce_scatter", "reduce_scatter_single"})
GATHERED = (
    "both conversions from partial need a sum, and to gather all of x and add it up here brings each rank p times x"
)
CONVERSIONS = """
_trial_ways = [("partial", "shard"), ("shard", "replicate"), ("replicate", "shard"), ("partial", "replicate")]
def _trial_alike(like):  # the same on every rank
    return (1 + torch.arange(like.numel()) % 7).view(like.shape).to(like.dtype)
def _trial_redistributed(redistribute, x):
    out = []
    for before, after in _trial_ways:
        given = _trial_alike(x) if before == "replicate" else x.clone()
        got = redistribute(given, before, after)
        if not isinstance(got, torch.Tensor):
            return got
        out.append(got.flatten())
    return torch.cat(out)
def _trial_by_the_book(x):
    total = x.clone()
    dist.all_reduce(total)
    whole = torch.empty(len(x) * world_size, 2, dtype=x.dtype)
    dist.all_gather_single(whole, x)
    mine, alike = total.chunk(world_size)[rank], _trial_alike(x).chunk(world_size)[rank]
    return torch.cat([each.flatten() for each in (mine, whole, alike, total)])
"""

EXERCISES = (
    Exercise(
        name="redistribute",
        asks='it brings x from one placement into another ("partial", "shard" or "replicate", along the first '
        "dimension, whose length is a multiple of world_size) and returns what this rank has to hold then. It is "
        "called for partial to shard, shard to replicate, replicate to shard and partial to replicate, with at most "
        "four collectives for all of them. The answer is what the four calls returned, one behind the other",
        lines=14,
        x="torch.randint(low, high, (2 * p, 2)).to(dtype) * scale",
        expected="_trial_by_the_book(x)",
        in_place=False,
        setup=CONVERSIONS,
        call="_trial_redistributed({name}, x)",
        allowed=GATHER | SCATTER,
        uses={SCATTER: (2, GATHERED)},
        calls=lambda p: 4,
        parts=lambda p: {
            "partial to shard": 4,
            "shard to replicate": 4 * p * p,
            "replicate to shard": 4,
            "partial to replicate": 4 * p,
        },
        hints=(
            "Three of the four are simple: one is a reduce_scatter, one is an all_gather, and one needs no message at "
            "all.",
            "replicate to shard: x.chunk(world_size)[rank]. Each rank already has all of x.",
            'partial to replicate: first to "shard", then from there to "replicate". Call the function itself.',
            "mine = x.new_empty(len(x) // world_size, *x.shape[1:]); dist.reduce_scatter_single(mine, x)",
        ),
        more=(5,),
    ),
)
