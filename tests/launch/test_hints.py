"""The sentence below an error or a cell: typical mistakes of a new student, each with what has to be said, and right
programs, of which nothing may be said."""

# ruff: noqa: E501  (a cell or a sentence is not broken in the middle)

import shutil
from pathlib import Path

import pytest

from launch.hints.needs import NEEDS
from tests.launch.forked import HAS_ALL_TO_ALL
from tests.launch.notebook import PATIENCE

HEAD = """
import time
x = torch.arange(4.0) + 10 * rank
right, left = (rank + 1) % world_size, (rank - 1) % world_size
"""

SAID = {  # cell -> who, and what is said last
    "if rank == 2: exit(3)": "rank 2: exit() ends only this cell: the rank and its variables live on; %ranks restart makes new ranks, %ranks stop ends them",
    # names that live elsewhere
    "print(learning_rate)": "ranks 0-2: learning_rate is a variable of the notebook, which ranks cannot see: launch.push(learning_rate=learning_rate) gives it to them",
    "model": "ranks 0-2: the notebook's model (Model) cannot travel: is model set for the ranks in a cell that has not run yet?",
    "helper(x)": "ranks 0-2: helper is defined in the notebook, where no rank can see it: put %%ranks above its cell and run it",
    "js.dumps(1)": "ranks 0-2: the notebook has imported js, and every rank imports for itself: import json as js",
    'check("shift")': "ranks 0-2: check belongs to the notebook: use it in a cell without %%ranks",
    'launch.pull("x")': "ranks 0-2: launch belongs to the notebook: use it in a cell without %%ranks",
    'import launch\nlaunch.pull("x")': "RankError: ranks 0-2: UsageError: this belongs to the notebook: use it in a cell without %%ranks",
    "of_two": "ranks 0,2: rank 1 has of_two; the line that sets it has not run here",
    "nowhere": "ranks 0-2: is nowhere set in a cell above that has not run yet?",
    # names that this cell sets, but not here, or not yet
    "if rank == 0:\n    total = 3\ntotal": "ranks 1-2: line 3 sets total, but has not run here",
    "learning_rate /= 2": "ranks 0-2: learning_rate is a variable of the notebook, which ranks cannot see: launch.push(learning_rate=learning_rate) gives it to them",
    "for _ in range(2):\n    acc += 1": "ranks 0-2: line 3 changes acc, which has no value yet: set it before",
    "n = 1\ndef f():\n    n += 1\nf()": "ranks 0-2: line 4 changes n, which has no value yet: set it before; the n outside of the function is another variable",
    "def f():\n    if rank:\n        m = 1\n    return m\nf()": "rank 0: line 4 sets m, but has not run here",
    # names that torch or Python has under another roof
    "send(x, right)": "ranks 0-2: did you mean dist.send?",
    "torch.send(x, right)": "ranks 0-2: did you mean dist.send?",
    "dist.Send(x, right)": "ranks 0-2: did you mean dist.send?",
    "barrier()": "ranks 0-2: did you mean dist.barrier?",
    "dist.all_reduce(x, op=ReduceOp.SUM)": "ranks 0-2: did you mean dist.ReduceOp?",
    "ones(4)": "ranks 0-2: did you mean torch.ones?",
    "torch.ones(4, dtype=float16)": "ranks 0-2: did you mean torch.float16?",
    "optim.SGD([x])": "ranks 0-2: it has not been imported: from torch import optim",
    'bath = 3\nPath(".")': "ranks 0-2: is Path set in a cell above that has not run yet?",
    "torch.arrange(4)": "ranks 0-2: did you mean torch.arange?",
    "dist.all_reduce(x, op=dist.SUM)": "ranks 0-2: did you mean dist.ReduceOp.SUM?",
    'dist.all_reduce(x, op="sum")': "ranks 0-2: op is one of torch's: op=dist.ReduceOp.SUM",
    'dist.all_reduce(x, op="mean")': "ranks 0-2: op is one of torch's: op=dist.ReduceOp.AVG",
    "worldsize": "ranks 0-2: did you mean world_size?",
    "math.sqrt(2)": "ranks 0-2: it has not been imported: import math",
    "np.ones(4)": "ranks 0-2: it has not been imported: import numpy as np",
    "import nunpy": "ranks 0-2: did you mean numpy?",
    "from solutions.shift import shift": "ranks 0-2: did you mean course.solutions?",
    "import my_helpers": "ranks 0-2: no package my_helpers is installed, and there is no my_helpers.py beside the notebook",
    "import sklearn": "ranks 0-2: sklearn is not installed: %pip install scikit-learn in a cell of its own, then run this one again",
    "rank()": "ranks 0-2: rank is not a function (int): write rank without ()",
    "max = 3\nmax(1, 2)": "ranks 0-2: a cell has set max to something else (int): del max gives Python's own back",
    "k = torch.arange(3)\nk /= 2": "ranks 0-2: k holds whole numbers (int64), and /= keeps that: k = k / ... makes a tensor of fractions",
    "n = len(x) / world_size\nx[rank * n:]": "ranks 0-2: line 2: n is not a whole number: / makes fractions, // makes whole numbers",
    "base, left = len(x) / world_size, 1\nstart = rank * base + left\nx[start : start + 1]": "ranks 0-2: line 2: base is not a whole number: / makes fractions, // makes whole numbers",
    "def f():\n    step = 2\n    return setp\nf()": "ranks 0-2: did you mean step?",
    "dist.recieve(x, left)": "ranks 0-2: did you mean dist.recv?",
    "here = rank\ndist.send(here, right)": "ranks 0-2: dist.send takes a tensor, and got here, a number: torch.tensor([here]) makes one",
    "for i in range(len(x) / 2): pass": "ranks 0-2: line 2: / makes fractions, // makes whole numbers",
    "def f():\n    if rank == 0:\n        begin = 0\n    return begin\nglobals()['g'] = f\nf()": "ranks 1-2: line 4 sets begin, but has not run here",
    "import math\nfor k in range(math.log2(world_size)): pass": "ranks 0-2: line 3: math.log2 makes fractions, int(...) or math.ceil(...) makes whole numbers",
    "log2(world_size)": "ranks 0-2: did you mean math.log2, after import math?",
    "model = torch.nn.Linear(2, 2)\ndist.broadcast(model, 0)": "ranks 0-2: dist.broadcast takes a tensor, and got a Linear: call it for each of model.parameters()",
    "c = x.chunk(world_size)\nc[0] += 1": "ranks 0-2: c is a tuple, whose items cannot be replaced: c = list(x.chunk(world_size)); the tensor in c[0] has already changed: reset it before you run this again",
    "def f(c): c[0] = x\nf((1, 2))": "ranks 0-2: c is a tuple, whose items cannot be replaced: c = list(c)",
    "c = x.chunk(world_size)\nc[2]": "ranks 0-2: line 2: chunk made 2 pieces, not 3: x.tensor_split(world_size) makes 3",
    "c = list(torch.chunk(x, 3))\nc[2]": "ranks 0-2: line 2: chunk made 2 pieces, not 3: torch.tensor_split(x, 3) makes 3",
    "for r in world_size: pass": "ranks 0-2: world_size is a number: range(world_size) counts up to it",
    "[r for r in world_size]": "ranks 0-2: world_size is a number: range(world_size) counts up to it",
    "y = x.clone()\nassert x == y": "ranks 0-2: == compares element by element: torch.equal(x, y) is True if all are equal",
    "assert x == 3": "ranks 0-2: == compares element by element: (x == 3).all() is True if all are equal",
    "c = (1, 2)\nif rank == 0: c = x.chunk(2)\nc[0] = 1": "ranks 0-2: c is a tuple, whose items cannot be replaced: c = list(c)",
    "x.item()": "ranks 0-2: x has 4 elements, and item() is for one: x.tolist() makes a list of all",
    "float(x)": "ranks 0-2: x has 4 elements, and float() is for one: x.tolist() makes a list of all",
    # what torch's calls return
    "work = dist.isend(x, right)\ndist.recv(torch.empty(4), left)\nwork.wiat()": "ranks 0-2: did you mean work.wait?",
    "work = dist.isend(x, right)\ndist.recv(torch.empty(4), left)\nwork.sum()": "ranks 0-2: line 2: dist.isend returns a handle to wait for",
    "dist.all_gather(x, [x])": "ranks 0-2: dist.all_gather(pieces, x): a list with a tensor to fill for each rank, and the tensor of this rank",
    "works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, torch.empty(4), left)])\nworks.wait()": "ranks 0-2: line 2: dist.batch_isend_irecv returns a list of handles: wait() for each of them",
    "if rank: dist.send(x, 0)\nelse:\n    got = [x]\n    for src in range(1, 3): got.append(dist.recv(torch.empty(4), src))\n    torch.cat(got)": "rank 0: line 5: dist.recv returns the number of the sender; what came is in the tensor it was given: keep that tensor in got instead",
    "if rank: dist.send(x, 0)\nelse:\n    got = [x]\n    for src in range(1, 3): got += [dist.recv(x, src)]\n    torch.stack(got)": "rank 0: line 5: dist.recv returns the number of the sender; what came is in x: keep that tensor in got instead",
    "if rank: dist.send(x, 0)\nelse:\n    got = [x]\n    for src in range(1, 3): got.append(dist.irecv(torch.empty(4), src))\n    for work in got[1:]: work.wait()\n    torch.cat(got)": "rank 0: line 5: dist.irecv returns a handle to wait for; what comes is in the tensor it was given after its wait(): keep that tensor in got instead",
    "y = None\ndist.send(y, right)": "ranks 0-2: y is None here: is it what a call returned that returns nothing?",
    "if rank == 0: dist.send(x, 1)\nif rank == 1:\n    y = dist.recv(x, 0)\n    y.sum()": "rank 1: line 4: dist.recv returns the number of the sender; what came is in x",
    "if rank == 0: dist.send(x, 1)\nif rank == 1:\n    y = dist.recv(x, 0)\n    y[0]": "rank 1: line 4: dist.recv returns the number of the sender; what came is in x",
    "dist.all_reduce(x).wait()": "ranks 0-2: line 2: dist.all_reduce returns None; the result is in x, which it changes in place",
    "total = dist.all_reduce(torch.ones(2))\ntotal + 1": "ranks 0-2: line 2: dist.all_reduce returns None; the result is in the tensor it was given, which it changes in place",
    "def f(x):\n    y = dist.broadcast(x, 0)\n    return torch.cat([x, y])\nf(x)": "ranks 0-2: line 3: dist.broadcast returns None; the result is in x, which it changes in place",
    "if rank == 0: dist.send(x, 1)\nif rank == 1:\n    x = dist.recv(x, 0)\n    dist.send(x, 0)": "rank 1: line 4: dist.recv returns the number of the sender; what came is in x: write dist.recv(x, 0) without x =",
    "dist.receive(x, 0)": "ranks 0-2: did you mean dist.recv?",
    # what they take
    "dist.all_to_all_single(torch.empty(3), torch.arange(3))": "ranks 0-2: both tensors must have the same dtype: torch.empty(..., dtype=x.dtype) makes one with that of x",
    'if rank == 0: dist.send({"a": 1}, 1)': "rank 0: dist.send takes one tensor, and got a dict: numbers become one with torch.tensor(...), anything else goes with dist.send_object_list",
    "dist.all_reduce(5)": "ranks 0-2: dist.all_reduce takes a tensor, and got the number 5: torch.tensor([5]) makes one",
    "dist.all_reduce([x, x])": "ranks 0-2: dist.all_reduce takes one tensor, and got a list of them: torch.stack makes one, or call it for each",
    "dist.recv(0)": "ranks 0-2: dist.recv fills a tensor that you pass in, and got an int: x = torch.empty(4), then dist.recv(x, 0)",
    "dist.recv([x, x], 0)": "ranks 0-2: dist.recv fills one tensor, and got a list of them: give it the one that this message belongs in",
    "dist.recv(src=0)": "ranks 0-2: dist.recv(x, 0): the tensor to fill, and the rank it comes from",
    "dist.send(1, x)": "ranks 0-2: the tensor comes first: dist.send(x, 1)",
    "dist.reduce(x)": "ranks 0-2: dist.reduce(x, dst=0): the tensor, and the rank that gets the sum",
    "dist.broadcast(x)": "ranks 0-2: dist.broadcast(x, src=0): the tensor, and the rank that has it",
    "dist.all_gather(x, x)": "ranks 0-2: dist.all_gather(pieces, x): a list with a tensor to fill for each rank, and the tensor of this rank; for one tensor that holds all pieces there is dist.all_gather_single",
    "dist.scatter(x, [x, x, x])": "ranks 1-2: dist.scatter(piece, pieces, src=0): pieces is a list of tensors on that rank and None on the others",
    "dist.P2POp(x, dist.isend, right)": "ranks 0-2: dist.P2POp(dist.isend, x, 1): dist.isend or dist.irecv, the tensor, and the other rank",
    "dist.P2POp(dist.send, x, right)": "ranks 0-2: dist.P2POp(dist.isend, x, 1): dist.isend or dist.irecv, the tensor, and the other rank",
    "dist.all_reduce(x, op=max)": "ranks 0-2: op is one of torch's: op=dist.ReduceOp.MAX",
    "dist.ReduceOp.AVERAGE": "ranks 0-2: torch has AVG, BAND, BOR, BXOR, MAX, MIN, PREMUL_SUM, PRODUCT, SUM",
    "dist.broadcast(torch.ones, 0)": "ranks 0-2: dist.broadcast takes a tensor, and got a function: torch.ones() calls it",
    "dist.scatter(x, x if rank == 0 else None)": "rank 0: dist.scatter(piece, pieces, src=0): pieces is a list of tensors on that rank and None on the others",
    "dist.gather(x, dst=0)": "rank 0: dist.gather(x, pieces, dst=0): pieces is a list of tensors on that rank and None on the others",
    "dist.scatter(x, [x[:1]] * 3 if rank == 0 else None)": "rank 0: the tensor has 4 elements and a piece of the list 1: make them equal",
    "dist.reduce_scatter(x[:2].clone(), [x] * 3)": "ranks 0-2: the tensor has 2 elements and a piece of the list 4: make them equal",
    "dist.reduce_scatter_tensor(x.view(2, 2), x.repeat(3))": "ranks 0-2: the second tensor has the shape (12); pieces like the first, one below the other, have (6, 2): view(6, 2) gives it that",
    "dist.all_gather_single(x, x)": "ranks 0-2: the first tensor must hold a piece as long as the second for each of 3 ranks, 12 elements, and has 4",
    "dist.all_gather_single(torch.empty(3, 4), x)": "ranks 0-2: the first tensor has the shape (3, 4); pieces like the second, one below the other, have (12): view(12) gives it that",
    "dist.all_gather_single(torch.empty(4, 3).t(), x)": "ranks 0-2: the first tensor has the shape (3, 4); pieces like the second, one below the other, have (12)",
    "dist.all_gather_into_tensor(torch.empty(12, dtype=torch.int64), x)": "ranks 0-2: both tensors must have the same dtype: torch.empty(..., dtype=x.dtype) makes one with that of x",
    "dist.barrier(1)": "ranks 0-2: the group of dist.barrier is 1 here, which is not a group: leave it out to mean all ranks",
    "dist.isend(x, 0, 7)": "ranks 0-2: the group of dist.isend is 7 here, which is not a group: leave it out to mean all ranks (a tag is tag=7)",
    "dist.all_reduce(x, group=[0, 1])": "ranks 0-2: the group of dist.all_reduce is [0, 1] here, which is not a group: g = dist.new_group([0, 1]) on every rank makes one, then group=g",
    "pieces = []\ndist.all_gather(pieces, x)": "ranks 0-2: dist.all_gather needs a list with one tensor for each of 3 ranks, and got 0: [torch.empty_like(x) for _ in range(world_size)] makes one",
    "dist.all_gather_object([], rank)": "ranks 0-2: dist.all_gather_object needs a list with one item for each of 3 ranks, and got 0: [None] * world_size makes one",
    "dist.reduce_scatter(x[:2].clone(), list(x.chunk(3)))": "ranks 0-2: dist.reduce_scatter needs a list with one tensor for each of 3 ranks, and got 2",
    "pieces = [None] * world_size\ndist.all_gather(pieces, x)": "ranks 0-2: dist.all_gather fills the tensors that you pass in, and this list holds None: [torch.empty_like(x) for _ in range(world_size)] makes one",
    "dist.reduce_scatter(x[:1].clone(), x[:3].chunk(3))": "ranks 0-2: dist.reduce_scatter needs a list, and got a tuple: list(...) makes a list of it",
    "w = torch.ones(4, requires_grad=True)\ndist.all_reduce(w.grad)": "ranks 0-2: w.grad is None here: backward() sets it, for parameters that the loss depends on, and zero_grad() takes it away",
    "dist.broadcast_object_list('hello', src=0)": "ranks 1-2: dist.broadcast_object_list(box, src=0): box is a list, [obj] on that rank and [None] on the others",
    "dist.all_reduce(x.sum)": "ranks 0-2: dist.all_reduce takes a tensor, and got a function: x.sum() calls it",
    "dist.all_reduce([x, x[:2]])": "ranks 0-2: dist.all_reduce takes one tensor, and got a list of them: call it for each",
    "dist.all_reduce(x, op=lambda a, b: a * b)": "ranks 0-2: op is one of torch's, such as op=dist.ReduceOp.SUM",
    "pieces = [torch.empty_like(x) for _ in range(3)]\ndist.all_gather(pieces, x, 1)": "ranks 0-2: the group of dist.all_gather is 1 here, which is not a group: leave it out to mean all ranks",
    "g = dist.new_group([0, 1])\nif rank == 2: dist.send(x, 0, group=g)": "rank 2: this rank is not in the group that dist.send is given: leave this rank out",
    # to whom they speak
    "peer = rank + 1\npeer -= 1\ndist.send(x, peer)": "ranks 0-2: peer is the rank itself here: copy its own data, without a message",
    "dist.recv(x, 0)": "rank 0: a rank cannot receive from itself, and this line runs here too: leave this rank out with if rank != 0",
    "for peer in range(3): dist.recv(x, peer) if rank == 0 else None": "rank 0: peer is the rank itself here: copy its own data, without a message",
    "partner = rank ** 1\ndist.send(x, partner)": "ranks 0-2: partner is the rank itself here, worked out as rank ** 1: copy its own data, without a message",
    "for k in range(2):\n    if k == 1: dist.send(y, right)\n    else:\n        y = dist.all_reduce(x)": "ranks 0-2: line 5: dist.all_reduce returns None; the result is in x, which it changes in place",
    "dist.send(x, 2)": "rank 2: a rank cannot send to itself, and this line runs here too: leave this rank out with if rank != 2",
    "dist.send(x, rank + 1)": "rank 2: rank + 1 is 3 here: leave out the end of the row with if rank + 1 < world_size, or close the ring with (rank + 1) % world_size",
    "dist.recv(x, rank + 1 % world_size)": "rank 2: % comes before +, so rank + 1 % world_size is 3 here: (rank + 1) % world_size",
    "to, other = rank + 1, rank - 1\ndist.send(x, to)": "rank 2: rank + 1 is 3 here: leave out the end of the row with if rank + 1 < world_size, or close the ring with (rank + 1) % world_size",
    "d = 1\nif rank == 2: dist.send(x, rank + d)": "rank 2: rank + d is 3 here: leave out the end of the row with if rank + d < world_size, or close the ring with (rank + d) % world_size",
    "dist.recv(x, rank - 1)": "rank 0: rank - 1 is -1 here: leave out the beginning of the row with if rank - 1 >= 0, or close the ring with (rank - 1) % world_size",
}

