"""A recorded run gets the name of a collective only if it was one, whatever the data.

The oracle of the search is arithmetic: the same program on random numbers, and whether some variable then holds what
the collective promises for some variable that all ranks had before. What programs there are is in `tests.launch.hands`.
"""

import random

import pytest

from launch.replay.recording import Recording
from tests.launch.hands import DATA, PROGRAMS, written

HEAD = "p, n, root = {p}, {n}, {root}\nothers = [r for r in range(p) if r != rank]\n"
MANY = """
import linecache, sys

def flat(space):
    held = {}
    for name, value in space.items():
        if isinstance(value, torch.Tensor):
            held[name] = value.flatten().tolist()
        elif isinstance(value, list) and value and all(isinstance(item, torch.Tensor) for item in value):
            held[name] = torch.cat([item.flatten() for item in value]).tolist()
    return held

class Watched:  # dist, and what the variables held when it was called first
    def __init__(self):
        self.before = {}
    def __getattr__(self, name):
        if name in ("send", "recv", "isend", "irecv") and not self.before:
            frame = sys._getframe(1)
            self.before = flat({**frame.f_globals, **frame.f_locals})
        return getattr(dist, name)

tapes, held = [], []
for number, text in enumerate(TEXTS):
    name = f"<cell {number} of many>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    watched = Watched()
    space = {"rank": rank, "torch": torch, "dist": watched}
    tap.start()
    exec(compile(text, name, "exec"), space)
    tapes.append(tap.stop())
    held.append([watched.before, flat(space)])
    dist.barrier()
"""


def run(gang, texts: list[str], ranks: int) -> list[tuple[Recording, list]]:
    """Per program its recording, and per rank what the variables held when it first communicated, and in the end."""
    answers = gang.run(f"TEXTS = {texts!r}{MANY}", ranks, record=False, keep=["tapes", "held"], timeout=120)
    assert [answer["error"] for answer in answers] == [""] * ranks
    kept = [answer["keep"] for answer in answers]
    return [
        (Recording([each["tapes"][i] for each in kept]), [each["held"][i] for each in kept]) for i in range(len(texts))
    ]


def promised(collective: str, xs: list[list], root: int) -> list[list[list] | None]:
    """What each rank may hold in the end (None: anything), if the ranks began with `xs`."""
    p, total = len(xs), [sum(column) for column in zip(*xs, strict=True)]
    block = len(xs[0]) // p
    cut = [[x[r * block : (r + 1) * block] for r in range(p)] for x in xs]
    wholes = [sum(xs, []), sum((cut[r][r] for r in range(p)), [])]  # of blocks, or in place
    return {
        "all_reduce": [[total]] * p,
        "reduce": [[total] if r == root else None for r in range(p)],
        "broadcast": [[xs[root or 0]]] * p,
        "all_gather": [wholes] * p,
        "gather": [wholes if r == root else None for r in range(p)],
        "scatter": [[cut[root or 0][r]] if r != root else None for r in range(p)],
        "reduce_scatter": [[total[r * block : (r + 1) * block]] for r in range(p)],
        "all_to_all": [[sum((cut[s][r] for s in range(p)), [])] for r in range(p)],
    }[collective]


def is_true(collective: str, root: int | None, held: list) -> bool:
    """Whether the program did that on these random numbers, for some variable as its input."""
    for name in set.intersection(*(set(before) for before, _ in held)):
        xs = [before[name] for before, _ in held]
        if len({len(x) for x in xs}) == 1:
            ranks = zip(promised(collective, xs, root), held, strict=True)
            if all(wanted is None or _holds(wanted, *each) for wanted, each in ranks):
                return True
    return False


def _holds(wanted: list[list], before: dict, after: dict) -> bool:
    """Whether some variable is that, or a part of it."""
    values = [*before.values(), *after.values()]
    return any(v[i : i + len(w)] == w for w in wanted for v in values for i in range(0, len(v) - len(w) + 1))


