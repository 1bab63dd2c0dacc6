"""A recorded run gets the name of a collective only if it was one, and then always, whatever the data.

Most of it is a search (`tests.launch.search`), of which a small part runs here; the programs that led to it follow.
"""

import pytest

from tests.launch.hands import DATA, Program
from tests.launch.search import Table, Truth, run, search


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_right_program_gets_its_name_and_no_wrong_one_does(gang, ranks):
    table, failures = Table(), []
    for found in search(gang, 7, ranks, seed=3):
        table.add(found)
        # "mixed" is a hint: the run is that collective if each rank's own variable is taken for what it brings along.
        if found.verdict not in ("", "mixed") and not (found.case.kind == "right" and found.verdict == "missed"):
            failures.append(str(found))
    assert not failures, f"{failures[0]}\n{len(failures)} in all:\n{table}"
    assert all(table.named(data, "right") >= 0.9 for data in DATA), table  # some of them compute what they had


HEAD = "p, n = {p}, 2\nothers = [r for r in range(p) if r != rank]\n"
REDUCE = """
b = torch.empty_like(x)
if rank == 0:
    for r in (1, 2, 3):
        dist.recv(b, r)
        x += b
else:
    dist.send(x, 0)
"""
RING = """
c = list(x.chunk(p))
b = torch.empty_like(c[0])
for s in range(p - 1):
    w = dist.isend(c[(rank - 1 - s) % p], (rank + 1) % p)
    dist.recv(b, (rank - 1) % p)
    w.wait()
    c[(rank - 2 - s) % p] += b
"""
COLLECT = """
for s in range(p - 1):
    w = dist.isend(c[(rank - s) % p], (rank + 1) % p)
    dist.recv(c[(rank - 1 - s) % p], (rank - 1) % p)
    w.wait()
"""
WRONG = {
    "the last addition forgotten": REDUCE.replace("        x += b", "        if r != 3: x += b"),
    "taken away after the last one": REDUCE + "if rank == 0: x -= b\n",
    "a ring's last addition forgotten": RING.replace("    c[(", "    if s < p - 2: c[("),
    "on one rank only": RING.replace("    c[(", "    if s < p - 2 or rank != 1: c[("),
    "overwritten by numpy": RING + COLLECT + "x.numpy()[0] = 5\n",
    "overwritten by numpy, and a barrier": REDUCE + "if rank == 0: x.numpy()[:] = 5\ndist.barrier()\n",
}
RIGHT = {
    ("reduce", "flat"): REDUCE,
    ("reduce_scatter", "ring"): RING,
    ("all_reduce", "ring"): RING + COLLECT,
}


KINDS = ("floats", "rank", "zeros")  # the search takes all of them


def told(gang, body: str, p: int, data=KINDS):
    """The recordings of that program on several kinds of data."""
    recordings = run(gang, [f"{HEAD.format(p=p)}{DATA[kind].format(seed=7)}\n{body}" for kind in data], p)
    assert not [error for error in recordings if isinstance(error, str)]
    return recordings


@pytest.mark.parametrize("program", WRONG)
def test_what_is_wrong_has_no_name(gang, program):
    for recording, data in zip(told(gang, WRONG[program], 4), KINDS, strict=True):
        assert (recording.collective, recording.title) == ("recorded", "your run"), data


@pytest.mark.parametrize("name", RIGHT, ids=" ".join)
def test_what_is_right_has_its_name(gang, name):
    for recording, data in zip(told(gang, RIGHT[name], 4), KINDS, strict=True):
        assert (recording.collective, recording.algorithm) == name and recording.check() is None, data
        assert recording.title == f"your run: {' '.join(name)}"


def test_a_gather_into_every_ranks_own_list_is_a_gather(gang):
    body = """
x = x[:n].clone()
y = [torch.zeros_like(x) for _ in range(p)]
y[rank] = x
if rank == 0:
    for r in others: dist.recv(y[r], r)
else:
    dist.send(y[rank], 0)
"""
    for recording in told(gang, body, 3):
        assert (recording.collective, recording.root) == ("gather", 0) and recording.check() is None


FORGOTTEN = """
y = torch.zeros_like(x)
y[rank * n:(rank + 1) * n] = x[rank * n:(rank + 1) * n]
works = [dist.isend(x[r * n:(r + 1) * n], r) for r in others if rank == 1]
works += [dist.irecv(y[r * n:(r + 1) * n], r) for r in others if rank == 0]
for w in works: w.wait()
"""
FLIPPED = """
x = x[:n].clone()
if rank == 1:
    y = torch.zeros(p * n, dtype=x.dtype)
    y[rank * n:(rank + 1) * n].copy_(x.flip(0))
    dist.recv(y[:n], 0)
else:
    dist.send(x, 1)
"""


