"""The faults of the campaign (test_fault_campaign.py, benchmarks/bench_soak.py): what students do wrong, as cells.

A fault has a cell for every number of ranks and says how it must be explained. In the cell `victim` is the rank that
goes wrong; `{late}` is where one side may be delayed.
"""

# ruff: noqa: E501  (a cell or a sentence is not broken in the middle)

import re
from dataclasses import dataclass

HEAD = "x = torch.ones(4)\nvictim = {victim}\n{late}\n"  # so that the fault's own first line is line 4


@dataclass(frozen=True)
class Fault:
    """`kind` is the name of the exception and `said` a pattern its whole message matches; {victim}, {others} are filled
    in. `dies`: the victim's process ends. `sizes`: with how many ranks it makes sense."""

    cell: str
    kind: str
    said: str
    dies: bool = False
    sizes: tuple = (2, 4, 8)

    def code(self, victim: int, late: str = "") -> str:
        return HEAD.format(victim=victim, late=late or "pass") + self.cell

    def pattern(self, victim: int, size: int) -> str:
        others = [rank for rank in range(size) if rank != victim]
        fill = {
            "victim": f"rank {victim}",
            "others": re.escape(named(others)),
            "waits": "waits?",
            "everybody": named(range(size)),
        }
        text = self.said
        for name, value in fill.items():
            text = text.replace("{" + name + "}", value)
        return text


def named(ranks) -> str:
    """Written apart from launch.doctor.explain: 'ranks 0, 1, 3', three in a row as '0-2'."""
    ranks = sorted(ranks)
    text = ", ".join(map(str, ranks))
    while match := re.search(r"\b(\d+), (\d+), (\d+)\b", text):
        runs = [r for r in range(int(match[1]), ranks[-1] + 2) if r not in ranks]
        if int(match[3]) != int(match[1]) + 2:
            head, rest = text[: match.start()], text[match.start() :].split(", ")
            return f"rank{'s' if len(ranks) > 1 else ''} " + head + _plain(rest)
        last = runs[0] - 1
        tail = [str(r) for r in ranks if r > last]
        text = text[: match.start()] + ", ".join([f"{match[1]}-{last}", *tail])
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"


def _plain(parts) -> str:
    """A run may begin at the second of the parts."""
    if len(parts) < 4:
        return ", ".join(parts)
    return parts[0] + ", " + named(map(int, parts[1:])).split(" ", 1)[1]


WAIT = r"{others} {waits} in "
LEFT = r"; {victim} left the cell after 0 collectives"
DEADLOCK, MISMATCH = "DeadlockError", "MismatchError"
MODEL = "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\ninput = torch.ones(1, 2)\n"

