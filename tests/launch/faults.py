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
        r"rank \d waits in (send to|recv from) rank \d .*; rank \d waits in (send to|recv from) rank \d .*",
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
        WAIT + r"all_gather #1 \(line 4.*\)" + LEFT,
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
    "kill_in_ring": Fault(
        "import os\nfor i in range(50):\n    if rank == victim and i == 25: os.kill(os.getpid(), 9)\n    dist.all_reduce(x)",
        "RankError",
        r"{victim} died \(killed by SIGKILL\)",
        dies=True,
    ),
}

FAULTS = DEADLOCKS | MISMATCHES | DEATHS