LEFT = {  # cell -> what stands below its output: nothing was raised
    "if rank == 0: dist.send(x, 1)\nif rank == 1: x = dist.recv(x, 0)": "rank 1: line 3: dist.recv returns the number of the sender; what came is in x: write dist.recv(x, 0) without x =",
    "x = dist.all_reduce(x)": "ranks 0-2: line 2: dist.all_reduce returns None; the result is in x, which it changes in place: write dist.all_reduce(x) without x =",
    "y = dist.all_reduce(x)\ny": "ranks 0-2: line 2: dist.all_reduce returns None; the result is in x, which it changes in place",
    "def shift(x):\n    x = dist.recv(x, left)\n    return x": "ranks 0-2: line 3: dist.recv returns the number of the sender; what came is in x: write dist.recv(x, left) without x =",
    "def f(pieces):\n    for src in range(1, world_size):\n        pieces[src] = dist.recv(pieces[src], src)": "ranks 0-2: line 4: dist.recv returns the number of the sender; what came is in pieces[src]: write dist.recv(pieces[src], src) without pieces[src] =",
    "print(dist.all_reduce(x))": "ranks 0-2: line 2: dist.all_reduce returns None; the result is in x, which it changes in place",
    "pieces = [torch.empty(4)] * world_size\ndist.all_gather(pieces, x)": "ranks 0-2: line 2: [torch.empty(4)] * world_size is the same tensor every time: write [torch.empty(4) for _ in range(world_size)]",
    "dist.all_gather([x] * 3, x)": "ranks 0-2: line 2: [x] * 3 is the same tensor every time: write [torch.empty_like(x) for _ in range(3)]",
    "def ring(x):\n    work = dist.isend(x, right)\n    dist.recv(x, left)\n    work.wait": "ranks 0-2: line 5: work.wait without () does not wait",
    "def shift(x): print(x.sum() * 0)\nx = shift(x)": "ranks 0-2: line 3: x is None now, which is what shift returned",
    "rank = 99": "ranks 0-2: this cell has changed rank, for every later cell too: rank = dist.get_rank() brings it back",
    "for rank in range(world_size): pass": "ranks 0-1: this cell has changed rank, for every later cell too: rank = dist.get_rank() brings it back; in the loop of line 2 use another name, such as peer",
    "world_size = 8": "ranks 0-2: this cell has changed world_size, for every later cell too: world_size = dist.get_world_size() brings it back",
    "del dist": "ranks 0-2: this cell has deleted dist, for every later cell too: import torch.distributed as dist brings it back",
}