@pytest.mark.parametrize("body", [FORGOTTEN, FLIPPED], ids=["all_to_all without a message", "another piece"])
def test_what_ranks_give_to_one_call_stands_in_one_buffer(gang, body):
    """Both were called a gather: on 2 ranks the pieces of an `x` and of a part of a `y` have the right numbers."""
    for recording, data in zip(told(gang, body, 2), KINDS, strict=True):
        assert (recording.collective, recording.title) == ("recorded", "your run"), data


PUT = {"bound": "y[rank - 1] = x\n", "copied": "y[rank - 1].copy_(x)\n"}


@pytest.mark.parametrize("how", PUT)
def test_an_all_gather_that_puts_its_own_part_where_the_others_belongs_is_none(gang, how):
    """On 2 ranks `rank - 1` is the other rank's place. What arrives overwrites the own part, which is nowhere then.

    So each rank ends with the other's numbers alone. That is no all_gather. Read as blocks that changed places it is
    an all_to_all in place, whose blocks on the diagonal are whatever was in the memory; both names are true.
    """
    body = (
        "x = x[:n].clone()\ny = [torch.empty_like(x) for _ in range(p)]\n"
        + PUT[how]
        + """
w = dist.irecv(y[1 - rank], 1 - rank), dist.isend(x.clone(), 1 - rank)
[work.wait() for work in w]
"""
    )
    for recording in told(gang, body, 2):
        assert recording.collective in ("recorded", "all_to_all")


BLOCKS = "y = [torch.zeros(n, dtype=x.dtype) for _ in range(p)]\ny[1 - rank] += {data}\ngot = torch.empty_like(y[0])\n"
BLOCKS += "w = dist.isend(y[{sent}], 1 - rank)\ndist.recv(got, 1 - rank)\nw.wait()\ny[{put}] = got\n"


@pytest.mark.parametrize(
    ("data", "sent", "put", "name"),
    [("x[:n]", "1 - rank", "1 - rank", "all_to_all"), ("0", "0", "0", "recorded"), ("x[:n]", "rank", "0", "recorded")],
    ids=["the other's block", "the first of zeros", "the own, which is zero"],
)
def test_whether_zeros_went_where_they_belong_can_be_told(gang, data, sent, put, name):
    """The oracle puts other numbers in their place: on zeros alone nobody could say."""
    body = BLOCKS.format(data=data, sent=sent, put=put)
    truth = Truth(Program("", "all_gather", None, "sum", 2, 2, body, 7))
    assert (truth.holds("all_to_all", None) is True) == (name == "all_to_all")
    assert {recording.collective for recording in told(gang, body, 2)} == {name}