DEADLOCKS = {
    "skips": Fault(
        "dist.all_reduce(x)\nif rank != victim: dist.all_reduce(x)",
        DEADLOCK,
        WAIT + r"all_reduce #2 \(line 5, float32\[4\]\); {victim} left the cell after 1 collective",
    ),
    "raises": Fault(
        "if rank == victim: 1 / 0\ndist.all_reduce(x)",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 5, float32\[4\]\); {victim} raised ZeroDivisionError: division by zero",
    ),
    "out_of_memory": Fault(
        "if rank == victim: bytearray(1 << 60)\ndist.all_reduce(x)",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 5, float32\[4\]\); {victim} raised MemoryError",
    ),
    "raises_and_tidies_up": Fault(
        "try:\n    if rank == victim: raise ValueError('no such data')\n    dist.all_reduce(x)\nfinally:\n    dist.barrier()",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 6, float32\[4\]\); {victim} raised ValueError: no such data",
    ),
    "raises_between_collectives": Fault(
        "try:\n    dist.barrier()\n    if rank == victim: {}['lr']\n    dist.all_reduce(x)\n    dist.all_reduce(x)\n"
        "finally:\n    dist.all_reduce(x[:1].clone())",
        DEADLOCK,
        WAIT + r"all_reduce #2 \(line 7, float32\[4\]\); {victim} raised KeyError: 'lr'",
    ),
    "caught_when_freed": Fault(
        "try:\n    if rank == victim: raise ValueError('no such data')\n    dist.all_reduce(x)\nexcept RuntimeError:\n"
        "    dist.all_reduce(x[:1].clone())",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 6, float32\[4\]\); {victim} raised ValueError: no such data",
    ),
    "exits": Fault(
        "import sys\nif rank == victim: sys.exit(3)\ndist.barrier()",
        DEADLOCK,
        WAIT + r"barrier #1 \(line 6\); {victim} called sys.exit after 0 collectives",
    ),
    "ring_of_sends": Fault(
        "dist.send(x, (rank + 1) % world_size)\ndist.recv(x, (rank - 1) % world_size)",
        DEADLOCK,
        r"{everybody} wait in send to the next rank \(line 4, float32\[4\]\)",
        sizes=(4, 8),
    ),
    "ring_of_recvs": Fault(
        "dist.recv(x, (rank - 1) % world_size)\ndist.send(x, (rank + 1) % world_size)",
        DEADLOCK,
        r"{everybody} wait in recv from the previous rank \(line 4, float32\[4\]\)",
        sizes=(4, 8),
    ),
    "two_sends": Fault(
        "if rank < 2: dist.send(x, 1 - rank)",
        DEADLOCK,
        r"rank 0 waits in send to rank 1 \(line 4.*\); rank 1 waits in send to rank 0 \(line 4.*\)",
    ),
    "recv_without_send": Fault(
        "if rank == (victim + 1) % world_size: dist.recv(x, victim)",
        DEADLOCK,
        r"rank \d waits in recv from {victim} \(line 4, float32\[4\]\); {victim} left the cell without the matching send",
    ),
    "any_source": Fault(
        "if rank == victim: dist.recv(x)",
        DEADLOCK,
        r"{victim} waits in recv from any rank \(line 4, float32\[4\]\); {others} left the cell without the matching send",
    ),
    "wrong_tag": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == a: dist.send(x, b, tag=1)\nif rank == b: dist.recv(x, a, tag=2)",
        DEADLOCK,
        r"(?=.*waits in send to rank \d with tag 1 \(line 5,)(?=.*waits in recv from rank \d with tag 2 \(line 6,).*",
    ),
    "wrong_tag_of_an_isend": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == a: keep = dist.isend(x, b, tag=1)\nif rank == b: dist.recv(x, a, tag=2)",
        DEADLOCK,
        r"rank \d waits in recv from {victim} with tag 2 \(line 6, float32\[4\]\); {victim} left the cell without the "
        r"matching send; {victim}'s isend to rank \d \(line 5\) has tag 1",
    ),
    "groups_of_the_same_ranks": Fault(
        "a, b = dist.new_group(list(range(world_size))), dist.new_group(list(range(world_size)))\n"
        "dist.all_reduce(x, group=a if rank != victim else b)",
        DEADLOCK,
        r"(?=.*all_reduce #1 of one group of ranks [\d,]+ \(line 5)(?=.*all_reduce #1 of another group of ranks [\d,]+ \(line 5).*",
    ),
    "message_in_another_group": Fault(
        "pair = dist.new_group([0, 1])\nif rank == 0: dist.send(x, 1, group=pair)\nif rank == 1: dist.recv(x, 0)",
        DEADLOCK,
        r"rank 0 waits in send to rank 1 of one group \(line 5, .*\); rank 1 waits in recv from rank 0 of another group \(line 6, .*\)",
    ),
    "any_source_takes_it": Fault(
        "if rank == 0: dist.recv(x); dist.recv(x, 1)\nif rank == 1: dist.send(x, 0)",
        DEADLOCK,
        r"rank 0 waits in recv from rank 1 \(line 4, float32\[4\]\); rank 1 left the cell without the matching send",
    ),
    "any_source_after_an_irecv": Fault(
        "if rank == 0: work = dist.irecv(torch.empty(4), 1); dist.recv(x)\nif rank == 1: dist.send(x, 0)",
        DEADLOCK,
        r"rank 0 waits in recv from any rank \(line 4, float32\[4\]\); ranks? .* left the cell without the matching send",
    ),
    "in_a_thread": Fault(
        "import threading\nthread = threading.Thread(target=dist.all_reduce, args=(x,))\nif rank != victim: thread.start(); thread.join()",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line unknown, float32\[4\]\)" + LEFT,
    ),
    "in_a_thread_of_asyncio": Fault(
        "import asyncio\ndef reduce():\n    dist.all_reduce(x)\nif rank != victim: await asyncio.to_thread(reduce)",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 6, float32\[4\]\)" + LEFT,
    ),
    "debug_detail": Fault(
        "import os\nos.environ['TORCH_DISTRIBUTED_DEBUG'] = 'DETAIL'\ndist.set_debug_level_from_env()\n"
        "group = dist.new_group(list(range(world_size)))\nos.environ['TORCH_DISTRIBUTED_DEBUG'] = 'OFF'\n"
        "dist.set_debug_level_from_env()\nif rank != victim: dist.barrier(group=group)",
        DEADLOCK,
        WAIT + r"barrier #1 of ranks [\d,]+ \(line 10\)" + LEFT,
    ),
    "batch": Fault(
        "ops = [dist.P2POp(dist.isend, x, (rank + 1) % world_size)]\n"
        "if rank != victim: ops.append(dist.P2POp(dist.irecv, torch.empty(4), (rank - 1) % world_size))\n"
        "for work in dist.batch_isend_irecv(ops): work.wait()",
        DEADLOCK,
        r"rank \d waits in send to {victim} \(line 6, float32\[4\]\); {victim} left the cell without the matching recv",
    ),
    "async": Fault(
        "if rank != victim:\n    work = dist.all_reduce(x, async_op=True)\n    y = x + 1\n    work.wait()",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 5, float32\[4\]\)" + LEFT,
    ),
    "functional": Fault(
        "from torch.distributed._functional_collectives import all_reduce\nif rank != victim: print(all_reduce(x, 'sum', dist.group.WORLD) + 1)",
        DEADLOCK,
        WAIT + r"all_reduce #1 \(line 5, float32\[4\]\)" + LEFT,
    ),
    "objects": Fault(
        "if rank != victim: dist.all_gather_object([None] * world_size, rank)",
        DEADLOCK,
        WAIT + r"all_gather(_single)? #1 \(line 4.*\)" + LEFT,  # the second in torch 2.15
    ),
    "monitored_barrier": Fault(
        "if rank != victim: dist.monitored_barrier()", DEADLOCK, WAIT + r"monitored_barrier #1 \(line 4\)" + LEFT
    ),
    "no_root": Fault(
        "if rank != victim: dist.broadcast(x, victim)", DEADLOCK, WAIT + r"broadcast #1 \(line 4, float32\[4\]\)" + LEFT
    ),
    "no_root_of_reduce": Fault(
        "x = torch.ones(64)\nif rank != victim: dist.reduce(x, victim)",
        DEADLOCK,
        WAIT + r"reduce #1 \(line 5, .*\)" + LEFT,
    ),
    "no_root_of_gather": Fault(
        "if rank != victim: dist.gather(x, None, victim)", DEADLOCK, WAIT + r"gather #1 \(line 4, .*\)" + LEFT
    ),
    "reduce_scatter": Fault(
        "if rank != victim: dist.reduce_scatter_tensor(x[:1].clone(), torch.ones(world_size))",
        DEADLOCK,
        WAIT + r"reduce_scatter_\w+ #1 \(line 4, .*\)" + LEFT,
    ),
    "sub_group": Fault(
        "half = dist.new_group([0, 1])\nif rank == 0: dist.all_reduce(x, group=half)\ndist.barrier()",
        DEADLOCK,
        r"rank 0 waits in all_reduce #1( of ranks 0,1)? \(line 5, .*\); .* \(line 6\)",
    ),
    "three_groups": Fault(
        "ab, bc, ac = dist.new_group([0, 1]), dist.new_group([1, 2]), dist.new_group([0, 2])\n"
        "first, second = [(ab, ac), (bc, ab), (ac, bc), (None, None)][min(rank, 3)]\n"
        "if rank < 3: dist.all_reduce(x, group=first)\nif rank < 3: dist.all_reduce(x, group=second)",
        DEADLOCK,
        r"rank 0 waits in all_reduce #1 of ranks 0,1 \(line 6, .*\); rank 1 waits in all_reduce #1 of ranks 1,2 .*; "
        r"rank 2 waits in all_reduce #1 of ranks 0,2 .*",
        sizes=(4, 8),
    ),
    "backward": Fault(
        MODEL + "if rank != victim: model(input).sum().backward()",
        DEADLOCK,
        r"{others} {waits} in (backward|forward) \(line 6\) for \w+ #\d+; {victim} left the cell after \d collectives",
        sizes=(2, 4),
    ),
    "new_group": Fault(
        "if rank != victim: dist.new_group(list(range(world_size)))",
        DEADLOCK,
        r"{others} {waits} in new_group \(line 4\) for the other ranks; {victim} left the cell",
    ),
}