RIGHT = [  # nothing is said
    "def f(x):\n    came = [x.clone()] * 3\n    for src in range(3):\n        came[src] = torch.empty_like(x)\n        if src != rank: dist.recv(came[src], src)",
    "piece = torch.empty(4)\npieces = [x] * world_size\ndist.scatter(piece, pieces if rank == 0 else None)",
    "leaving = [x] * world_size\narriving = [torch.empty(4) for _ in leaving]\ndist.all_to_all(arriving, leaving)",
    "zeros = [0] * world_size\nzeros[rank] = 1\nprint(zeros)",
    "if rank == 0: dist.send(x, 1)\nif rank == 1: print(dist.recv(x))",
    "if rank == 0: dist.send(x, 1)\nif rank == 1:\n    source = dist.recv(x)\n    assert source == 0",
    "if rank == 0: dist.send(x, 1)\nif rank == 1: source = dist.recv(x, 0)",
    "work = dist.all_reduce(x, async_op=True)\nwork.wait()\nx",
    "later = rank < 9\nwork = dist.all_reduce(x, async_op=later)\nif work: work.wait()",
    "done = dist.barrier()\nassert done is None",
    "sending = dist.isend(x, right)\ny = torch.empty_like(x)\ndist.recv(y, left)\nsending.wait()\ny",
    "arriving = dist.irecv(torch.empty(4), left)\ndist.send(x, right)\narriving.wait()",
    "def f(x):\n    x = x + 1\n    dist.all_reduce(x)\n    return x\nf(x)",
    "def ours(tensor):\n    return tensor * 2\nx = ours(x)",
    "rank = dist.get_rank()\nworld_size = dist.get_world_size()",
    "import torch\nimport torch.distributed as dist\nimport os\nrank = int(os.environ['RANK'])",
    "[rank for rank in range(3)]",
    "def f():\n    rank = 7\n    return rank\nf()",
    "def plan(n): return n or None\nn = plan(3)",
    "store = {}\nstore = store.copy()",
    "class FakeDist:\n    def recv(self, x, src): return x\nfake = FakeDist()\nx = fake.recv(x, 0)",
    "try: x.cuda()\nexcept (AssertionError, RuntimeError): y = x",
    "c = x.chunk(3)\ntry: c[2]\nexcept IndexError: c = x.tensor_split(3)",
    "box = [rank]\ndist.broadcast_object_list(box, src=0)\nassert box == [0]",
    "import threading\nevent = threading.Event()\nevent.set()\nevent.wait()",
]