def test_the_own_part_of_a_built_in_reduce_scatter_is_told(gang):
    body = "\ny = torch.empty(n, dtype=x.dtype)\ndist.reduce_scatter_tensor(y, x)\n"
    for recording in told(gang, body, 3):
        assert (recording.collective, recording.result) == ("reduce_scatter", "y") and recording.check() is None


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
    for acc in ("torch.zeros(2)", "torch.ones(2)", "x.clone()"):
        (recording,) = run(gang, [ACC.format(x=x, acc=acc)], 3)
        assert recording.collective == ("reduce" if acc == "x.clone()" else "recorded"), acc


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
    recording, without = run(
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
    recording, again = run(gang, [text, text], 2)
    assert recording.buffers == again.buffers
    assert "sent tensor" in recording.buffers and not any("#" in name for name in recording.buffers)


PARTNERS = """
mine, rounds = x, []
for d in {distances}:
    low, high = mine.chunk(2)
    keep, give = (high, low) if {upper} else (low, high)
    b = torch.empty_like(keep)
    w = dist.isend(give, {partner})
    dist.recv(b, {partner})
    w.wait()
    keep += b
    rounds.append(({partner}, keep, give))
    mine = keep
for other, kept, given in reversed(rounds):
    w = dist.isend(kept, other)
    dist.recv(given, other)
    w.wait()
"""
SHOTS = """
c, b = list(x.chunk(p)), torch.empty(p, n, dtype=x.dtype)
works = [dist.isend(c[r].clone(), r) for r in others] + [dist.irecv(b[r], r) for r in others]
for w in works: w.wait()
for r in others: c[rank] += b[r]
works = [dist.isend(c[rank], r) for r in others] + [dist.irecv(c[r], r) for r in others]
for w in works: w.wait()
"""
ORDERS = {
    "halving_doubling": PARTNERS.format(distances="(1, 2)", upper="rank & d", partner="rank ^ d"),
    "halving_doubling_far_first": PARTNERS.format(distances="(2, 1)", upper="rank & d", partner="rank ^ d"),
    "swing": PARTNERS.format(
        distances="(1, -1)", upper="rank in ((1, 2) if d > 0 else (2, 3))", partner="(rank + (-1) ** rank * d) % p"
    ),
    "two_shot": SHOTS,
}


FAR_FIRST = """
for d in (2, 1):
    if rank % (2 * d) == 0: dist.send(x, rank + d)
    elif rank % (2 * d) == d: dist.recv(x, rank - d)
"""
NEAR_FIRST = """
for d in (1, 2):
    if rank < d: dist.send(x, rank + d)
    elif rank < 2 * d: dist.recv(x, rank - d)
"""
TO_THE_ROOT = """
b = torch.empty_like(x)
for d in (2, 1):
    if rank < d:
        dist.recv(b, rank + d)
        x += b
    elif rank < 2 * d:
        dist.send(x, rank - d)
"""


def test_a_binomial_tree_may_begin_with_the_nearest_or_the_farthest(gang):
    found = [told(gang, body, 4, ("ints",))[0] for body in (FAR_FIRST, NEAR_FIRST, TO_THE_ROOT)]
    assert [r.title for r in found] == ["your run: broadcast binomial"] * 2 + ["your run: reduce binomial"]


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_of_partners_is_in_the_name(gang, name):
    """The nearest first is what the field calls halving-doubling; which chunks a rank keeps is its own affair."""
    for recording, data in zip(told(gang, ORDERS[name], 4), KINDS, strict=True):
        assert (recording.collective, recording.algorithm) == ("all_reduce", name) and recording.check() is None, data


def test_two_ranks_have_one_algorithm_only(gang):
    """Halving and doubling, two shots and the ring send the same messages on 2 ranks: it is called the ring."""
    bodies = [PARTNERS.format(distances="(1,)", upper="rank & d", partner="rank ^ d"), SHOTS, RING + COLLECT]
    assert {told(gang, body, 2)[0].algorithm for body in bodies} == {"ring"}


RING_FUNCTION = """
def ring_all_reduce(x):
    c = list(x.chunk(p))
    b = torch.empty_like(c[0])
    for s in range(p - 1):
        w = dist.isend(c[(rank - 1 - s) % p]{copy}, (rank + 1) % p)
        dist.recv(b, (rank - 1) % p)
        w.wait()
        c[(rank - 2 - s) % p] += b
    for s in range(p - 1):
        w = dist.isend(c[(rank - s) % p]{copy}, (rank + 1) % p)
        dist.recv(c[(rank - 1 - s) % p], (rank - 1) % p)
        w.wait()
y = x.clone()
ring_all_reduce(y)
"""
EXCHANGE = """
parts = [torch.empty_like(x) for _ in range(p)]
parts[rank] = x
works = [dist.isend(x, r) for r in others]
for r in others: dist.recv(parts[r], r)
for w in works: w.wait()
"""
COLUMNS = """
x = x[:n].clone()
y = torch.empty(n, p, dtype=x.dtype)
y[:, rank] = x
b = torch.empty_like(x)
for s in range(1, p):
    w = dist.isend(x, (rank + s) % p)
    dist.recv(b, (rank - s) % p)
    w.wait()
    y[:, (rank - s) % p] = b
"""
INTO_Y = {
    "the parameter has the name of a variable": ("all_reduce ring", RING_FUNCTION.format(copy="")),
    "copies are sent": ("all_reduce ring", RING_FUNCTION.format(copy=".clone()")),
    "sum of a list": ("all_reduce exchange", EXCHANGE + "y = sum(parts)\n"),
    "a stack is added up": ("all_reduce exchange", EXCHANGE + "y = torch.stack(parts).sum(0)\n"),
    "into columns": ("all_gather", COLUMNS),
    "a list becomes a tensor": (
        "all_gather",
        "x = x[:n].clone()\n" + EXCHANGE.replace("parts", "y") + "y = torch.cat(y)\n",
    ),
    "added with foreach": (
        "all_reduce exchange",
        EXCHANGE + "y = x.clone()\nfor r in others: torch._foreach_add_([y], [parts[r]])\n",
    ),
    "added by index": (
        "all_reduce exchange",
        EXCHANGE + "y = x.clone()\nfor r in others: y.index_add_(0, torch.arange(len(x)), parts[r])\n",
    ),
    "a product with ones": (
        "all_reduce exchange",
        EXCHANGE + "y = torch.ones(p, dtype=x.dtype) @ torch.stack(parts)\n",
    ),
    "the last row of a running sum": ("all_reduce exchange", EXCHANGE + "y = torch.stack(parts).cumsum(0)[-1]\n"),
    "the largest of a stack": ("all_reduce exchange", EXCHANGE + "y = torch.stack(parts).max(0).values\n"),
    "chosen by a mask": (
        "all_reduce exchange",
        EXCHANGE + "y = torch.where(torch.arange(len(x)) >= 0, sum(parts), x)\n",
    ),
    "zeros that all are added to": (
        "all_reduce exchange",
        EXCHANGE + "y = torch.zeros_like(x)\nfor part in parts: y.add_(part)\n",
    ),
    "turned twice": (
        "all_reduce",
        "y, b = x.clone(), torch.empty_like(x)\nfor s in range(1, p):\n    w = dist.isend(x.flip(0), (rank + s) % p)\n"
        "    dist.recv(b, (rank - s) % p)\n    w.wait()\n    y = y + b.flip(0)\n",
    ),
    "each rank gets its block of a repeated x": (
        "all_gather",
        "x = x[:n].clone()\nblocks = x.repeat(p)\ny = x.repeat(p)\n"
        "works = [dist.isend(blocks[r * n:(r + 1) * n], r) for r in others]\n"
        "for r in others: dist.recv(y[r * n:(r + 1) * n], r)\nfor w in works: w.wait()\n",
    ),
    "a copy is handed on": (
        "broadcast",
        "y = x.clone()\nif rank: dist.recv(y, rank - 1)\nif rank < p - 1: dist.send(y.clone(), rank + 1)\n",
    ),
}


@pytest.mark.parametrize("how", INTO_Y)
def test_the_name_says_of_which_variable_and_into_which(gang, how):
    name, body = INTO_Y[how]
    for recording, data in zip(told(gang, body, 3), KINDS, strict=True):
        assert recording.title.startswith(f"your run: {name}"), data
        assert recording.title.endswith((" of x into y", " of x", "chain", "ring")), data
        assert recording.check() is None and "y" in recording.buffers, data


ADDS_B = """
y, b = x.clone(), torch.empty_like(x)
w = dist.isend(x, 1 - rank)
dist.recv(b, 1 - rank)
w.wait()
"""
BEHIND = {
    "a thread": ADDS_B + "import threading\ny += b\nt = threading.Thread(target=y.zero_)\nt.start()\nt.join()\n",
    "ctypes": ADDS_B + "import ctypes\ny += b\nctypes.memset(y.data_ptr(), 0, 4)\n",
    "infinity": ADDS_B + "import ctypes\ny += b\nctypes.c_float.from_address(y.data_ptr()).value = 1e999\n",
    "no number": ADDS_B + "import ctypes\ny += b\nctypes.memset(y.data_ptr(), 255, 4)\n",
    "a sum in a wider type": "import threading\nx = x.half()\n"
    + ADDS_B.replace("x.clone()", "x.float()")
    + "y += b\nt = threading.Thread(target=y.mul_, args=(3,))\nt.start()\nt.join()\n",
    "complex numbers": "import ctypes\nx = torch.complex(x, x + 1)\n"
    + ADDS_B
    + "y += b\nctypes.memset(y.data_ptr(), 0, 4)\n",
    "a nan that is gone": "import threading\nx[0] = float('nan')\n"
    + ADDS_B
    + "y += b\nt = threading.Thread(target=y.nan_to_num_)\nt.start()\nt.join()\n",
    "sent as other numbers": "b = torch.empty_like(x).view(torch.int32)\n"
    + "w = dist.isend(x.view(torch.int32), 1 - rank)\n"
    + "dist.recv(b, 1 - rank)\nw.wait()\ny = x.clone()\ny.view(torch.int32).add_(b)\n",
    "numbers of another type": ADDS_B + "y.view(torch.int32).add_(b.view(torch.int32))\n",
    "an array that numpy had before": "import numpy as np\na = x.numpy().copy()\nx = torch.from_numpy(a)\n"
    + ADDS_B.replace("x.clone()", "x").replace("isend(x,", "isend(x.clone(),")
    + "y += b\na[0] = 7\n",
}


@pytest.mark.parametrize("what", BEHIND)
def test_a_change_that_no_op_made_is_found_by_the_numbers(gang, what):
    (recording,) = told(gang, BEHIND[what], 2, ("floats",))
    assert (recording.collective, recording.title) == ("recorded", "your run")
    assert not any(len(made.terms) == 2 and made.lo == 0 for made in recording.made_of(0, "y"))


ROWS = "torch.tensor([*range(len(x))])"
HOW = {
    "products with ones": (
        "all_reduce exchange of x into y",
        EXCHANGE
        + "s = torch.stack(parts)\ny = torch.einsum('k,kn->n', torch.ones(2), s[:2])\n"
        + "y = torch.addmv(y, s[2:3].T, torch.ones(1)) + torch.bmm(torch.ones(1, 1, 1), s[None, 3:])[0, 0]\n",
    ),
    "number by number": (
        "all_reduce exchange of x into y",
        EXCHANGE
        + "s = torch.stack(parts)\ny = torch.stack([torch.dot(torch.ones(3), s[:3, j]) for j in range(len(x))])\n"
        + "m = torch.arange(len(x)) >= 0\ny[m] = y[m] + s[3:].nansum(0)[m]\n"
        + "y = y.gather(0, torch.arange(len(x)))\n",
    ),
    "in a wider type": (
        "all_reduce exchange of x into y",
        "x = x.half()\n" + EXCHANGE + "y = x.float()\nfor r in others: y += parts[r]\n",
    ),
    "what numpy had changed before, and after": (
        "all_reduce ring",
        "a = x.numpy()\na[0] = 99\ny = x.clone()\n" + (RING + COLLECT).replace("x.chunk", "y.chunk") + "a[0] = 5\n",
    ),
    "rows by their numbers": (
        "all_reduce exchange of x into y",
        EXCHANGE + "y = x.clone()\n" + f"rows = {ROWS}\nfor r in others: y[rows] += parts[r][rows]\n",
    ),
    "rows added by index": (
        "all_reduce exchange of x into y",
        EXCHANGE + f"y = x.clone()\nfor r in others: y.index_add_(0, {ROWS}, parts[r])\n",
    ),
    "added up in double": (
        "all_reduce ring",
        RING.replace("+= b", ".copy_((c[(rank - 2 - s) % p].double() + b.double()).to(x.dtype))") + COLLECT,
    ),
    "added up in a wider type": (
        "all_reduce exchange of x into y",
        EXCHANGE + "acc = torch.zeros(len(x), dtype=torch.float64)\n"
        "for part in parts: acc += part.double()\ny = acc.float()\n",
    ),
    "divided": ("all_reduce ring (average)", RING + COLLECT + "x /= p\n"),
    "an average": ("all_reduce exchange (average) of x into y", EXCHANGE + "y = torch.stack(parts).mean(0)\n"),
    "the largest": ("all_reduce exchange (maximum) of x into y", EXCHANGE + "y = torch.stack(parts).amax(0)\n"),
    "in a class": (
        "all_reduce ring",
        "class Ring:\n    def __init__(self, x): self.x, self.c = x, list(x.chunk(p))\n"
        "    def run(self):\n        x = self.x\n        c = self.c\n"
        + (RING.replace("c = list(x.chunk(p))\n", "") + COLLECT).replace("\n", "\n        ")
        + "\nring = Ring(x)\ndel x\nring.run()\n",
    ),
    "sent from a pool": (
        "all_reduce ring",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        + (RING + COLLECT)
        .replace("dist.isend(", "pool.submit(dist.send, ")
        .replace("dist.recv(", "pool.submit(dist.recv, ")
        .replace("(rank - 1) % p)\n    w.wait()", "(rank - 1) % p).result()\n    w.result()"),
    ),
}


@pytest.mark.parametrize("what", HOW)
def test_the_name_says_how_it_was_reduced(gang, what):
    name, body = HOW[what]
    (recording,) = told(gang, "x = x.float()\n" + body, 4, ("floats",))
    assert recording.title == f"your run: {name}" and recording.check() is None
    assert " into " not in name or name.endswith(f" into {recording.result}")


@pytest.mark.parametrize("body", ["y = y - x\n", "y = y.roll(1)\n", "y = torch.zeros_like(y)\n"])
def test_a_sum_that_only_a_list_of_chunks_still_holds_is_that_of_the_list(gang, body):
    ring = "y = x.clone()\n" + (RING + COLLECT).replace("x.chunk", "y.chunk")
    (recording,) = told(gang, ring + body, 4, ("origin",))
    assert (recording.title, recording.result) == ("your run: all_reduce ring of x into c", "c")
    assert {str(cell) for cell in recording.states(-1).cells["c"].flat} >= {"a0+b0+c0+d0"}


@pytest.mark.parametrize("how", ["y = torch.stack(parts).sum(0)\n", "y = sum(part.long() for part in parts)\n"])
def test_integers_that_a_sum_makes_wider_are_the_same_numbers(gang, how):
    right, wrong = (told(gang, "x = x.int()\n" + EXCHANGE + how + end, 3, ("ints",))[0] for end in ("", "y[0] += 1\n"))
    assert right.title == "your run: all_reduce exchange of x into y" and right.check() is None
    assert right.made_of(0, "y")[0].hi == 6 and wrong.collective == "all_gather"


HANDED_OUT = "if rank == 0:\n    for r in others: dist.send(x, r)\nelse:\n    dist.recv(x, 0)\n"
DIVIDED = {
    "in place": RING + COLLECT + "x /= p\n",
    "anew": RING + COLLECT + "x = x / p\n",
    "times 1/p": RING + COLLECT + "x.mul_(1 / p)\n",
    "into another variable": RING + COLLECT + "y = x / p\n",
    "chunk by chunk": RING + "c[rank] /= p\n" + COLLECT,
    "by the root, which hands it out": REDUCE + "if rank == 0: x /= p\n" + HANDED_OUT,
    "sent as it is divided": REDUCE + HANDED_OUT.replace("(x, r)", "(x / p, r)") + "if rank == 0: x /= p\n",
    "a mean of a stack": EXCHANGE + "y = torch.stack(parts).mean(0)\n",
    "a sum of parts": EXCHANGE + "y = torch.zeros_like(x)\nfor part in parts: y += part\ny /= p\n",
    "after a built-in": "dist.all_reduce(x)\nx /= p\n",
}
UNDIVIDED = {
    "by another number": RING + COLLECT + "x /= 2\n",
    "twice": RING + COLLECT + "x /= p\nx /= p\n",
    "before it was added up": "x /= p\n" + RING + COLLECT,
    "no sum": RING.replace("+= b", ".copy_(b)") + COLLECT + "x /= p\n",
    "a sum of some": RING.replace("    c[(", "    if s: c[(") + COLLECT + "x /= p\n",
    "a maximum": EXCHANGE + "y = torch.stack(parts).amax(0) / p\n",
}


@pytest.mark.parametrize("how", DIVIDED)
def test_a_sum_divided_by_the_number_of_its_terms_is_shown_as_an_average(gang, how):
    (recording,) = told(gang, DIVIDED[how], 4, ("origin",))
    held = [rank[recording.result] for rank in recording.states(-1)]
    assert {str(cell) for (cell, *_) in held} == {"avg(a0,b0,c0,d0)"} and recording.check() is None
    texts = {(name, chunk): text for i in range(len(recording.steps)) for _, name, chunk, text in recording.values(i)}
    assert texts[recording.result, 0].startswith("150 151")
    assert "is made of a0, b0, c0, d0" in recording.trace(0, 0, -1).sentence


@pytest.mark.parametrize("how", UNDIVIDED)
def test_what_is_no_average_is_not_called_one(gang, how):
    (recording,) = told(gang, UNDIVIDED[how], 4, ("origin",))
    assert not [index for index in range(len(recording.steps)) if "avg" in str(recording.states(index))]
    assert how != "no sum" or not [step for step in recording.steps if "the sum is divided" in step.caption]


def test_a_result_that_is_a_part_of_a_larger_tensor_says_which(gang):
    cut_off = "y = torch.cat([x, x[:2]])\nx = [y[r * n : r * n + n] for r in range(p)]\n"
    ring = (RING + COLLECT).replace("c = list(x.chunk(p))", "c = x\ndel x")
    (recording,) = told(gang, cut_off + ring, 4, ("ints",))
    assert recording.title == "your run: all_reduce ring of c"


BRUCK = """
x = x[:n].clone()
have = x[None].clone()
while len(have) < p:
    got = torch.empty_like(have)
    w = dist.isend(have, (rank - len(have)) % p)
    dist.recv(got, (rank + len(have)) % p)
    w.wait()
    have = torch.cat([have, got])
"""


STRIDED = {  # of a 4 x 2 matrix `x`; `outer` is an all_reduce that returns new memory
    "transposed": ("your run", "y = outer(x).t()\n"),
    "rows and columns changed in place": ("your run", "y = outer(x)\ny.t_()\ny.unsqueeze_(0)\n"),
    "other dimensions": ("your run", "y = outer(x).view(2, 2, 2).permute(2, 0, 1)\n"),
    "one column twice": ("your run", "y = outer(x)[:, :1].expand(4, 2)\n"),
    "of a transposed matrix": ("your run: all_reduce exchange of x into y", "x = x.view(2, 4).t()\ny = outer(x)\n"),
    "transposed and back": ("your run: all_reduce exchange of x into y", "y = outer(x.t()).t()\n"),
    "a column": ("your run: all_reduce exchange of x into y", "x = x[:, 1]\ny = outer(x)\n"),
    "in too many pieces": ("your run", "y = outer(x.repeat(20, 4)).t()\n"),
}


@pytest.mark.parametrize("what", STRIDED)
def test_a_result_is_compared_in_the_order_of_its_elements(gang, what):
    name, body = STRIDED[what]
    outer = "def outer(x):" + f"\nx = x.contiguous(){EXCHANGE}return sum(parts)".replace("\n", "\n    ") + "\n"
    for recording in told(gang, f"{outer}x = x.view(4, 2)\n{body}", 4, ("ints", "floats")):
        assert recording.title == name and recording.check() is None
        if what == "transposed":
            assert [made.terms[0][1] for made in recording.made_of(0, "y")] == [0, 2, 4, 6, 1, 3, 5, 7]


def test_a_bruck_without_its_last_rotation_is_no_gather(gang):
    right, wrong = (
        told(gang, BRUCK + end, 4)[0] for end in ("y = have.roll(rank, 0).flatten()\n", "y = have.flatten()\n")
    )
    assert (right.collective, right.algorithm) == ("all_gather", "bruck") and wrong.title == "your run"


UNEVEN = RING.replace("x.chunk(p)", "x.tensor_split(p)").replace(
    "dist.recv(b,", "b = torch.empty_like({})\n    dist.recv(b,"
)
CHAIN = (
    "for part in x.split({}):\n    if rank: dist.recv(part, rank - 1)\n    if rank < p - 1: dist.send(part, rank + 1)\n"
)
ALGORITHMS = {
    "a ring whose chunks are not of one length": (
        "x = torch.cat([x, x[:2] + 1])\n" + UNEVEN.format("c[(rank - 2 - s) % p]") + COLLECT,
        ("all_reduce", "ring"),
    ),
    "a ring over chunk(), whose last piece is shorter": (
        "x = torch.cat([x, x[:2] + 1])\n"
        + UNEVEN.replace("tensor_split", "chunk").format("c[(rank - 2 - s) % p]")
        + COLLECT,
        ("all_reduce", "ring"),
    ),
    "a chain whose last chunk is shorter": (CHAIN.format("3"), ("broadcast", "chain")),
    "a chain in four chunks": (CHAIN.format("2"), ("broadcast", "chain")),
    "a chain in one": (CHAIN.format("len(x)"), ("broadcast", "chain")),
}


@pytest.mark.parametrize("what", ALGORITHMS)
def test_an_algorithm_is_named_however_the_vector_is_cut(gang, what):
    body, name = ALGORITHMS[what]
    (recording,) = told(gang, body, 4, ("ints",))
    assert (recording.collective, recording.algorithm) == name


def test_weights_are_data_though_one_rank_has_the_weight_of_one(gang):
    body = "x = x.float()\ng = x * (rank + 1)\n" + REDUCE.replace("x", "g")
    for recording in told(gang, body, 4, ("ints", "floats")):
        assert (recording.collective, recording.algorithm, recording.result) == ("reduce", "flat", "g")


@pytest.mark.parametrize("name", [("broadcast", "flat"), ("scatter", "flat")], ids=" ".join)
def test_data_that_were_made_wider_before_have_their_name(gang, name):
    end = "y = x.clone() if rank == 0 else torch.empty_like(x)\n" + HANDED_OUT.replace("(x", "(y")
    if name[0] == "scatter":
        end = "y = torch.empty(n, dtype=x.dtype)\nif rank == 0:\n    y.copy_(x[:n])\n"
        end += "    for r in others: dist.send(x[r * n:(r + 1) * n], r)\nelse: dist.recv(y, 0)\n"
    (recording,) = told(gang, "x = x.float().double()\n" + end, 4, ("ints",))
    assert (recording.collective, recording.algorithm) == name


def test_what_is_not_followed_is_named(gang):
    (recording,) = told(gang, EXCHANGE + "y = sum(parts).double().softmax(0)\ndist.all_reduce(y)\n", 3, ("floats",))
    assert "computed with softmax" in [way for index in range(len(recording.steps)) for way in recording.ways(index)]


OTHERWISE = {
    "all of it is taken away": RING + COLLECT + "x -= x\n" + "y = x.float() - x.float()\n",
    "a choice that depends on the data": RING + "x = torch.where(x > -1e9, x, -x)\n" + RING.split("\n", 2)[1] + COLLECT,
    "an order that depends on the data": RING + COLLECT + "x.copy_(x[(x * 0).argsort(stable=True)])\n",
    "a root that adds its own twice": "y = x.clone()\nif rank == 0: y += x\n"
    + "b = torch.empty_like(x)\nif rank == 0:\n    for r in others: dist.recv(b, r); y += b\n"
    + "    for r in others: dist.send(y, r)\nelse:\n    dist.send(y, 0); dist.recv(y, 0)\n",
    "a root that scales its own, by what it was made of": "g = x.float() * 4\ny = g / 4 if rank == 0 else g.clone()\n"
    + "b = torch.empty_like(g)\nif rank == 0:\n    for r in others: dist.recv(b, r); y += b\n"
    + "    for r in others: dist.send(y, r)\nelse:\n    dist.send(g, 0); dist.recv(y, 0)\n",
    "a ring over chunks of a copy that one rank scaled": "g = x.clone()\nif rank == 0: g += x\n"
    + (RING + COLLECT).replace("x.chunk", "g.chunk"),
    "a scatter whose root keeps another part": "y = torch.empty(n, dtype=x.dtype)\nif rank == 0:\n"
    + "    for r in others: dist.send(x[r * n:(r + 1) * n], r)\n    y.copy_(x[n:2 * n])\nelse: dist.recv(y, 0)\n",
    "one rank receives into another variable": "y, z = x.clone(), torch.zeros_like(x)\nif rank:\n    y.zero_()\n"
    + "    dist.recv(z if rank == 3 else y, 0)\nelse:\n    for r in others: dist.send(y, r)\n",
    "memory that nobody filled is added": "parts = [torch.empty_like(x) for _ in range(p)]\ny = x.clone()\n"
    + "if rank == 0:\n    for r in others: dist.recv(parts[r], r)\n    for part in parts: y = y + part\n"
    + "else:\n    dist.send(x, 0)\n",
    "an all_reduce that one rank has lost": "y, b = x.clone(), torch.empty_like(x)\nif rank == 0:\n"
    + "    for r in others: dist.recv(b, r); y += b\n    for r in others: dist.send(y, r)\n"
    + "else:\n    dist.send(x, 0); dist.recv(b if rank == 3 else y, 0)\n    b.zero_()\n",
    "an all_reduce over two hosts, of which one rank is not told": "b = torch.empty_like(x)\nif rank % 2:\n"
    + "    dist.send(x, rank - 1)\n    if rank == 1: dist.recv(x, 0)\nelse:\n    dist.recv(b, rank + 1)\n    x += b\n"
    + "    w = dist.isend(x, 2 - rank); dist.recv(b, 2 - rank); w.wait()\n    x += b\n"
    + "    if rank == 0: dist.send(x, 1)\n",
    "a maximum, but on one rank": "y, b = x.clone(), torch.empty_like(x)\nfor d in (1, 2):\n"
    + "    w = dist.isend(y, rank ^ d); dist.recv(b, rank ^ d); w.wait()\n"
    + "    y = (torch.maximum if d == 1 or rank < 3 else torch.minimum)(y, b)\n",
    "an all_reduce of which one rank has lost a number": RING + COLLECT + "if rank == 2: x[0] = 7\n",
    "a broadcast of which one rank has lost a number": "y = x.clone()\n"
    + HANDED_OUT.replace("(x", "(y")
    + "if rank == 3: y[0] = 7\n",
    "half of it": "low, high = x.chunk(2)\nlow, high = low.clone(), high.clone()\n"
    + "b = torch.empty_like(low)\nfor r in others:\n    w = dist.isend(high, r); v = dist.isend(low, r)\n"
    + "    dist.recv(b, r); dist.recv(b, r); w.wait(); v.wait()\n",
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_what_is_only_nearly_a_collective_has_no_name(gang, what):
    data = [kind for kind in KINDS if kind != "zeros"]  # of zeros nobody can say that they were doubled
    for recording, kind in zip(told(gang, OTHERWISE[what], 4, data), data, strict=True):
        assert recording.title == "your run", kind


@pytest.mark.parametrize("part", ["y = x[r * n:(r + 1) * n]", "y = torch.zeros(n, dtype=x.dtype)"])
def test_what_the_root_of_a_scatter_keeps_may_stay_in_its_vector(gang, part):
    """A loop leaves a view of another rank's part behind, or the root never fills its y."""
    body = "y = torch.empty(n, dtype=x.dtype)\nif rank == 0:\n    for r in others:\n        {}\n        {}\nelse: {}\n"
    body = body.format("dist.send(x[r * n:(r + 1) * n], r)", part, "dist.recv(y, 0)")
    (recording,) = told(gang, body, 4, ("ints",))
    assert (recording.collective, recording.algorithm, recording.root) == ("scatter", "flat", 0)


def test_a_gather_in_the_wrong_order_is_no_scatter_on_two_ranks(gang):
    """Rank 0's y begins with what a scatter from rank 1 would bring, and rank 1 has the rest."""
    gather = "s, y = x[:n].clone(), None\nif rank == 0:\n    b = torch.empty_like(s)\n    dist.recv(b, 1)\n"
    gather += "    y = torch.cat([{}])\n    del b\nelse:\n    dist.send(s, 0)\n"
    (wrong,), (right,) = (told(gang, gather.format(parts), 2, ("ints",)) for parts in ("b, s", "s, b"))
    assert (wrong.collective, right.collective) == ("recorded", "gather")


STEP = "y = x.clone()\nb = torch.empty_like(x)\n"
STEP += "if rank > 0:\n    dist.recv(b, rank - 1)\n    y += b\nif rank < p - 1:\n    dist.send(y, rank + 1)\n"
SCAN = "y = x.clone()\nfor d in (1, 2):\n    b = torch.empty_like(x)\n"
SCAN += "    w = dist.isend(y, rank + d) if rank + d < p else None\n    if rank >= d: dist.recv(b, rank - d)\n"
SCAN += "    if w: w.wait()\n    if rank >= d: y += b\n"


def test_a_prefix_sum_is_no_reduce_and_one_along_a_chain_says_what_each_rank_keeps(gang):
    """A chain that reduces to the last rank sends the same, and leaves the same where ranks keep what they add up."""
    kept, let_go = told(gang, STEP, 4), told(gang, STEP + "if rank < p - 1: y.zero_()\n", 4)
    assert {r.title for r in told(gang, SCAN, 4)} == {"your run"}
    assert {r.title for r in kept} == {"your run: reduce (prefix sums) of x into y"}
    assert {r.title for r in let_go} == {"your run: reduce of x into y"}


def test_a_built_in_all_reduce_that_one_rank_has_overwritten_is_no_reduce(gang):
    (recording,) = told(gang, "dist.all_reduce(x)\nif rank == 3: x += 1\n", 4, ("ints",))
    assert recording.collective == "recorded"


def test_a_tensor_used_before_the_wait_gives_no_name(gang):
    body = EXCHANGE.replace(
        "for r in others: dist.recv(parts[r], r)", "got = [dist.irecv(parts[r], r) for r in others]"
    )
    (recording,) = told(gang, body + "y = torch.stack(parts).sum(0)\nfor w in got: w.wait()\n", 3, ("ints",))
    assert recording.title == "your run, used before wait" and recording.used_before_wait
