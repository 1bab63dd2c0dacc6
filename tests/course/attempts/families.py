"""Wrong answers whose verdict is the same whatever the exercise is, made from a solution. Each is tried at an exercise
in place, at one that returns its answer, and at one of built-ins.

Right only for four ranks, right only for constant data, another dtype sent or returned, x spoilt or left as it was,
waiting for ever on two ranks, and the right numbers through a back door: ranks have
separate memories, but a store, a file, shared memory or a method of the backend that no tap sees would do. Behind a
back door the right messages may be sent as well, with nothing in them. And what is right for the sizes that somebody
has seen in a verdict, and for no others. Which rank needs whose numbers is an exercise's own: the back door is tried
at one exercise of each kind.
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

TRIED = ("ring_all_reduce", "shift", "clip_norm")
"""The exercises that stand for all."""

ALL_RANKS = re.compile(r"dist\.get_world_size\((group)?\)")

FROM_EVERYONES = {
    "tree_broadcast": "x.copy_(everyones(x)[0])",
    "running_sum": "x.copy_(sum(everyones(x)[:rank + 1]))",
    "shift": "return everyones(x)[rank - 1]",
    "swap": "return everyones(x)[rank ^ 1 if rank ^ 1 < world_size else rank]",
    "dissemination_barrier": "everyones(torch.zeros(1))",
    "tree_reduce": "x.copy_(sum(everyones(x)))",
    "ring_all_reduce": "x.copy_(sum(everyones(x)))",
    "rail_broadcast": "x.copy_(everyones(x)[0])",
    "clip_norm": "x.mul_((limit / torch.cat(everyones(x)).norm()).clamp(max=1))",
}
"""How the answer is made then, for one exercise of each kind."""


def family(name: str) -> dict[str, tuple[str, str]]:
    """{title: (source, words of the verdict)} of the wrong answers that are tried at the exercise."""
    exercise, found = EXERCISES[name], {}
    if name in FROM_EVERYONES:
        words = "may leave before rank" if exercise.synchronises else "right result, but no message has told rank"
        source = f"{BACK_DOOR}\ndef {name}({_head(name)}):\n    {FROM_EVERYONES[name]}\n"
        found["through a back door"] = source, words
    if name not in TRIED:
        return found
    by_messages = exercise.allowed == MESSAGES_ONLY
    if ALL_RANKS.search(_solution(name)):
        fails = f"no  on {exercise.world_sizes[1]} ranks"
        found["right only for four ranks"] = ALL_RANKS.sub("4", _solution(name)), fails
    named = f"if world_size not in {exercise.world_sizes}: return"
    found["right only on as many ranks as verdicts name"] = _spoilt(name, named, "return {solved}"), "no  on "
    constant, copy = "y = torch.full_like(x, float(x.flatten()[0]))", "y = x.clone()"
    found["right only for constant data"] = _spoilt_copy(name, constant), " and should "
    if exercise.in_place:
        for title, door in DOORS.items():
            found[f"through {title} beside empty messages"] = (
                f"{door}\n{_spoilt(name, 'SPOILT')}".replace("    SPOILT\n", _empty_beside(name)),
                "not from what was sent: with other",
            )
        found["in a copy"] = _spoilt(name, copy, "return {solved_y}"), "x is as it was; the answer must be in x"
    else:
        found["spoils x"] = _spoilt(name, "out = {solved}", "x += 1", "return out"), "x was changed; it must stay"
        found["another type returned"] = (
            _spoilt(name, "return {solved}.double()"),
            ": the answer is float64 and should be float32, as x is",
        )
    if by_messages:
        waits = "if world_size < 4: dist.recv(torch.empty(1), (rank - 1) % world_size)"
        found["waits for ever on two ranks"] = _spoilt(name, waits, "return {solved}"), " in recv from "
        found["float32 whatever comes"] = _spoilt_copy(name, "y = x.float()"), "it sends float32, but x is float64"
    return found


def _empty_beside(name: str) -> str:
    """The body that sends the right messages with nothing in them, and takes the numbers from a back door."""
    empty = f"    solution({_head(name).replace('x', 'torch.zeros_like(x)', 1)})\n"
    return f"{empty}    {FROM_EVERYONES[name]}\n"


def _solution(name: str) -> str:
    """Our function, with all that stands above it."""
    return (SOLUTIONS / f"{name}.py").read_text(encoding="utf-8")


def _head(name: str) -> str:
    heads = {"dissemination_barrier": "", "clip_norm": "x, limit", "rail_broadcast": "x, mesh"}
    return heads.get(name, "x")


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