RAISED_RIGHTLY = [  # the error says it all
    "raise ValueError('mine')",
    "assert rank > 5",
    "x[10]",
    "1 / 0",
    "int('four')",
    "{}['key']",
    "def f(): return None\nf().foo",
    "dist.all_gather_single(torch.empty(9, dtype=torch.complex64), torch.ones(4, dtype=torch.complex64))",
    "if rank == 0: dist.send(x, 1)\nif rank == 1: source = dist.recv(x)\nif rank == 1: 'from ' + source",
    "y = None\ny + 1",
    "n = 1 / 2\nNone[n]",
    "n = 1 / 2\n{}['a'][n]",
    "range(1, 2 / 1 and 'a')",
    # near one of the explanations above, and wrong for another reason
    "t = ([1], [2])\nt[0] += 5",  # no list can add a number
    "c = list(x.chunk(4))\nc.pop()\nc[3]",  # chunk made four
    "c = list(x.chunk(8))\nc.append(x)\nc[6]",
    "c = x.chunk(2)\nc[2]",
    "class Text(str):\n    def chunk(self, n): return [self]\nc = Text('ab').chunk(3)\nc[2]",
    "n = 3\n{[r] for r in range(n)}",
    "n = 3\na, b = n",
    "assert [x] == [x.clone()]",  # lists, which torch.equal does not take
    "assert x.chunk(2) == x.clone().chunk(2)",
    "k = torch.arange(4)\nk /= torch.ones(3)",
    "k = torch.arange(4).expand(3, 4)\nk /= 2",
    "def split(rate): return rate\nsplit(1 / 2, 3)",
    "n = len(x) / 2\nn = int(n)\nx[:n, 'a']",
    "torch.zeros(0).max()",
    "dist.gather_object(lambda: 1, [] if rank else [None] * 3)",  # a lambda cannot be sent
    "dist.get_global_rank(1, dist.group.WORLD)",  # it cannot be left out
    "dist.scatter_object_list([], [1, 2, 3] if rank == 0 else [1])",
    "dist.all_gather([torch.empty(2, dtype=torch.cfloat) for _ in range(3)], torch.ones(4, dtype=torch.cfloat))",
    "[1, 2].item()",
    "bool(x)",  # any, or all?
]