MISMATCHES = {
    "other_collective": Fault(
        "if rank == victim: dist.broadcast(x, 0)\nelse: dist.all_reduce(x)",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 \(line 5\))(?=.*{victim} calls broadcast #1 \(line 4\)).*",
    ),
    "other_order": Fault(
        "if rank == victim: dist.barrier()\ndist.all_reduce(x)\nif rank != victim: dist.barrier()",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 \(line 5\))(?=.*{victim} calls barrier #1 \(line 4\)).*",
    ),
    "size": Fault(
        "dist.all_reduce(x if rank != victim else x[:2])",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 with 4 elements \(line 4\))(?=.*{victim} calls all_reduce #1 with 2 elements \(line 4\)).*",
    ),
    "dtype": Fault(
        "dist.all_reduce(x if rank != victim else x.double())",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 with float32)(?=.*{victim} calls all_reduce #1 with float64).*",
    ),
    "reduce_op": Fault(
        "dist.all_reduce(x, dist.ReduceOp.MAX if rank == victim else dist.ReduceOp.SUM)",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 with SUM)(?=.*{victim} calls all_reduce #1 with MAX).*",
    ),
    "root": Fault(
        "dist.broadcast(x, 1 if rank == victim else 0)",
        MISMATCH,
        r"(?=.*{others} calls? broadcast #1 with root 0)(?=.*{victim} calls broadcast #1 with root 1).*",
    ),
    "transposed": Fault(
        "y = x.view(2, 2)\ndist.broadcast(y.t() if rank == victim else y, 0)",
        MISMATCH,
        r"(?=.*{others} calls? broadcast #1 with a contiguous tensor)"
        r"(?=.*{victim} calls broadcast #1 with a tensor whose dimensions lie in the order 1,0).*",
    ),
    "splits": Fault(
        "sent = [2] * world_size\nif rank == victim: sent[0] = 3\n"
        "dist.all_to_all_single(torch.ones(2 * world_size), torch.ones(sum(sent)), [2] * world_size, sent)",
        MISMATCH,
        r"{victim} sends 3 elements to rank 0 in all_to_all_single #1 \(line 6\); rank 0 expects 2 \(line 6\)",
    ),
    "and_tidies_up": Fault(
        "try:\n    dist.all_reduce(x if rank != victim else x[:2])\nfinally:\n    dist.barrier()",
        MISMATCH,
        r"(?=.*{others} calls? all_reduce #1 with 4 elements \(line 5\))(?=.*{victim} calls all_reduce #1 with 2 elements \(line 5\)).*",
    ),
    "send_too_long": Fault(
        "a, b = 0, 1\nif rank == a: dist.send(x, b)\nif rank == b: dist.recv(x[:2].clone(), a)",
        MISMATCH,
        r"rank 0 sends 16 bytes of float32 to rank 1 \(line 5\); rank 1 receives 8 bytes of float32 \(line 6\)",
    ),
    "send_too_short": Fault(
        "a, b = 0, 1\nif rank == a: dist.send(x[:2].clone(), b)\nif rank == b: dist.recv(x, a)",
        MISMATCH,
        r"rank 0 sends 8 bytes of float32 to rank 1 \(line 5\); rank 1 receives 16 bytes of float32 \(line 6\)",
    ),
}

