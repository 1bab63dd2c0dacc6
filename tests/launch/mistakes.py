"""What students get wrong: more cells, each with the very words that explain it.

`MISTAKES` are run on 3 ranks with `victim` 1, and `ALONE` on one (test_fault_campaign.py); `python -m tests.benchmarks
words` runs each of them twenty times. The words were read one by one before they were written down here. The faults of
faults.py are run on several numbers of ranks, early and late, and say by a pattern what is right for all of them.
"""

# ruff: noqa: E501  (a cell or a sentence is not broken in the middle)

SIZE, VICTIM = 3, 1
NEXT = "right, left = (rank + 1) % world_size, (rank - 1) % world_size\n"

MISTAKES = {
    # A rank does not make the call.
    "without_broadcast": (
        "dist.barrier()\nif rank != victim:\n    dist.broadcast(x, 0)\n    dist.barrier()",
        "DeadlockError: rank 0 waits in broadcast #2 (line 6, float32[4]); rank 2 waits in barrier #3 (line 7); rank 1 left the cell after 1 collective",
    ),
    "without_reduce": (
        "dist.barrier()\nif rank != victim:\n    dist.reduce(x, 0)\n    dist.barrier()",
        "DeadlockError: ranks 0, 2 wait in reduce #2 (line 6, float32[4]); rank 1 left the cell after 1 collective",
    ),
    "without_all_gather": (
        "dist.barrier()\nif rank != victim:\n    dist.all_gather([torch.empty(4) for _ in range(world_size)], x)\n    dist.barrier()",
        "DeadlockError: ranks 0, 2 wait in all_gather #2 (line 6, float32[4]); rank 1 left the cell after 1 collective",
    ),
    "without_all_to_all": (
        "dist.barrier()\nif rank != victim:\n    dist.all_to_all([torch.empty(4) for _ in range(world_size)], [x] * world_size)\n    dist.barrier()",
        "DeadlockError: ranks 0, 2 wait in all_to_all #2 (line 6, float32[4] and 2 more); rank 1 left the cell after 1 collective",
    ),
    "without_scatter": (
        "dist.barrier()\nif rank != victim:\n    dist.scatter(x, [x] * world_size if rank == 0 else None, 0)\n    dist.barrier()",
        "DeadlockError: rank 0 waits in scatter #2 (line 6, float32[4] and 2 more); rank 2 waits in barrier #3 (line 7); rank 1 left the cell after 1 collective",
    ),
    "without_gather": (
        "dist.barrier()\nif rank != victim:\n    dist.gather(x, [torch.empty(4) for _ in range(world_size)] if rank == 0 else None, 0)\n    dist.barrier()",
        "DeadlockError: rank 0 waits in gather #2 (line 6, float32[4]); rank 2 waits in barrier #3 (line 7); rank 1 left the cell after 1 collective",
    ),
    "without_broadcast_object_list": (
        "dist.barrier()\nif rank != victim:\n    dist.broadcast_object_list([rank], 0)\n    dist.barrier()",
        "DeadlockError: rank 0 waits in broadcast #2 (line 6, int64[1]); rank 2 waits in broadcast #3 (line 6, uint8[5]); rank 1 left the cell after 1 collective",
    ),
    # A message is waited for twice, which gloo does for ever.
    "waits_again": (
        NEXT + "work = dist.isend(x, right)\ndist.recv(torch.empty(4), left)\nwork.wait()\nwork.wait()",
        "RankError: ranks 0-2: RuntimeError: line 8 waits a second time for an isend: wait() once for each, and empty the list after each round",
    ),
    "list_not_emptied": (
        NEXT + "works = []\nfor _ in range(2):\n"
        "    works += dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, torch.empty(4), left)])\n"
        "    for work in works: work.wait()",
        "RankError: ranks 0-2: RuntimeError: line 8 waits a second time for an isend: wait() once for each, and empty the list after each round",
    ),
    "irecv_again": (
        "if rank == victim: work = dist.irecv(x, 0); work.wait(); work.wait()\nif rank == 0: dist.send(x, victim)\ndist.barrier()",
        "DeadlockError: ranks 0, 2 wait in barrier #1 (line 6); rank 1 raised RuntimeError: line 4 waits a second time for an irecv: wait() once for each, and empty the list after each round",
    ),
    # Tensors that gloo answers with words of its own, or with a wrong result.
    "average_of_whole_numbers": (
        "dist.all_reduce(x.long(), dist.ReduceOp.AVG)",
        "RankError: ranks 0-2: ValueError: all_reduce with AVG needs floating-point numbers, and this tensor has integers: give it x.float()",
    ),
    "output_as_long_as_the_input": (
        "dist.reduce_scatter_single(x, x)",
        "RankError: ranks 0-2: ValueError: reduce_scatter_single cuts its input into 3 pieces of the output's length 4: that is 12, and the input's is 4",
    ),
    "output_unlike_the_pieces": (
        "dist.reduce_scatter(torch.empty(3), [x] * world_size)",
        "RankError: ranks 0-2: ValueError: reduce_scatter needs pieces of the same shape as its output: torch.empty_like(pieces[0])",
    ),
    "output_of_another_length": (
        "dist.all_gather_single(torch.empty(8), x)",
        "RankError: ranks 0-2: ValueError: all_gather_single joins 3 inputs of shape [4]: its output needs the shape [12], and has [8]",
    ),
    "one_output_of_another_length": (
        "dist.all_gather_single(torch.empty(8 if rank == victim else 12), x)",
        "DeadlockError: ranks 0, 2 wait in all_gather_single #1 (line 4, float32[4]); rank 1 raised ValueError: all_gather_single joins 3 inputs of shape [4]: its output needs the shape [12], and has [8]",
    ),
    "a_number_gathered": (
        "dist.all_gather_single(torch.empty(3), x[0])",
        "RankError: ranks 0-2: ValueError: all_gather_single needs tensors with a dimension: torch.zeros(1) for torch.tensor(0.), or x.reshape(1)",
    ),
    "a_piece_unlike_the_tensor": (
        "dist.all_gather([x.clone(), torch.empty(3), x.clone()], x)",
        "RankError: ranks 0-2: ValueError: all_gather needs pieces of its tensor's shape [4], and piece 1 of the list has [3]",
    ),
    "all_to_all_of_two_shapes": (
        "dist.all_to_all([torch.empty(2) for _ in range(world_size)], [x] * world_size)",
        "RankError: ranks 0-2: ValueError: all_to_all needs tensors that all have the same shape: for others use all_to_all_single with split sizes",
    ),
    "unused_parameters": (
        "class Half(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)\n    def forward(self, x): return self.a(x)\n"
        "model = torch.nn.parallel.DistributedDataParallel(Half())\nfor _ in range(2): model(x).sum().backward()",
        "RankError: ranks 0-2: RuntimeError: parameters of this module got no gradient in the last backward pass (of module.parameters(): 2, 3): use all outputs of forward in the loss, or pass find_unused_parameters=True to DistributedDataParallel",
    ),
    "ranks_on_ranks": (
        "%ranks 2",
        "RankError: ranks 0-2: UsageError: %%ranks and %ranks belong to the notebook: this cell is on the ranks already",
    ),
    "another_cell_below": (
        "x = 1\n%%ranks\nx",
        "RankError: ranks 0-2: UsageError: %%ranks and %ranks belong to the notebook: this cell is on the ranks already",
    ),
    # exit() is told as sys.exit() is, and the rank lives on.
    "exit": (
        "if rank == victim: exit(3)",
        "RankError: rank 1: SystemExit: 3",
    ),
    # Two calls do not fit.
    "all_gather_for_reduce_scatter": (
        "if rank == victim:\n    dist.all_gather_into_tensor(torch.empty(4 * world_size), x)\nelse:\n    dist.reduce_scatter_tensor(torch.empty(4), torch.ones(4 * world_size))",
        "MismatchError: ranks 0, 2 call reduce_scatter_single #1 (line 7); rank 1 calls all_gather_single #1 (line 5)",
    ),
    "product_for_min": (
        "if rank == victim:\n    dist.reduce(x, 0, dist.ReduceOp.PRODUCT)\nelse:\n    dist.reduce(x, 0, dist.ReduceOp.MIN)",
        "MismatchError: ranks 0, 2 call reduce #1 with MIN (line 7); rank 1 calls reduce #1 with PRODUCT (line 5)",
    ),
    "root_is_the_rank": (
        "if rank == victim:\n    dist.broadcast(x, victim)\nelse:\n    dist.broadcast(x, (victim + 1) % world_size)",
        "MismatchError: ranks 0, 2 call broadcast #1 with root 2 (line 7); rank 1 calls broadcast #1 with root 1 (line 5)",
    ),
    "half_for_float": (
        "if rank == victim:\n    dist.all_reduce(x.half())\nelse:\n    dist.all_reduce(x)",
        "MismatchError: ranks 0, 2 call all_reduce #1 with float32 (line 7); rank 1 calls all_reduce #1 with float16 (line 5)",
    ),
    "longer_all_gather": (
        "if rank == victim:\n    dist.all_gather([torch.empty(6) for _ in range(world_size)], torch.ones(6))\nelse:\n    dist.all_gather([torch.empty(4) for _ in range(world_size)], x)",
        "MismatchError: ranks 0, 2 call all_gather #1 with 4 elements (line 7); rank 1 calls all_gather #1 with 6 elements (line 5)",
    ),
    "empty_tensor": (
        "if rank == victim:\n    dist.all_reduce(torch.empty(0))\nelse:\n    dist.all_reduce(x)",
        "MismatchError: ranks 0, 2 call all_reduce #1 with 4 elements (line 7); rank 1 calls all_reduce #1 with 0 elements (line 5)",
    ),
    "one_layer_more": (
        "if rank == victim:\n    [dist.all_reduce(w) for w in (x, x.clone(), torch.ones(2))]\nelse:\n    [dist.all_reduce(w) for w in (x, torch.ones(2))]",
        "MismatchError: ranks 0, 2 call all_reduce #2 with 2 elements (line 7); rank 1 calls all_reduce #2 with 4 elements (line 5)",
    ),
    "order_of_two_sizes": (
        "if rank == victim:\n    dist.all_reduce(x)\n    dist.all_reduce(x[:2].clone())\nelse:\n    dist.all_reduce(x[:2].clone())\n    dist.all_reduce(x)",
        "MismatchError: ranks 0, 2 call all_reduce #1 with 2 elements (line 8); rank 1 calls all_reduce #1 with 4 elements (line 5)",
    ),
    # A rank fails between two calls.
    "raises_import": (
        "if rank == victim:\n    import no_such_module\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 6, float32[4]); rank 1 raised ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "raises_shape": (
        "if rank == victim:\n    torch.ones(2, 3) @ torch.ones(2)\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 6, float32[4]); rank 1 raised RuntimeError: size mismatch, got input (2), mat (2x3), vec (2)",
    ),
    "raises_stop": (
        "if rank == victim:\n    next(iter([]))\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 6, float32[4]); rank 1 raised StopIteration",
    ),
    "raises_recursion": (
        "if rank == victim:\n    def f(): f()\n    f()\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 7, float32[4]); rank 1 raised RecursionError: maximum recursion depth exceeded",
    ),
    "raises_own": (
        "if rank == victim:\n    class TooMuch(Exception): pass\n    raise TooMuch('really')\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 7, float32[4]); rank 1 raised TooMuch: really",
    ),
    "raises_own_stop": (
        "if rank == victim:\n    raise KeyboardInterrupt\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 6, float32[4]); rank 1 raised KeyboardInterrupt",
    ),
    "raises_in_a_generator": (
        "def batches():\n    yield x\n    if rank == victim: raise OSError('disk')\n    yield x\nfor b in batches(): dist.all_reduce(b)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #2 (line 8, float32[4]); rank 1 raised OSError: disk",
    ),
    "raises_in_a_comprehension": (
        "[dist.all_reduce(x / (1 if rank != victim else int(i != 1) or [][0])) for i in range(3)]",
        "DeadlockError: ranks 0, 2 wait in all_reduce #2 (line 4, float32[4]); rank 1 raised IndexError: list index out of range",
    ),
    "raises_in_a_hook": (
        "p = torch.ones(2, requires_grad=True)\ndef hook(g):\n    if rank == victim: raise ValueError('hook')\np.register_hook(hook)\np.sum().backward()\ndist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 9, float32[4]); rank 1 raised ValueError: hook",
    ),
    # Loops, branches, messages, groups, handles.
    "one_turn_less": (
        "for _ in range(3 - (rank == victim)):\n    dist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #3 (line 5, float32[4]); rank 1 left the cell after 2 collectives",
    ),
    "one_turn_more": (
        "for _ in range(3 + (rank == victim)):\n    dist.all_reduce(x)",
        "DeadlockError: rank 1 waits in all_reduce #4 (line 5, float32[4]); ranks 0, 2 left the cell after 3 collectives",
    ),
    "returns_early": (
        "def train():\n    for i in range(4):\n        if rank == victim and i == 1: return\n        dist.broadcast(x, 0)\ntrain()",
        "DeadlockError: rank 0 waits in broadcast #2 (line 7, float32[4]); rank 2 waits in broadcast #3 (line 7, float32[4]); rank 1 left the cell after 1 collective",
    ),
    "swallows_its_error": (
        "for i in range(3):\n    try:\n        if rank == victim and i == 1: raise ValueError\n        dist.all_reduce(x)\n    except ValueError: pass",
        "DeadlockError: ranks 0, 2 wait in all_reduce #3 (line 7, float32[4]); rank 1 left the cell after 2 collectives",
    ),
    "barrier_on_one_rank": (
        "if rank == victim: dist.barrier()",
        "DeadlockError: rank 1 waits in barrier #1 (line 4); ranks 0, 2 left the cell after 0 collectives",
    ),
    "ring_a_step_short": (
        NEXT
        + "b = torch.empty(4)\nfor _ in range(world_size - (rank == victim)):\n    w = dist.isend(x, right)\n    dist.recv(b, left)\n    w.wait()",
        "DeadlockError: rank 0 waits in send to rank 1 (line 7, float32[4]); rank 2 waits in recv from rank 1 (line 8, float32[4]); rank 1 left the cell without the matching send and recv",
    ),
    "ring_one_turns_back": (
        NEXT
        + "to, of = (left, right) if rank == victim else (right, left)\nw = dist.isend(x, to)\ndist.recv(torch.empty(4), of)\nw.wait()",
        "DeadlockError: rank 0 waits in send to rank 1 (line 6, float32[4]); rank 1 waits in recv from rank 2 (line 7, float32[4]); rank 2 waits in recv from rank 1 (line 7, float32[4])",
    ),
    "chain_without_first": (
        "if rank: dist.recv(x, rank - 1)\nif rank and rank < world_size - 1: dist.send(x, rank + 1)",
        "DeadlockError: rank 1 waits in recv from rank 0 (line 4, float32[4]); rank 2 waits in recv from rank 1 (line 4, float32[4]); rank 0 left the cell without the matching send",
    ),
    "no_such_rank": (
        "if rank == victim: dist.send(x, world_size)\nelse: dist.barrier()",
        "DeadlockError: ranks 0, 2 wait in barrier #1 (line 5); rank 1 raised ValueError: there is no rank 3: the ranks are 0 to 2",
    ),
    "minus_one": (
        "if rank == victim: dist.send(x, -1)\nelse: dist.barrier()",
        "DeadlockError: ranks 0, 2 wait in barrier #1 (line 5); rank 1 raised ValueError: there is no rank -1: the ranks are 0 to 2",
    ),
    "both_receive": (
        "other = rank ^ 1\ndist.recv(x, other)\ndist.send(x, other)",
        "DeadlockError: rank 0 waits in recv from rank 1 (line 5, float32[4]); rank 1 waits in recv from rank 0 (line 5, float32[4])",
    ),
    "flat_gather_forgets_one": (
        "if rank == 0:\n    for src in range(1, world_size): dist.recv(x, src)\nelif rank != max(victim, 1): dist.send(x, 0)",
        "DeadlockError: rank 0 waits in recv from rank 1 (line 5, float32[4]); rank 2 waits in send to rank 0 (line 6, float32[4]); rank 1 left the cell without the matching send",
    ),
    "flat_gather_from_itself_too": (
        "if rank == 0:\n    for src in range(world_size): dist.recv(x, src)\nelse: dist.send(x, 0)",
        "DeadlockError: ranks 1, 2 wait in send to rank 0 (line 6, float32[4]); rank 0 raised ValueError: a rank cannot receive from itself",
    ),
    "waits_for_an_irecv": (
        "other = (victim + 1) % world_size\nif rank == other: dist.irecv(x, victim).wait()",
        "DeadlockError: rank 2 waits in recv from rank 1 (line 5, float32[4]); rank 1 left the cell without the matching send",
    ),
    "pipeline_back_forgets": (
        "if rank: dist.recv(x, rank - 1)\nif rank < world_size - 1:\n    dist.send(x, rank + 1)\n    dist.recv(x, rank + 1)",
        "DeadlockError: rank 0 waits in recv from rank 1 (line 7, float32[4]); rank 1 waits in recv from rank 2 (line 7, float32[4]); rank 2 left the cell without the matching send",
    ),
    "parameter_server_counts_one_too_many": (
        "if rank == 0:\n    for _ in range(world_size): dist.recv(x)\nelse: dist.send(x, 0)",
        "DeadlockError: rank 0 waits in recv from any rank (line 5, float32[4]); ranks 1, 2 left the cell without the matching send",
    ),
    "message_and_collective_crossed": (
        "other = (victim + 1) % world_size\nif rank == victim: dist.send(x, other)\ndist.barrier()\nif rank == other: dist.recv(x, victim)",
        "DeadlockError: ranks 0, 2 wait in barrier #1 (line 6); rank 1 waits in send to rank 2 (line 5, float32[4])",
    ),
    "double_into_a_float": (
        "other = (victim + 1) % world_size\nif rank == victim: dist.send(x.double(), other)\nif rank == other: dist.recv(x, victim)",
        "MismatchError: rank 1 sends 32 bytes of float64 to rank 2 (line 5); rank 2 receives 16 bytes of float32 (line 6)",
    ),
    "group_of_others": (
        "g = dist.new_group([r for r in range(world_size) if r != victim])\nif rank != victim:\n    dist.all_reduce(x, group=g)\n    dist.all_reduce(x)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 (line 7, float32[4]); rank 1 left the cell after 0 collectives",
    ),
    "group_order": (
        "a, b = [0, 1], list(range(world_size))\nfor members in ((a, b) if rank == victim else (b, a)): dist.barrier(dist.new_group(members))",
        "MismatchError: ranks 0, 2 call new_group([0,1,2]) (line 5); rank 1 calls new_group([0,1]) (line 5); every rank has to make the same groups, in the same order",
    ),
    "group_left_out": (
        "a, b = dist.new_group([0, 2]) if rank != victim else None, dist.new_group([0, 1])\ndist.barrier(b)",
        "MismatchError: ranks 0, 2 call new_group([0,2]) (line 4); rank 1 calls new_group([0,1]) (line 4); every rank has to make the same groups, in the same order",
    ),
    "world_for_group": (
        "g = dist.new_group(list(range(world_size)))\ndist.all_reduce(x, group=g if rank != victim else None)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 of ranks 0,1,2 (line 5, float32[4]); rank 1 waits in all_reduce #1 (line 5, float32[4])",
    ),
    "destroys_the_group": (
        "g = dist.new_group(list(range(world_size)))\nif rank == victim: dist.destroy_process_group(g)\ndist.all_reduce(x, group=g)",
        "DeadlockError: ranks 0, 2 wait in all_reduce #1 of ranks 0,1,2 (line 6, float32[4]); rank 1 raised ValueError: Process group <torch.distributed.distributed_c10d.ProcessGroup object> is not initialized in the world group map. Please ...",
    ),
    "two_async_in_another_order": (
        "a, b = x.clone(), torch.ones(2)\nfirst, second = (b, a) if rank == victim else (a, b)\nworks = [dist.all_reduce(first, async_op=True), dist.all_reduce(second, async_op=True)]\nfor w in works: w.wait()",
        "MismatchError: ranks 0, 2 call all_reduce #1 with 4 elements (line 6); rank 1 calls all_reduce #1 with 2 elements (line 6)",
    ),
    "async_and_a_barrier": (
        "w = dist.all_reduce(x, async_op=True)\nif rank != victim: dist.barrier()\nw.wait()",
        "DeadlockError: ranks 0, 2 wait in barrier #2 (line 5); rank 1 left the cell after 1 collective",
    ),
    "ddp_uneven": (
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\nfor _ in range(2 + (rank == victim)): model(torch.ones(1, 2)).sum().backward()",
        "DeadlockError: rank 1 waits in backward (line 5) for all_reduce #8; ranks 0, 2 left the cell after 7 collectives",
    ),
    "ddp_on_some": (
        "if rank != victim: model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))",
        "DeadlockError: ranks 0, 2 wait in all_gather #1 (line 4, int64[1]); rank 1 left the cell after 0 collectives",
    ),
    "ddp_another_model": (
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2 + (rank == victim), 1))",
        "DeadlockError: rank 0 waits in broadcast #3 (line 4, float32[3]); rank 1 raised RuntimeError: [1]: params[0] in this process with sizes [1, 3] appears not to match sizes of the same param in process 0.",
    ),
    # A rank is gone.
    "dies_of_sigterm": (
        "import os, signal\nif rank == victim: os.kill(os.getpid(), signal.SIGTERM)\ndist.barrier()",
        "RankError: rank 1 died (killed by SIGTERM)",
    ),
    "exits_when_all_is_done": (
        "import os\ndist.all_reduce(x)\nif rank == victim: os._exit(0)",
        "RankError: rank 1 died (exited with code 0)",
    ),
    "dies_in_a_send": (
        "import os\nother = (victim + 1) % world_size\nif rank == victim: dist.isend(x, other); os._exit(3)\nif rank == other: dist.recv(x, victim); dist.recv(x, victim)",
        "RankError: rank 1 died (exited with code 3)",
    ),
}