@pytest.fixture(scope="module")
def three(notebook):
    notebook.run(
        "import json as js\nfrom course import check\nlearning_rate = 0.1\nclass Model: pass\nmodel = Model()\ndef helper(x): return x"
    )
    return notebook


BACK = """%%ranks 3
import torch
import torch.distributed as dist
rank, world_size = dist.get_rank(), dist.get_world_size()
globals().pop('max', None)
if rank == 1: of_two = 1
"""


def fresh(notebook):
    """All the names as they were, whatever the last cell did. What was said below that is not said again."""
    output = notebook.run(BACK + HEAD)
    assert not output.error and not output.stdout, (output.error, output.stdout)


@pytest.mark.parametrize("cell", SAID)
def test_what_is_said_of_an_error(three, cell):
    fresh(three)
    output = three.run("%%ranks\n" + cell)
    assert output.ename in ("RankError", "DeadlockError")
    assert output.traceback.splitlines()[-1] == SAID[cell]
    assert output.traceback.count(SAID[cell]) == 1 and "launch/" not in output.traceback


def test_a_gpu_that_is_not_there(three):
    fresh(three)
    if three.run("%%ranks\ntorch.cuda.is_available()").stdout != "ranks 0-2: False\n":
        pytest.skip("there is a GPU")
    for cell in ("x.cuda()", "torch.ones(2, device=f'cuda:{rank}')", "torch.cuda.set_device(rank)"):
        said = three.run("%%ranks\n" + cell).traceback.splitlines()[-1]
        assert said.startswith("ranks 0-2: torch finds no GPU here, and the ranks compute on CPUs: leave out .cuda()")