DEATHS = {
    "kill": Fault(
        "import os\nif rank == victim: os.kill(os.getpid(), 9)\ndist.all_reduce(x)",
        "RankError",
        r"{victim} died \(killed by SIGKILL\)",
        dies=True,
    ),
    "abort": Fault(
        "import os\nif rank == victim: os.abort()\ndist.barrier()",
        "RankError",
        r"{victim} died \(killed by SIGABRT\)",
        dies=True,
    ),
    "segfault": Fault(
        "import ctypes\nif rank == victim: ctypes.string_at(0)\ndist.all_reduce(x)",
        "RankError",
        r"{victim} died \(killed by SIGSEGV\)",
        dies=True,
    ),
    "exit": Fault(
        "import os\nif rank == victim: os._exit(3)\ndist.recv(x, victim)",
        "RankError",
        r"{victim} died \(exited with code 3\)",
        dies=True,
    ),
    "empties_modules": Fault(
        "import sys\nif rank == victim: sys.modules.clear()\nelse: dist.recv(x, victim)",
        "RankError",
        r"{victim} died \(exited with code 1\)",
        dies=True,
    ),
    "kill_in_ring": Fault(
        "import os\nfor i in range(50):\n    if rank == victim and i == 25: os.kill(os.getpid(), 9)\n    dist.all_reduce(x)",
        "RankError",
        r"{victim} died \(killed by SIGKILL\)",
        dies=True,
    ),
}

