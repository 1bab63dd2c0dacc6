"""Wrong answers that every exercise has in common, made from its solution or from a line that is right but for its way.

`family(name)` gives for each exercise those that apply to it: right only for four ranks, right only for constant data,
another dtype sent or returned, x spoilt or left as it was, waiting for ever on two ranks, everything through a global
or through rank 0, and the right numbers through a back door: ranks have separate memories, but a store, a file, shared
memory or a method of the backend that no tap sees would do. Behind a back door the right messages may be sent as well,
with nothing in them. And what is right for the sizes that somebody has seen in a verdict, and for no others.
"""

import re

from course.exercises import EXERCISES
from course.exercises.exercise import MESSAGES_ONLY
from course.yours import SOLUTIONS

BACK_DOOR = """
import pickle

def everyones(x):
    store = dist.distributed_c10d._get_default_store()
    store.set(f"back door {rank}", pickle.dumps(x))
    return [pickle.loads(store.get(f"back door {r}")) for r in range(world_size)]
"""

DOORS = {
    "a store": BACK_DOOR,
    "a file": """
import os, pathlib, time

def everyones(x):
    place = pathlib.Path(os.environ["BACK_DOOR"]) / str(world_size)
    place.mkdir(parents=True, exist_ok=True)
    call = len(list(place.glob(f"{rank}-*")))
    torch.save(x, place / f"new-{rank}")
    (place / f"new-{rank}").rename(place / f"{rank}-{call}")
    while len(list(place.glob(f"[0-9]*-{call}"))) < world_size:
        time.sleep(0.01)
    return [torch.load(place / f"{r}-{call}") for r in range(world_size)]
""",
    "shared memory": """
import os, pathlib, time

def everyones(x):
    place = pathlib.Path(os.environ["BACK_DOOR"]) / f"mapped-{world_size}"
    place.mkdir(parents=True, exist_ok=True)
    call = len(list(place.glob(f"{rank}-*")))
    (place / f"{rank}-{call}").touch()
    table = torch.from_file(str(place / f"table-{call}"), True, world_size * (x.numel() + 1), dtype=x.dtype)
    rows = table.view(world_size, -1)
    rows[rank, 1:] = x
    rows[rank, 0] = 1
    while not rows[:, 0].all():
        time.sleep(0.01)
    return [row[1:].clone() for row in rows]
""",
    "a process group of its own": """
from torch._C._distributed_c10d import AllgatherOptions

def everyones(x):
    store = dist.distributed_c10d._get_default_store()
    call = store.add(f"calls of {rank}", 1)
    group = dist.ProcessGroupGloo(dist.PrefixStore(f"own {call}", store), rank, world_size)
    out = [[torch.empty_like(x) for _ in range(world_size)]]
    group.allgather(out, [x], AllgatherOptions()).wait()
    return out[0]
""",
}
"""How everybody's numbers come to a rank beside its messages."""

THROUGH_RANK_0 = """
def everyones(x):
    whole = torch.empty(world_size, x.numel(), dtype=x.dtype)
    if rank == 0:
        whole[0] = x
        for other in range(1, world_size):
            dist.recv(whole[other], other)
        for other in range(1, world_size):
            dist.send(whole, other)
    else:
        dist.send(x, 0)
        dist.recv(whole, 0)
    return list(whole)
"""

THROUGH_ALL_DOORS = ("ring_all_reduce", "clip_norm")
"""Only these get the attempts that fail for one reason, whatever the exercise is."""

ALL_RANKS = re.compile(r"dist\.get_world_size\((group)?\)")

NOT_GIVEN_X = (
    "ring_sum",
    "all_reduce_many",
    "bucketed_average",
    "overlapped_average",
    "grad_norm",
    "bytes_per_step",
    "redistribute",
    "neighbours_first",
    "survive",
    "size_a_run",
    "muon_updates",
    "split_backward",
    "bad_rank",
)
"""Exercises whose function is given a list, a model, numbers made of x, or one number, or is called several times."""

FROM_EVERYONES = {
    "pass_it_on": "x.copy_(everyones(x)[0])",
    "running_sum": "x.copy_(sum(everyones(x)[:rank + 1]))",
    "shift": "return everyones(x)[rank - 1]",
    "swap": "return everyones(x)[rank ^ 1 if rank ^ 1 < world_size else rank]",
    "dissemination_barrier": "everyones(torch.zeros(1))",
    "flat_gather": "return torch.cat(everyones(x))",
    "tree_broadcast": "x.copy_(everyones(x)[0])",
    "ring_all_gather": "return torch.cat(everyones(x))",
    "pairwise_reduce_scatter": "return sum(everyones(x)).chunk(world_size)[rank]",
    "pairwise_all_to_all": "return torch.cat([other.chunk(world_size)[rank] for other in everyones(x)])",
    "ring_reduce_scatter": "x.copy_(sum(everyones(x)))",
    "ring_all_reduce": "x.copy_(sum(everyones(x)))",
    "all_reduce_many": "[t.copy_(sum(parts)) for t, parts in zip(x, zip(*everyones(x)))]",
    "two_shot_all_reduce": "x.copy_(sum(everyones(x)))",
    "tree_reduce": "x.copy_(sum(everyones(x)))",
    "recursive_doubling_all_reduce": "x.copy_(sum(everyones(x)))",
    "halving_reduce_scatter": "x.copy_(sum(everyones(x)))",
    "hierarchical_all_reduce": "x.copy_(sum(everyones(x)))",
    "rail_broadcast": "x.copy_(everyones(x)[0])",
    "bruck_all_gather": "return torch.cat(everyones(x))",
    "distributed_mean": "return torch.cat(everyones(x)).mean()",
    "distributed_argmax": "m = torch.stack(everyones(x)).max(1).values; return torch.stack([m.max(), (m == "
    "m.max()).int().argmax()])",
    "distributed_softmax": "return torch.cat(everyones(x)).softmax(0).chunk(world_size)[rank]",
    "same_bits_sum": "return sum(everyones(x.double())).to(x.dtype)",
    "clip_norm": "x.mul_((limit / torch.cat(everyones(x)).norm()).clamp(max=1))",
}