@pytest.mark.parametrize("cell", LEFT)
def test_what_is_said_of_a_cell_that_came_through(three, cell):
    fresh(three)
    output = three.run("%%ranks\n" + cell)
    assert not output.error and output.stdout.splitlines()[-1] == LEFT[cell] and output.stdout.count(" line ") <= 2


@pytest.mark.parametrize("cell", RIGHT)
def test_nothing_is_said_of_a_right_program(three, cell):
    if "dist.all_to_all(" in cell and not HAS_ALL_TO_ALL:
        pytest.skip("gloo has no all_to_all before torch 2.13")
    fresh(three)
    output = three.run("%%ranks\n" + cell)
    assert not output.error, output.error
    assert not [line for line in output.stdout.splitlines() if "line " in line or "this cell" in line]


@pytest.mark.parametrize("cell", RAISED_RIGHTLY)
def test_an_error_that_speaks_for_itself_is_left_alone(three, cell):
    fresh(three)
    output = three.run("%%ranks\n" + cell)
    assert output.traceback.splitlines()[-1].startswith("RankError: ")


@pytest.mark.parametrize(
    ("raised", "said"),  # torch 2.8's own words
    [
        (
            "RuntimeError('Backend gloo does not support alltoall')",
            "dist.all_to_all on gloo, unlike dist.all_to_all_single, needs torch 2.13 or newer; this is torch 2.8.0+cu128",
        ),
        (
            "AttributeError(\"'InOrder' object has no attribute '_prepare_schedule_with_comms'\")",
            "a pipeline schedule of your own needs torch 2.9 or newer; this is torch 2.8.0+cu128",
        ),
        (
            "TypeError(\"new_group() got an unexpected keyword argument 'sort_ranks'\")",
            "dist.new_group(..., sort_ranks=False) needs torch 2.12 or newer; this is torch 2.8.0+cu128",
        ),
    ],
)
def test_what_an_older_torch_lacks_is_named_with_the_version_that_has_it(three, raised, said):
    fresh(three)
    older = "%%ranks\nkept, torch.__version__ = torch.__version__, '2.8.0+cu128'\nraise "
    shown = three.run(older + raised)
    assert not three.run("%%ranks\ntorch.__version__ = kept").error
    assert shown.traceback.splitlines()[-1] == f"ranks 0-2: {said}"