ALONE = {
    "alone_sends": (
        "dist.send(x, 0)",
        "RankError: rank 0: ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current process.",
    ),
    "alone_receives": (
        "dist.recv(x, 0)",
        "RankError: rank 0: ValueError: a rank cannot receive from itself",
    ),
    "alone_sends_on": (
        "dist.send(x, rank + 1)",
        "RankError: rank 0: ValueError: there is no rank 1: the ranks are 0 to 0",
    ),
    "alone_in_a_pair": (
        "dist.recv(x, 1)",
        "RankError: rank 0: ValueError: there is no rank 1: the ranks are 0 to 0",
    ),
    "alone_root": (
        "dist.broadcast(x, 1)",
        "RankError: rank 0: ValueError: there is no rank 1: the ranks are 0 to 0",
    ),
    "alone_isend": (
        "dist.isend(x, 1).wait()",
        "RankError: rank 0: ValueError: there is no rank 1: the ranks are 0 to 0",
    ),
    "alone_raises": (
        "dist.all_reduce(x)\n1 / 0",
        "RankError: rank 0: ZeroDivisionError: division by zero",
    ),
    "alone_dies": (
        "import os\nos._exit(1)",
        "RankError: rank 0 died (exited with code 1)",
    ),
    "alone_short_list": (
        "dist.all_gather([], x)",
        "RankError: rank 0: RuntimeError: ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 1, got 0)",
    ),
}
