"""The exercises of chapter 16: an all_reduce in JAX by ppermute, and a tensor from one placement into another."""

from itertools import accumulate

import numpy as np

from course.exercises.exercise import Exercise, nobody

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

ON_DEVICES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
from jax import lax
from jax.sharding import AxisType, PartitionSpec
_trial_devices = jax.make_mesh((4,), ("rank",), axis_types=(AxisType.Auto,))
def _trial_on_devices(f, x):
    part = PartitionSpec("rank")
    mapped = jax.jit(jax.shard_map(f, mesh=_trial_devices, in_specs=part, out_specs=part, check_vma=False))
    sums = mapped(x.numpy())
    if sums is None:
        return None
    text = mapped.lower(x.numpy()).compile().as_text()
    for op in ("all-reduce", "all-gather", "all-to-all", "reduce-scatter"):
        if " " + op + "(" in text:
            raise RuntimeError("the compiled program has an " + op + ": send with lax.ppermute alone")
    counted = torch.tensor([text.count(" collective-permute(")], dtype=torch.int32)
    return torch.cat([torch.from_numpy(sums.__array__().copy()).flatten(), counted])
"""


def changes(p: int) -> dict[str, int]:
    """How many numbers of the answer each change of placement brings."""
    return {
        "partial to shard": 4,
        "shard to replicate": 4 * p * p,
        "replicate to shard": 4,
        "partial to replicate": 4 * p,
    }


def _first_wrong(change: str, made):
    """The answer if all before `change` is right, and this brings made(what it brings, what it should, trial, rank)."""

    def slip(trial, rank: int) -> np.ndarray:
        values, right = (np.array(each, np.float64) for each in (trial.answers[rank]["values"], trial.expected[rank]))
        names, ends = list(changes(trial.p)), [0, *accumulate(changes(trial.p).values())]
        lo, hi = (ends[names.index(change) + more] for more in (0, 1))
        brought = made(values[lo:hi], right[lo:hi], trial, rank)
        wrong = not np.array_equal(values[lo:hi], right[lo:hi])
        return np.concatenate([right[:lo], brought if wrong else np.full(hi - lo, np.nan), values[hi:]])

    return slip


def _own_summand(values, right, trial, rank: int) -> np.ndarray:
    return np.split(trial.given[rank], trial.p)[rank].ravel()


def _another_part(values, right, trial, rank: int) -> np.ndarray:
    """That of the rank whose it is, if it is another's."""
    whole = (1 + np.arange(trial.given[rank].size) % 7).astype(np.float64)
    parts = [part for r, part in enumerate(np.split(whole, trial.p)) if r != rank]
    return next((part for part in parts if np.array_equal(part, values)), np.full(values.shape, np.nan))


def _another_order(values, right, trial, rank: int) -> np.ndarray:
    there, wanted = (sorted(map(tuple, each.reshape(-1, 2))) for each in (values, right))
    return values if there == wanted else np.full(values.shape, np.nan)


EXERCISES = (
    Exercise(
        name="ring_sum",
        asks="for one program on the four devices of a process: it returns the sum of all devices' vectors `mine` on "
        "each of them, and sends with lax.ppermute alone, three times",
        lines=5,
        x="torch.randint(low, high, (16,)).to(dtype)",
        expected="torch.cat([x.view(4, -1).sum(dim=0).repeat(4), torch.tensor([3], dtype=torch.int32)])",
        in_place=False,
        needs=nobody,
        setup=ON_DEVICES,
        call="_trial_on_devices({name}, x)",
        parts=lambda p: {"what the four devices return": 16, "the number of ppermutes": 1},
        allowed=frozenset(),
        hints=(
            "Keep two vectors: the sum so far, which begins as `mine`, and the vector that travels, which begins as "
            "`mine`, too.",
            'In each round the travelling vector goes one device on: moving = lax.ppermute(moving, "rank", ring), with '
            "ring = [(rank, (rank + 1) % 4) for rank in range(4)]. JAX arrays never change: give the new one a name.",
            "Three rounds for four devices. A plain Python for will do. Send `moving` on, not the sum.",
        ),
        world_sizes=(2,),
        dtypes=("int32",),
        more=(3,),
    ),
    Exercise(
        name="redistribute",
        asks='returns what this rank holds of x after a change of placement ("partial", "shard" or "replicate"; along '
        "the first dimension, whose length is a multiple of world_size). Four changes: partial to shard, shard to "
        "replicate, replicate to shard, partial to replicate; at most four collectives for all of them",
        lines=14,
        x="torch.randint(low, high, (2 * p, 2)).to(dtype) * scale",
        expected="_trial_by_the_book(x)",
        in_place=False,
        setup=CONVERSIONS,
        call="_trial_redistributed({name}, x)",
        allowed=GATHER | SCATTER,
        uses={SCATTER: (2, GATHERED)},
        calls=lambda p: 4,
        parts=changes,
        slips={
            _first_wrong("partial to shard", _own_summand): "that is this rank's own summand; those of the others are "
            "missing: reduce_scatter adds them up",
            _first_wrong("shard to replicate", _another_order): "the right rows in another order; rank 0's come first, "
            "then rank 1's",
            _first_wrong("replicate to shard", _another_part): "that is another rank's part; this rank's is "
            "x.chunk(world_size)[rank]",
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