def test_a_torch_that_has_it_lacks_nothing():
    assert all(not need.unmet(f"{need.first[0]}.{need.first[1]}.0+cpu") for need in NEEDS)


@pytest.fixture
def stopped(three):
    """The notebook without ranks, as if none had been started."""
    three.run("%ranks stop")
    return three


def test_without_a_group_the_environment_brings_the_rank_back(stopped):
    said = stopped.run("%%ranks 2 --bare\nrank = 9").stdout.strip()
    back = 'import os; rank = int(os.environ["RANK"])'
    assert said == f"ranks 0-1: this cell has changed rank, for every later cell too: {back} brings it back"
    assert stopped.run(f"%%ranks\n{back}\nrank").stdout == "rank 0: 0\nrank 1: 1\n"


def test_without_a_group_it_is_said_how_to_make_one(stopped):
    for first, cell in ("%%ranks 2 --bare", ""), ("%%ranks 2", "dist.destroy_process_group()\n"):
        said = stopped.run(f"{first}\n{cell}dist.barrier()").traceback.splitlines()[-1]
        line = 'dist.init_process_group("gloo")'
        assert said == f"ranks 0-1: there is no process group: {line} on every rank makes one"
        assert stopped.run(f"%%ranks\n{line}\nx = torch.ones(1)\ndist.all_reduce(x)\nx").stdout.endswith(
            "ranks 0-1: tensor([2.])\n"
        )


def test_after_a_restart_the_cell_that_sets_a_name_is_named(stopped):
    number = stopped.value("len(In)")  # of the next cell
    stopped.run("%%ranks 2\nx = 1\ndef fresh(): return 1")
    stopped.run("%ranks restart")
    for name in ("x", "fresh()"):
        said = stopped.run(f"%%ranks\n{name}").traceback.splitlines()[-1]
        assert said == f"ranks 0-1: cell [{number}] sets {name.strip('()')}, but not on these ranks: run it again"


def test_a_rank_that_died_says_why_it_knows_nothing(stopped):
    stopped.run("%%ranks 3\nimport os\nx = 1\nif rank == 1: os.kill(os.getpid(), 9)")
    said = stopped.run("%%ranks\nx").traceback.splitlines()[-1]
    assert said == (
        "rank 1: the process is new, since the one before died with its variables: run the cells again that set them"
    )


def test_what_was_raised_stands_above_the_pictures(three):
    """However tall a picture is, the error is not pushed off the screen."""
    fresh(three)
    message = three.send(
        "%%ranks --watch\nif rank < 2: dist.send(x, 1) if rank == 0 else dist.recv(x, 0)\ndist.recv(x, right)"
    )
    kinds = []
    while "idle" not in kinds:
        said = three.client.get_iopub_msg(timeout=PATIENCE)
        if said["parent_header"].get("msg_id") == message:
            content = said["content"]
            kinds.append(
                content.get("execution_state") or content.get("data", {}).get("text/plain") or said["msg_type"]
            )
    names = [kind.partition("(")[0] for kind in kinds]
    assert [name for name in names if name in ("error", "Player", "WaitFor")] == ["error", "WaitFor", "Player"]


