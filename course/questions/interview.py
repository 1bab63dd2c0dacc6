"""The questions of the interview: what a sheet of notes says in a line, asked the way an interviewer asks it."""

from course.questions.question import Answer, Choose, FindLine, Number, Order, Statement

WORLD = "10 microseconds of latency for each message, 10 GB/s"

QUESTIONS = (
    Number(
        name="interview_same",
        topic="who holds what",
        text="After how many of these eight does every rank hold the same data: broadcast, scatter, gather, reduce, "
        "all_gather, reduce_scatter, all_reduce, all_to_all?",
        right=Answer("3", "broadcast, all_gather and all_reduce."),
        wrong=(
            Answer(
                "2",
                'You went by the name. There is no "all" in broadcast, and every rank holds the root\'s data after it.',
            ),
            Answer("4", "One too many: reduce_scatter and all_to_all give every rank as much, but different data."),
            Answer(
                "5", "After reduce_scatter each rank holds its own chunk of the sum, after all_to_all its own column."
            ),
        ),
        unit="collectives",
    ),
    Choose(
        name="interview_clones",
        topic="reduce_scatter",
        text="Rank r's x is 10 r, 10 r + 1, 10 r + 2, 10 r + 3, on 4 ranks. Line 7 of the sheet: `out = "
        "torch.empty_like(x)`, and `dist.reduce_scatter(out, [x.clone() for _ in range(world_size)])`. What does "
        "`out` hold on rank 2?",
        answers=(
            Answer(
                "nothing: it raises, since `out` is too long",
                "`out` has to be as long as one tensor of the list. Each of them is a whole x, so it is.",
            ),
            Answer(
                "68, number 2 of the sum",
                "For that the list has to be `x.chunk(world_size)`. Here chunk 2 is all of x.",
            ),
            Answer(
                "60, 64, 68, 72: the sum of all four x",
                "Chunk 2 of each rank is all of its x. Every rank gets this sum: the result of an all_reduce, from "
                "four times the input.",
            ),
            Answer(
                "80, 84, 88, 92: four times its own x",
                "The clones of one rank are not added up. Clone 2 of each rank is added to clone 2 of the others.",
            ),
        ),
        right=2,
    ),
    FindLine(
        name="interview_one_list",
        topic="all_gather",
        text="x is 10 r, 10 r + 1, 10 r + 2, 10 r + 3 on rank r of four. `total` should be the sum of all four "
        "vectors, but it is 120, 124, 128, 132 on every "
        "rank, and no error is raised. Which line would you change?",
        source="x = torch.arange(4.0) + 10 * rank\n"
        "everyone = [torch.empty_like(x)] * world_size\n"
        "dist.all_gather(everyone, x)\n"
        "total = torch.stack(everyone).sum(dim=0)\n",
        right=(2,),
        why="`* world_size` puts the same tensor into the list four times. Each vector overwrites the one before, "
        "and rank 3's is the last. It is added four times: 4 x 30 = 120.",
        wrong=(
            Answer("1", "Each rank has its own numbers here, as it should."),
            Answer("3", "This call is right: first the list to fill, then this rank's vector."),
            Answer("4", "It adds up the four entries of the list. But all four are one tensor."),
        ),
    ),
    Statement(
        name="interview_gather_broadcast",
        topic="composition",
        text="Gather to rank 0, then broadcast what it has: every rank then holds what it would hold after all_gather.",
        true=True,
        why="The result is the same. The price is not: the whole has to leave rank 0 again.",
    ),
    Number(
        name="interview_split",
        topic="composition",
        text="Build reduce_scatter as a ring all_reduce after which each rank keeps only its chunk. How many times "
        "the bytes "
        "of a real reduce_scatter does a rank send?",
        right=Answer(
            "2",
            "2 (p - 1) chunks instead of p - 1. The ring's second half brings every chunk to "
            "every rank, which keeps one.",
        ),
        wrong=(
            Answer("1", "The result is the same. But the all_reduce also sends you the chunks that you throw away."),
            Answer("p", "You keep one chunk of p. But each rank sends 2 (p - 1) chunks instead of p - 1."),
            Answer("1/2", "The other way round: reduce_scatter is the first half of a ring all_reduce."),
        ),
        unit="times",
        p=8,
    ),
    Number(
        name="interview_two_n",
        topic="all_gather",
        text="8 GPUs, each with a shard of 100 MB. What does each of them send in a ring all_gather? Write the unit, "
        "too.",
        right=Answer(
            "7*100e6", "Each rank passes on seven shards. That is 7 times the shard, and 7/8 of the whole 800 MB."
        ),
        wrong=(
            Answer("7/8*100e6", "(p - 1)/p is a share of the whole, 800 MB. You used a shard, 100 MB."),
            Answer("100e6", "That is one step. In the next six steps each rank passes on what it received."),
            Answer("8*100e6", "The last shard that reaches a rank need not go on: seven, not eight."),
            Answer("7*8*100e6", "That is what all 8 GPUs send together."),
        ),
        unit="bytes",
        p=8,
        within=0.01,
    ),
    Statement(
        name="interview_broadcast_receives",
        topic="broadcast",
        text="In any broadcast, each rank except the root must receive at least N bytes. (The sheet says (p - 1)/p N.)",
        true=True,
        why="It begins with nothing and ends with N. (p - 1)/p N is for all_gather, where a rank has one chunk "
        "already.",
    ),
    Number(
        name="interview_tree_time",
        topic="estimate",
        text="The sheet: tree time = log(p) x latency. 8 ranks all-reduce 100 MB by a binomial tree, whole vectors "
        f"up to the root and the sum down again. {WORLD}. How long does it take? Write the unit, too.",
        right=Answer("6*(10e-6 + 100e6/10e9)", "Three levels up and three down: six vectors in a row, 10.01 ms each."),
        wrong=(
            Answer(
                "3*10e-6", "That is the sheet's formula. It forgets the bytes: each level carries 100 MB, for 10 ms."
            ),
            Answer("6*10e-6", "That is the latency of six levels. Each level also carries 100 MB, for 10 ms."),
            Answer("3*(10e-6 + 100e6/10e9)", "That is the way up. The sum has to come down, too."),
            Answer("2*7/8*100e6/10e9", "That is a ring, which sends chunks. This tree sends whole vectors."),
        ),
        unit="s",
        p=8,
        within=0.02,
    ),
    Number(
        name="interview_ring_time",
        topic="estimate",
        text="The sheet: ring time = 2 (p - 1)/p x N/bandwidth. 8 ranks all-reduce 8 kB in a ring. "
        f"{WORLD}. How long does it take?",
        right=Answer(
            "14*(10e-6 + 1e3/10e9)", "2 (p - 1) = 14 steps in a row, each with the latency of a message and 1 kB."
        ),
        wrong=(
            Answer("2*7/8*8e3/10e9", "That is the sheet's formula. It forgets the latency of 14 messages in a row."),
            Answer("2*10e-6", "There are two halves, but each has 7 steps, and each step waits for the one before."),
            Answer("7*(10e-6 + 1e3/10e9)", "That is the reduce-scatter half. The all-gather half takes 7 steps more."),
            Answer("14*(10e-6 + 8e3/10e9)", "Each message is a chunk of 1 kB, not the whole vector."),
        ),
        unit="s",
        p=8,
        within=0.02,
    ),
    Number(
        name="interview_ring_half",
        topic="cost",
        text='"Latency dominates small tensors, bandwidth large ones." Up to which size is a tensor small? A ring of '
        "8 ranks, "
        f"{WORLD}: at which size does the all_reduce spend half of its time on latency?",
        right=Answer(
            "p*10e-6*10e9",
            "Each step costs alpha + N/p x beta. The halves are equal when N = p x alpha/beta: 8 x 100 kB.",
        ),
        wrong=(
            Answer("10e-6*10e9", "That is for one message. The ring cuts the vector: its messages are N/8."),
            Answer("14*10e-6*10e9", "You compared the latency of 14 steps with N. But a rank sends 14 chunks: 1.75 N."),
            Answer("10e-6*10e9/p", "The other way round: a chunk has 100 kB, so the vector has 8 times that."),
        ),
        unit="bytes",
        p=8,
        within=0.02,
    ),
    Statement(
        name="interview_any_hardware",
        topic="in-network reduction",
        text="Whatever the hardware, each rank must send at least 2 (p - 1)/p N in an all_reduce.",
        true=False,
        why="First, the bound is for the busiest rank: a leaf of a tree sends only N. Second, it is for messages "
        "between ranks. A switch that adds (NVLS, SHARP) takes N from each rank, and sends the sum back.",
    ),
    Choose(
        name="interview_calls",
        topic="DDP",
        text='"DDP implements all-reduce as reduce-scatter + all-gather." You record which collectives torch calls '
        "for the gradients of DDP, and for the weights and gradients of FSDP. What do you see?",
        answers=(
            Answer(
                "both call reduce_scatter and all_gather",
                "Only FSDP does. DDP calls one collective for each bucket. What the library's ring does inside is "
                "not a call.",
            ),
            Answer(
                "both call all_reduce",
                "DDP does. FSDP keeps only a shard of the gradient, so it does not need the whole sum.",
            ),
            Answer(
                "DDP calls all_reduce; FSDP calls all_gather and reduce_scatter",
                "DDP passes each bucket to all_reduce. The library decides whether that is a ring of two halves.",
            ),
            Answer(
                "DDP calls reduce and broadcast; FSDP calls all_gather and reduce_scatter",
                "DDP broadcasts parameters once, and buffers. Reduce and broadcast would make a root the bottleneck.",
            ),
        ),
        right=2,
    ),
    Order(
        name="interview_fsdp_order",
        topic="ZeRO",
        text="On the whiteboard: one layer under FSDP, which frees the weights after the forward pass. Put the "
        "lines of one training step in order.",
        lines=(
            "all_gather the weights",
            "compute the forward pass",
            "free all but my shard",
            "all_gather the weights again",
            "compute the backward pass",
            "reduce_scatter the gradients",
            "optimizer step on my shard",
        ),
        why="The layer needs its whole weights twice, forward and backward. The optimizer needs only a shard of the "
        "gradient. That makes three collectives.",
        wrong=(
            Answer("1, 0", "The forward pass needs the whole weights, and each rank has a shard."),
            Answer("3, 2", "Why gather what you have not freed yet?"),
            Answer("4, 3", "The backward pass needs the whole weights, too, and they were freed."),
            Answer("5, 4", "There is no gradient before the backward pass."),
            Answer("6, 5", "Then the optimizer would use the gradient of this rank's data only."),
        ),
    ),
    Choose(
        name="interview_barriers",
        topic="barrier",
        text='A candidate calls `dist.barrier()` before each all_reduce of gradients, "so that all ranks are '
        'there". What do you say?',
        answers=(
            Answer(
                "useless: an all_reduce waits for every rank's vector anyway",
                "No rank can have the sum before the last vector has arrived. The barrier costs latency, and adds "
                "nothing.",
            ),
            Answer(
                "right: a rank that comes late would be missing in the sum",
                "all_reduce cannot leave a rank out: no rank has the sum before the last vector has arrived.",
            ),
            Answer(
                "right for NCCL, where the call returns at once",
                "The call returns, but on the GPU the sum is finished only when all vectors have arrived. Whatever "
                "uses the sum waits for it.",
            ),
            Answer(
                "wrong: barriers in a loop end in a deadlock",
                "Not if all ranks call them equally often, as they do here. They only cost time.",
            ),
        ),
        right=0,
    ),
    Number(
        name="interview_overlap",
        topic="estimate",
        text="`work = dist.all_reduce(g, async_op=True)`, then 60 ms of backward pass that does not need g, then "
        "`work.wait()`. The all_reduce alone takes 80 ms. How long do the three lines take?",
        right=Answer(
            "80e-3",
            "The shorter one hides behind the longer. `wait` takes the 20 ms of the all_reduce that are left. (On NCCL "
            "the GPU's stream waits for them, and the CPU goes on.)",
        ),
        wrong=(
            Answer("140e-3", "That is one after the other, without async_op."),
            Answer("60e-3", "The sum is not there yet: `wait` blocks until the all_reduce is over."),
            Answer("20e-3", "That is `wait` alone. Before it come 60 ms of backward pass."),
        ),
        unit="s",
        within=0.05,
    ),
    Choose(
        name="interview_checkpoint",
        topic="broadcast",
        text="Rank 0 has read a checkpoint of 1 GB, which all 8 ranks need. Each has one NIC, 50 GB/s each "
        "way. Which of these three broadcasts do you take, and why?",
        answers=(
            Answer(
                "flat: one hop for every rank, so the lowest latency",
                "Latency hardly counts for 1 GB. Rank 0 sends seven gigabytes: 140 ms.",
            ),
            Answer(
                "a binomial tree: three steps instead of seven",
                "Three steps, and a whole gigabyte in each: 60 ms. Good for short vectors.",
            ),
            Answer(
                "scatter, then all_gather: chunks, so that all NICs work",
                "Each half takes 7/8 of a gigabyte: 35 ms together. The scatter sends each byte from rank 0 once, the "
                "tree three times.",
            ),
        ),
        right=2,
    ),
    Number(
        name="interview_mfu",
        topic="sizing",
        text="A model of 70 billion weights trains on 1,024 H100s, 989e12 operations a second each. You see 900,000 "
        "tokens a second. What is its MFU, as a share (0.5 is one half)?",
        right=Answer(
            "6*70e9*900e3/(1024*989e12)",
            "6 operations for each weight and token: 3.8e17 a second, of 1.01e18 that the GPUs could do: 37 %. (Llama "
            "3 reached 38 to 43 %.)",
        ),
        wrong=(
            Answer("2*70e9*900e3/(1024*989e12)", "2 operations are the forward pass alone. Backward takes 4 more."),
            Answer(
                "8*70e9*900e3/(1024*989e12)",
                "That counts the forward pass twice, as with recomputed activations. MFU counts what the model needs.",
            ),
            Answer("6*70e9*900e3/989e12", "That is how many GPUs at their peak would do the same. There are 1,024."),
        ),
        unit="",
        within=0.02,
    ),
    Choose(
        name="interview_mesh",
        topic="sizing",
        text="70 billion weights, 80 layers, on 512 H100s: 8 on NVLink in each machine, and a NIC of 50 GB/s for each "
        "GPU. A step has 512 sequences of 8,192 tokens. Which mesh do you try first? (Guess: you count it below.)",
        answers=(
            Answer(
                "FSDP over all 512",
                "Each GPU has a sequence of its own, and FSDP's 1.6 s hide behind 4.6 s of computing: counted below. "
                "It fits if activations are recomputed.",
            ),
            Answer(
                "Tensor parallel over 64, FSDP over 8",
                "Its all_reduces would leave the machine, and each layer waits for them.",
            ),
            Answer(
                "Tensor parallel over 8, FSDP over 64",
                "It works, with sequence parallel (without it the layer inputs alone take 86 GB). But its sends are "
                "not hidden, and each NIC still sends 52 GB: a GPU gathers only an eighth of the weights, but its "
                "neighbours in the machine need other eighths. Take it when there are fewer sequences than GPUs.",
            ),
            Answer(
                "Tensor parallel over 8, a pipeline of 64 stages",
                "80 layers cannot be divided evenly among 64 stages. Some have two layers, and all others wait for "
                "them. And with 512 sequences the bubble is 11 %.",
            ),
        ),
        right=0,
    ),
    Number(
        name="interview_decode",
        topic="inference",
        text="A model of 80 layers serves one request on 8 GPUs, tensor parallel: two all_reduces of 16 kB in each "
        "layer, for each token. NCCL takes a ring with LL: 6.6 microseconds to start a call, then 14 steps of 0.6; the "
        "bytes hardly count. How long do the all_reduces of one token take?",
        right=Answer(
            "80*2*(6.6e-6+14*0.6e-6)",
            "160 calls of 15 microseconds: 2.4 ms, for every token. That is why servers have one-shot kernels: each "
            "GPU writes to all others at once, and waits once.",
        ),
        wrong=(
            Answer("80*2*14*0.6e-6", "Those are the steps alone. To start 160 calls takes 1.1 ms more."),
            Answer(
                "80*2*(6.6e-6+0.6e-6)", "That is one step a call, about what a one-shot kernel needs. A ring has 14."
            ),
            Answer(
                "80*(6.6e-6+14*0.6e-6)",
                "That is one all_reduce for each layer. There are two: one after attention, one after the MLP.",
            ),
            Answer("2*(6.6e-6+14*0.6e-6)", "That is one layer."),
        ),
        unit="s",
        within=0.03,
    ),
    Choose(
        name="interview_context",
        topic="long context",
        text="A text of a million tokens on 32 GPUs in 4 machines. 64 query heads, 8 heads of keys and values. How do "
        "you cut attention, which is causal?",
        answers=(
            Answer(
                "Ulysses over all 32: two query heads on each",
                "8 heads of keys and values do not divide among 32 GPUs: each would have to be copied to four.",
            ),
            Answer(
                "Ulysses over the 8 GPUs of a machine, a zig-zag ring over the machines",
                "8 KV heads on 8 GPUs, over NVLink. Between machines only keys and values travel, hidden behind "
                "computing, and zig-zag gives all ranks the same number of scores.",
            ),
            Answer(
                "A ring over all 32, in the order of the text",
                "The last rank has 63 times as many scores as the first, and all wait for it.",
            ),
        ),
        right=1,
    ),
)