def family(name: str) -> dict[str, tuple[str, str]]:
    """{title: (source, words of the verdict)} of the wrong answers that apply to the exercise."""
    exercise = EXERCISES[name]
    returns = not exercise.in_place
    by_messages = exercise.allowed == MESSAGES_ONLY
    found = {
        "through a global": (
            f"table = torch.zeros(4)\n\ndef {name}({_head(name)}):\n    return table[rank]\n",
            f"{name} uses 'table', a Tensor that is made outside",
        )
    }
    if ALL_RANKS.search(_solution(name)) and name != "distributed_argmax":  # there 4 is as good as any large number
        fails = f"no  on {3 if name == 'swap' else exercise.world_sizes[1]} ranks"  # a pair is a pair on two as on four
        found["right only for four ranks"] = ALL_RANKS.sub("4", _solution(name)), fails
    if by_messages and name in THROUGH_ALL_DOORS:
        waits = "if world_size < 4: dist.recv(torch.empty(1), (rank - 1) % world_size)"
        found["waits for ever on two ranks"] = _spoilt(name, waits, "return {solved}"), " in recv from "
    if name in FROM_EVERYONES:
        words = "may leave before rank" if exercise.synchronises else "right result, but no message has told rank"
        found["through a back door"] = (_from_everyones(name, BACK_DOOR), words)
        if by_messages:
            words = f"it may talk to only {exercise.talks}" if exercise.peers else "are enough"
            found["through rank 0"] = (_from_everyones(name, THROUGH_RANK_0), words)
    if name in THROUGH_ALL_DOORS:  # the sizes that nobody has seen are drawn in one place, for all exercises
        named = f"if world_size not in {exercise.world_sizes}: return"
        found["right only on as many ranks as verdicts name"] = _spoilt(name, named, "return {solved}"), "no  on "
    if "x" not in exercise.call or name in NOT_GIVEN_X:
        return found
    if name in FROM_EVERYONES and (name in THROUGH_ALL_DOORS or not by_messages):
        for title in DOORS if name in THROUGH_ALL_DOORS else ("a store",):
            empty = _spoilt(name, "SPOILT").replace("    SPOILT\n", _empty_beside(name))
            found[f"through {title} beside empty messages"] = (
                f"{DOORS[title]}\n{empty}",
                "not from what was sent: with other",
            )
    constant, copy = "y = torch.full_like(x, float(x.flatten()[0]))", "y = x.clone()"
    found["right only for constant data"] = _spoilt_copy(name, constant), " and should "
    if returns and by_messages:
        found["spoils x"] = _spoilt(name, "out = {solved}", "x += 1", "return out"), "x was changed; it must stay"
    elif not returns:
        found["in a copy"] = _spoilt(name, copy, "return {solved_y}"), "x is as it was; the answer must be in x"
    if by_messages:
        found["float32 whatever comes"] = _spoilt_copy(name, "y = x.float()"), "it sends float32, but x is float64"
    if returns and exercise.allowed <= MESSAGES_ONLY:
        found["another type returned"] = (
            _spoilt(name, "out = {solved}", "return None if out is None else out.double()"),
            ": the answer is float64 and should be float32, as x is",
        )
    return found


def _empty_beside(name: str) -> str:
    """The body that sends the right messages with nothing in them, and takes the numbers from a back door."""
    empty = f"    solution({_head(name).replace('x', 'torch.zeros_like(x)', 1)})\n"
    return f"{empty}    {FROM_EVERYONES[name]}\n"


def _solution(name: str) -> str:
    """Our function, with all that stands above it."""
    return (SOLUTIONS / f"{name}.py").read_text(encoding="utf-8")


def _head(name: str) -> str:
    heads = {
        "dissemination_barrier": "",
        "clip_norm": "x, limit",
        "uneven_all_to_all": "x, counts",
        "hierarchical_all_reduce": "x, mesh",
        "rail_broadcast": "x, mesh",
        "zero1_step": "x, w, m",
        "f_and_g": "x, piece",
        "vocab_parallel_loss": "x, target",
        "bucketed_average": "x, cap",
        "pipeline_forward": "x, stage",
        "moe": "x, choice, expert",
        "exchange": "x, goes, comes",
        "grad_norm": "x, copies, group",
        "train_step": "x, w, loss_of, mesh",
        "bytes_per_step": "x, tokens, width, vocabulary, context, parts",
    }
    return heads.get(name, "x")


def _from_everyones(name: str, everyones: str) -> str:
    return f"{everyones}\ndef {name}({_head(name)}):\n    {FROM_EVERYONES[name]}\n"


def _spoilt(name: str, *lines: str) -> str:
    """The exercise as those lines, in which {solved} is the solution's call and {solved_y} the same with y for x."""
    solved = f"solution({_head(name)})"
    body = "".join(f"    {line}\n" for line in lines)
    body = body.format(solved=solved, solved_y=solved.replace("(x", "(y"))
    return f"{_solution(name).replace(f'def {name}(', 'def solution(')}\ndef {name}({_head(name)}):\n{body}"


def _spoilt_copy(name: str, copy: str) -> str:
    """The solution on another y than x, whose answer is handed over as if nothing had been."""
    hand_over = "x.copy_(y)" if EXERCISES[name].in_place else "return out"
    return _spoilt(name, copy, "out = {solved_y}", hand_over)