def test_a_picture_that_cannot_be_made_does_not_hide_the_error(three):
    fresh(three)
    three.run("import widgets\nkept_player = widgets.Player\ndef broken(*_): raise ValueError('no picture')")
    output = three.run(
        "widgets.Player = broken\nget_ipython().run_cell_magic('ranks', '--watch', 'dist.barrier()\\n1 / 0')"
    )
    three.run("widgets.Player = kept_player")
    assert output.ename == "ValueError"  # the second error; the first one stands above it
    assert not three.run("%%ranks --watch\ndist.barrier()").error


NOTEBOOK = {  # an ordinary cell -> what stands below its error
    "x.sum()": 'the ranks have x, the notebook does not: put %%ranks above the cell, or fetch it: x = launch.pull("x")',
    "of_two": 'rank 1 has of_two, the notebook does not: put %%ranks above the cell, or fetch it: of_two = launch.pull("of_two")',
    "dist.all_reduce(y)": "the ranks have dist, the notebook does not: put %%ranks above the cell",
    "print(rank)": "the ranks have rank, the notebook does not: put %%ranks above the cell",
    "check(shift)": 'check wants the name in quotes: check("shift")',
    "launch.pull(x)": 'launch.pull wants the name in quotes: launch.pull("x")',
    "xs = launch.pull('x')\nxs.sum()": "line 1: launch.pull returns a list with the value of every rank; [0] is rank 0's",
    "ask('messages')": "ask comes from the first cell of the chapter: run that one first, after every restart of the kernel",
    "check(guess)": "is guess set in a cell above that has not run yet?",
    "all_reduce.ring(4)": "it has not been imported: from collectives import all_reduce",
    "all_reduce(x_here)": "is all_reduce set in a cell above that has not run yet?",
    "math.pi": "it has not been imported: import math",
    "fresh_data()": "the ranks have fresh_data, the notebook does not: put %%ranks above the cell",
    "launc": "did you mean launch?",
}


@pytest.mark.parametrize("cell", NOTEBOOK)
def test_what_is_said_of_an_error_in_the_notebook_itself(three, cell):
    fresh(three)
    assert not three.run("%%ranks\nimport math\ndef shift(x): return x\nfresh_data = shift").error
    output = three.run(cell)
    assert output.traceback.splitlines()[-1] == NOTEBOOK[cell] and output.traceback.count(NOTEBOOK[cell]) == 1


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%rank 4\nx", "did you mean %%ranks 4?"),
        ("%%Ranks\nx", "did you mean %%ranks?"),
        ("%%ranks4\nx", "did you mean %%ranks 4?"),
        ("%% ranks 4\nx", "did you mean %%ranks 4?"),
        ("%rnks", "did you mean %ranks?"),
        ("%%tim\n1", ""),
    ],
)
def test_a_magic_that_is_nearly_ours(three, cell, said):
    shown = three.run(cell).stderr.splitlines()
    assert shown[0].startswith("UsageError: ") and shown[1:] == ([said] if said else [])


@pytest.fixture
def new_kernel(new_notebook, tmp_path):
    """A kernel of an environment into which this project is installed, before `%load_ext launch`."""
    profile = tmp_path / "profile_default"
    profile.mkdir()
    shutil.copy(Path(__file__).parents[2] / "etc/ipython/ipython_kernel_config.py", profile)
    return new_notebook(load=False, environ={"IPYTHONDIR": str(tmp_path)})


def test_a_new_kernel_says_what_to_run(new_kernel):
    first = "UsageError: this kernel is new and does not know %%ranks yet: run %load_ext launch"
    for cell in ("%%ranks 4\nx", "%ranks"):
        assert new_kernel.run(cell).error.startswith(first)
    assert new_kernel.run("# mine\n%%ranks 4\nx").error.startswith("UsageError: %%ranks goes into the first line")
    for name in ("check", "launch"):
        said = f"{name} comes from the first cell of the chapter: run that one first, after every restart of the kernel"
        assert new_kernel.run(f"{name}('x')").traceback.splitlines()[-1] == said
    assert new_kernel.run("rank").traceback.splitlines()[-1] == "only the ranks know rank: put %%ranks above the cell"
    assert not new_kernel.value("'launch.kernel.hub' in __import__('sys').modules")  # it starts nothing
    loaded = new_kernel.run("%load_ext launch")
    assert not loaded.error and not loaded.stdout
    assert new_kernel.run("%%ranks 2\nrank").stdout == "rank 0: 0\nrank 1: 1\n"


def test_the_line_that_makes_every_kernel_say_it_is_installed_with_the_project():
    tomllib = pytest.importorskip("tomllib")
    root = Path(__file__).parents[2]
    shared = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    targets = {target: source for source, target in shared["shared-data"].items()}
    assert (root / targets["etc/ipython/ipython_kernel_config.py"]).is_file()
