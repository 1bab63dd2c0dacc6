"""The other two variants of an exam's true-or-false questions: another sentence about the same thing, as true or not.

Each has its own reason. Among the three at least one is true and one is false, so a neighbour's answer is no help.

Left out: the statements of chapters that no exam takes.
"""

Said = tuple[str, bool, str]

STATED: dict[str, tuple[Said, Said]] = {
    "alike": (
        (
            "Two ranks that start with the same weights and train on different data keep the same weights, without a "
            "single message.",
            False,
            "Different data give different gradients, so the weights differ after the first step. That is why the "
            "gradients are averaged.",
        ),
        (
            "Two ranks start with different weights and subtract the same averaged gradients in every step. After "
            "enough steps their weights are the same.",
            False,
            "Both subtract the same numbers, so the difference between them stays what it was at the start.",
        ),
    ),
    "some_rank_sends_63": (
        (
            "In a broadcast on 64 ranks rank 0 must send at least 63 vectors: 63 other ranks need its numbers.",
            False,
            "Each rank that has the vector can pass it on. In a chain rank 0 sends one vector, in a tree six.",
        ),
        (
            "In an all_reduce on 64 ranks it is possible that no rank sends more than two vectors' bytes.",
            True,
            "In a ring each rank sends 2 x 63 pieces of 1/64: 1.97 vectors.",
        ),
    ),
    "same_seed": (
        (
            "If rank r calls `torch.manual_seed(r)`, all ranks draw the same random numbers, without any message.",
            False,
            "Another seed gives another sequence. That is right for dropout, and wrong for weights that should start "
            "alike.",
        ),
        (
            "All ranks call `torch.manual_seed(0)`, then rank 0 alone draws one number. What all ranks draw next is "
            "the "
            "same on each of them.",
            False,
            "Rank 0 is one number further in the sequence than the others.",
        ),
    ),
    "free_after_send": (
        (
            "When `isend` has returned, you may overwrite the tensor: the receiver still gets the old numbers.",
            False,
            "isend only starts the message. The bytes may still be in the tensor until wait() has returned.",
        ),
        (
            "When `wait()` on the handle of an `isend` has returned, you may overwrite the tensor: the receiver still "
            "gets the old numbers.",
            True,
            "wait() promises for isend what send promises when it returns: the bytes have been copied out of the "
            "tensor.",
        ),
    ),
    "thousand_ranks": (
        (
            "A tree broadcast on 2,000 ranks takes twice as many steps as on 1,000.",
            False,
            "The ranks that have the vector double in each step: 10 steps reach 1,024 ranks, and 11 steps 2,048.",
        ),
        (
            "A tree broadcast on 1,000 ranks takes twice as many steps as on 32.",
            True,
            "The ranks that have the vector double in each step: 5 steps reach 32 ranks, and 10 steps 1,024.",
        ),
    ),
    "topology_myth_threshold": (
        (
            "For an all_reduce of the same size NCCL may take a tree on one cluster and a ring on another.",
            True,
            "It estimates how long each algorithm takes on your machines, and takes the fastest. The size alone does "
            "not decide.",
        ),
        (
            "For an all_reduce of 1 MB NCCL always takes the ring.",
            False,
            "It estimates how long each algorithm takes on your machines, and takes the fastest. On many machines that "
            "may be a tree.",
        ),
    ),
    "compose_scatter_gather": (
        (
            "broadcast from rank 0 = scatter from rank 0, then all_gather.",
            True,
            "The chunks of rank 0's vector go to all ranks, one to each, and then each rank gets all of them.",
        ),
        (
            "all_reduce = reduce_scatter, then gather to rank 0.",
            False,
            "The sum is then on rank 0 alone: that is a reduce. An all_gather brings the chunks to all.",
        ),
    ),
    "dp_no_sync": (
        (
            "Four small batches, one optimizer step. With `no_sync` around all four DDP ends with the same gradients "
            "on "
            "every rank as without it.",
            False,
            "With no_sync around the last one, too, nothing is all-reduced: each rank keeps the gradients of its own "
            "data.",
        ),
        (
            "Two small batches, one optimizer step. With `no_sync` around the first DDP sends as many bytes as without "
            "it, only later.",
            False,
            "It sends half: one all_reduce of the gradients that were added up, where there were two.",
        ),
    ),
    "tp_myth_batch": (
        (
            "Each rank of a tensor-parallel group should be given another part of the batch.",
            False,
            "They compute pieces of one and the same layer, so they need the same batch. Other parts go to other "
            "replicas, in the data group.",
        ),
        (
            "If the ranks of a tensor-parallel group are given different batches, the first all_reduce raises an "
            "error.",
            False,
            "The shapes fit, so nothing is raised. The sum adds up parts of different outputs.",
        ),
    ),
}