KEEP = r" dropped: keep what it returns, and call wait\(\) on it"
TO_THE_NEXT = "right, left = (rank + 1) % world_size, (rank - 1) % world_size\n"
DROPPED = {
    "isend": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == a: dist.isend(x, b)\ndist.barrier()\nif rank == b: dist.recv(x, a)",
        DEADLOCK,
        r"{victim} did not wait for its isend \(line 5\), so its message to rank \d was" + KEEP,
    ),
    "isend_in_a_ring": Fault(
        TO_THE_NEXT + "dist.isend(x, right)\ndist.recv(torch.empty(4), left)\ndist.barrier()",
        DEADLOCK,
        r"{everybody} did not wait for their isend \(line 5\), so messages were" + KEEP,
    ),
    "handles_in_a_loop": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == a:\n    for i in range(3): work = dist.isend(x + i, b)\n"
        "dist.barrier()\nif rank == b:\n    for i in range(3): dist.recv(x, a)",
        DEADLOCK,
        r"{victim} did not wait for its isend \(line 6\), so its message to rank \d was" + KEEP,
    ),
    "batch_and_barrier": Fault(
        TO_THE_NEXT + "dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right)])\ndist.barrier()\n"
        "work = dist.irecv(torch.empty(4), left)\ndist.barrier()",
        DEADLOCK,
        r"{everybody} did not wait for their isend \(line 5\), so messages were" + KEEP,
    ),
    "long_message": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == a: dist.isend(torch.ones(4_000_000), b)\ndist.barrier()\n"
        "if rank == b: dist.recv(torch.ones(4_000_000), a)",
        DEADLOCK,
        r"{victim} did not wait for its isend \(line 5\), so its message to rank \d was" + KEEP,
    ),
    "irecv": Fault(
        TO_THE_NEXT + "dist.irecv(torch.empty(4), left)\ndist.send(x, right)",
        "LostMessageError",
        r"{everybody} did not wait for their irecv \(line 5\), so messages were" + KEEP,
    ),
    "irecv_then_recv": Fault(
        "a, b = victim, (victim + 1) % world_size\nif rank == b: dist.irecv(x, a); dist.recv(x, a)\nif rank == a: dist.send(x, b)",
        DEADLOCK,
        r"rank \d did not wait for its irecv \(line 5\), so its message from {victim} was" + KEEP,
    ),
}

# One stop ends each of these; cells without an end, or of which one rank has none.
ENDLESS = {
    "python": "while True: pass",
    "sleep": "time.sleep(100)",
    "matmul": "a = torch.ones(300, 300)\nwhile True: a @ a",
    "gloo": "dist.recv(torch.ones(1), 0) if rank else time.sleep(100)",
    "store": "dist.new_group([0, 1]) if rank else time.sleep(100)",
    "monitored_barrier": "dist.monitored_barrier() if rank != 2 else time.sleep(100)",
    "objects": "dist.all_gather_object([None] * 4, rank) if rank != 1 else time.sleep(100)",
    "full pipe": "import sys\nwhile True: sys.stdout.write('x' * 100000)",
    "suspended": "import signal\nif rank == 1: os.kill(os.getpid(), signal.SIGSTOP)",
    "suspended in a collective": "import signal\nif rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\ndist.barrier()",
    "a child without an end": "pid = os.fork()\nif not pid:\n    while True: time.sleep(0.1)\nos.waitpid(pid, 0)",
}

# What a cell may take from the rank that runs it: (cell, the exception it ends with in a script, the word about it).
TAKEN = {
    "closed stdout": ("import sys\nsys.stdout.close()\nprint('x')", "ValueError", "sys.stdout closed"),
    "stdout in a with": ("import sys\nwith sys.stdout as f: f.write('said\\n')", "", "sys.stdout closed"),
    "closed descriptor 1": ("os.close(1)\nprint('x')", "OSError", "file descriptor 1 closed"),
    "closed descriptor 2": ("os.close(2)", "", "file descriptor 2 closed"),
    "no stdout": ("import sys\nsys.stdout = None\nprint('x')", "", "sys.stdout set to None"),
    "no stderr": ("import sys\nsys.stderr = None\n1 / 0", "ZeroDivisionError", "sys.stderr set to None"),
    "a number for stdout": ("import sys\nsys.stdout = 5", "", "sys.stdout replaced by int, which cannot be written to"),
    "a closed file for stdout": (
        "import sys\nsys.stdout = open('/dev/null', 'w')\nsys.stdout.close()",
        "",
        "sys.stdout closed",
    ),
    "a string for stdout": (
        "import io, sys\nsys.stdout = io.StringIO()\nprint('gone')",
        "",
        "sys.stdout replaced by another stream (StringIO)",
    ),
    "a file for stderr": (
        "import sys\nsys.stderr = open('/dev/null', 'w')\n1 / 0",
        "ZeroDivisionError",
        "sys.stderr replaced by another stream (TextIOWrapper)",
    ),
}

FAULTS = DEADLOCKS | MISMATCHES | DEATHS | {f"dropped_{name}": fault for name, fault in DROPPED.items()}