@pytest.mark.parametrize("p", [2, 3, 4])
def test_no_wrong_program_gets_a_name(gang, p):
    rng = random.Random(p)
    cases, texts = [], []
    for name in PROGRAMS:
        for wrong in (False, True, True):
            n, root, seed = rng.choice((1, 2, 3)), rng.randrange(p), rng.randrange(10**6)
            collective, text, right = written(rng, name, wrong)
            cases.append((name, collective, right))
            texts += [HEAD.format(p=p, n=n, root=root) + x.format(seed=seed) + "\n" + text for x in DATA.values()]
    results, named, rights = run(gang, texts, p), 0, 0
    for number, (name, collective, right) in enumerate(cases):
        group = results[number * len(DATA) : (number + 1) * len(DATA)]
        held = group[0][1]
        for (recording, _), data in zip(group, DATA, strict=True):
            claim = recording.collective, recording.root
            told = f"{name} with {data}: {claim}\n{texts[number * len(DATA)]}"
            assert claim[0] == "recorded" or is_true(*claim, held), told
        rights += right
        named += right and group[0][0].collective == collective
    assert named >= 0.9 * rights


ACC = """
n, x, parts = 2, {x}, [torch.zeros(2) for _ in range(3)]
if rank == 0:
    [dist.recv(parts[r], r) for r in (1, 2)]
    acc = {acc}
    acc += parts[1]
    acc += parts[2]
else:
    dist.send(x, 0)
"""


@pytest.mark.parametrize("x", ["torch.ones(2)", "torch.arange(2.) + 10 * rank + 1"], ids=["ones", "origin"])
def test_a_sum_without_the_roots_own_part_is_no_reduce(gang, x):
    (recording, _), (whole, _) = run(gang, [ACC.format(x=x, acc="torch.zeros(2)"), ACC.format(x=x, acc="x.clone()")], 3)
    assert recording.collective == "recorded" and recording.title == "your run"
    assert whole.collective == ("recorded" if "ones" in x else "reduce")  # ones: `acc` may have been torch.ones


OWN = {
    "a list, bound": "parts = [torch.empty_like(x) for _ in range(p)]\nparts[rank] = x\n",
    "a list, copied": "parts = [torch.empty_like(x) for _ in range(p)]\nparts[rank].copy_(x)\n",
    "a tensor": "out = torch.zeros(p * n)\nout[rank * n:(rank + 1) * n] = x\nparts = list(out.chunk(p))\n",
    "rows": "out = torch.zeros(p, n)\nout[rank] = x\nparts = list(out)\n",
}
EXCHANGES = {
    "gather flat": """
parts = parts if rank == 0 else None
for r in range(1, p):
    dist.recv(parts[r], r) if rank == 0 else dist.send(x, 0) if rank == r else None
""",
    "all_gather exchange": """
works = [dist.isend(x, r) for r in range(p) if r != rank] + [dist.irecv(parts[r], r) for r in range(p) if r != rank]
[work.wait() for work in works]
""",
    "all_gather ring": """
for s in range(p - 1):
    works = [dist.isend(parts[(rank - s) % p], (rank + 1) % p), dist.irecv(parts[(rank - s - 1) % p], (rank - 1) % p)]
    [work.wait() for work in works]
""",
}


@pytest.mark.parametrize("how", EXCHANGES)
@pytest.mark.parametrize("own", OWN)
def test_a_part_that_a_rank_puts_in_place_itself_counts(gang, own, how):
    head = "p, n = world_size, 2\nx = torch.arange(2.) + 10 * rank + 1\n".replace("world_size", "4")
    (recording, _), (without, _) = run(
        gang,
        [
            head + OWN[own] + EXCHANGES[how],
            head + OWN[own].replace("x\n", "7 * x\n").replace("(x)", "(7 * x)") + EXCHANGES[how],
        ],
        4,
    )
    collective = how.split()[0]
    assert recording.collective == collective and recording.check() is None
    if "ring" not in how:
        assert without.collective == "recorded"


def test_a_tensor_without_a_name_is_called_by_what_is_done_with_it(gang):
    text = """
x = torch.arange(2.) + 10 * rank
dist.send(x + 1, 1) if rank == 0 else dist.recv(x, 0)
dist.send(3 * x, 1) if rank == 0 else dist.recv(torch.empty(2), 0)
"""
    (recording, _), (again, _) = run(gang, [text, text], 2)
    assert recording.buffers == again.buffers
    assert "sent tensor" in recording.buffers and not any("#" in name for name in recording.buffers)
