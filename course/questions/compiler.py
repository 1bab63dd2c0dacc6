"""The questions of chapter 16: one program on many devices, what its text says, and where data lies."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="xla_devices",
        topic="compiler",
        text="You tell JAX to make 4 devices out of the CPU of your laptop. How many processes will you see?",
        answers=(
            Answer(
                "1",
                "One Python process compiles one program, and four threads run it. Several processes are "
                "possible, and come further down.",
            ),
            Answer(
                "4, one for each device",
                "That is how torch does it: one process, one rank. JAX needs no more than one.",
            ),
            Answer(
                "5: one for each device, and yours",
                "That is how %%ranks does it. JAX's devices are inside your process.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="xla_text_says",
        topic="compiler",
        text="`all-reduce(%param.1), replica_groups={{0,1,2,3}}, to_apply=%region_0.0`: what does this line decide?",
        answers=(
            Answer(
                "That a ring is used",
                "The line names no algorithm. That is picked when the program runs.",
            ),
            Answer(
                "How many messages are sent",
                "That depends on the algorithm, and the line names none.",
            ),
            Answer(
                "Which ranks take part, and what each of them has afterwards",
                "It has the groups, the operation and the function that combines two numbers. How the bytes travel "
                "is left open.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="xla_axis",
        topic="groups",
        text="A mesh of 2 x 2: the axes are `data` and `model`, rank r has row r // 2 and column r % 2. "
        '`psum(mine, "data")` runs along the axis `data`. Which groups will the program have?',
        answers=(
            Answer(
                "{0,2} {1,3}",
                "Along `data` the row changes and the column stays: 0 and 2 are in column 0, 1 and 3 in 1.",
            ),
            Answer("{0,1} {2,3}", "Ranks 0 and 1 have the same row. Along `data` the row is what changes."),
            Answer("{0,1,2,3}", 'That is psum over both axes: psum(mine, ("data", "model")).'),
            Answer("{0,3} {1,2}", "Ranks 0 and 3 differ in both: they lie on a diagonal."),
        ),
        right=0,
    ),
    Number(
        name="xla_calls",
        topic="compiler",
        text="The function calls psum and pmax four times in all, on two arrays. How many all-reduces does the "
        "compiled program have?",
        right=Answer(
            "1",
            "The maximum is not used, so it is dropped. `again` is `total`, so it is computed once. The sums of `a` "
            "and `b` have the same groups, so both travel in one all-reduce: a bucket, made by the compiler.",
        ),
        wrong=(
            Answer("4", "That is eager torch, which makes each call. A compiler may drop and join calls."),
            Answer("3", "The maximum is not used, and is dropped. But `again` is the same as `total`."),
            Answer("2", "`total` and `other` are needed. They have the same groups, so one all-reduce carries both."),
        ),
        unit="all-reduces",
        p=4,
    ),
    Choose(
        name="xla_data_parallel",
        topic="data parallel",
        text="The weights are the same on all ranks, the batch is cut into four. You ask for the gradient of "
        "the mean loss, and write no collective. What does the compiler put into the program?",
        answers=(
            Answer(
                "Nothing: each rank gets the gradient of its rows",
                "Then the ranks would differ, as in chapter 0. The function takes the mean over the whole batch, so "
                "its gradient is that of the whole batch.",
            ),
            Answer(
                "An all-gather of the batch",
                "It would be right, and each rank would do all of the work. The rows stay where they are.",
            ),
            Answer(
                "An all-reduce of the gradient",
                "Each rank has what its own rows add to the gradient. The gradient is the sum of these parts: an "
                "all-reduce, as in DDP.",
            ),
            Answer(
                "A broadcast of rank 0's gradient",
                "Rank 0 has seen only its own rows.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="xla_mlp",
        topic="tensor parallel",
        text="Now the first layer is cut by columns along `model`, the second by rows, and the batch along `data`, "
        "on the same 2 x 2 mesh. In which groups are the gradients of the weights summed?",
        answers=(
            Answer(
                "{0,1} {2,3}",
                "Ranks 0 and 1 hold different columns, so their gradients are for different weights. In these groups "
                "the row-parallel layer adds its outputs, in the forward pass.",
            ),
            Answer(
                "{0,2} {1,3}",
                "Ranks 0 and 2 have copies of the same columns, and have seen different rows of the batch.",
            ),
            Answer("{0,1,2,3}", "That would add gradients of different columns."),
            Answer(
                "None: each rank has its own part of the weights",
                "Along `model`, yes. But along `data` each part has two copies.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="xla_replicas",
        topic="compiler",
        text="A program of four replicas (`replica_count=4`) has two lines, and its `%region_0.1` adds: "
        "`%id = u32[] replica-id()` and `ROOT %sum = u32[] all-reduce(%id), replica_groups={}, to_apply=%region_0.1`. "
        "What does each replica return?",
        answers=(
            Answer(
                "6",
                "An empty list means one group of all, and their numbers are 0 to 3. In the programs of this chapter "
                "the first line is `partition-id()`: it is what `axis_index` becomes.",
            ),
            Answer(
                "Its own number", "That would be `replica_groups={{0},{1},{2},{3}}`. The list is empty, not the groups."
            ),
            Answer("4", "That counts the replicas. The line adds their numbers."),
            Answer("10", "That is 1 + 2 + 3 + 4. Replicas count from 0."),
        ),
        right=0,
    ),
    Number(
        name="estimate_compiled",
        topic="cost",
        text="In the program of a real training you read `bf16[8192,8192] all-reduce(...), "
        "replica_groups={{0,1,2,3,4,5,6,7}}`. On this machine an all_reduce among 8 GPUs has a busbw of 370 GB/s. "
        "How long does it take? (bf16: 2 bytes a number)",
        right=Answer(
            "2*8192*8192*2*(p-1)/p/370e9",
            "8192 x 8192 x 2 bytes are 134 MB. busbw counts 2(p-1)/p = 1.75 times that: 235 MB at 370 GB/s.",
        ),
        wrong=(
            Answer("2*8192*8192/370e9", "That is N / busbw. busbw counts 2(p-1)/p N, here 1.75 N."),
            Answer("4*8192*8192*2*(p-1)/p/370e9", "bf16 has 2 bytes, not 4."),
            Answer(
                "2*8192*8192*2*(p-1)/370e9",
                "2(p-1) N goes over all links together. busbw is about one rank's share, 1/p of it.",
            ),
        ),
        unit="s",
        p=8,
        within=0.05,
    ),
    FindLine(
        name="xla_wrong_axis",
        topic="tensor parallel",
        text="A colleague's training step, for `shard_map` as above, on the 2 x 2 mesh. `x` is cut along `data`, the "
        "columns of `w` along `model`. It runs, and learns nonsense. In the compiled program the gradients are "
        "summed in the groups {0,1} {2,3}. Which line is wrong?",
        source="""def step(w, x):
    def loss(w):
        return jnp.square(x @ w).mean(axis=0).sum()
    value, grad = jax.value_and_grad(loss)(w)
    grad = lax.pmean(grad, "model")
    value = lax.psum(lax.pmean(value, "data"), "model")
    return w - 0.1 * grad, value""",
        right=(5,),
        why="{0,1} have the same rows and different columns of w: the line averages gradients of different weights. "
        'Copies of one part of w lie along the other axis: pmean(grad, "data").',
        wrong=(
            Answer("3", "The mean over this rank's rows, added up over its columns. Line 6 joins these parts."),
            Answer("4", "The gradient of this rank's columns over its rows: that is what has to be averaged."),
            Answer("6", "Rows are averaged along `data`, columns added up along `model`: that gives the whole loss."),
        ),
    ),
    Choose(
        name="xla_partial",
        topic="placement",
        text="Each rank holds a vector of N bytes that still has to be summed with the others' (Partial). Each "
        "wants only its part of the sum (Shard). Which collective is that?",
        answers=(
            Answer(
                "all_reduce, and then each keeps its part",
                "The result is right, but it sends twice as much: each rank also gets the parts that it throws away.",
            ),
            Answer("reduce_scatter", "It sums, and leaves each rank its part. Each rank sends (p-1)/p N."),
            Answer("all_gather", "It joins parts and adds nothing."),
            Answer(
                "no collective: each rank cuts out its part", "A part of one rank's vector is not a part of the sum."
            ),
        ),
        right=1,
    ),
    Choose(
        name="xla_product",
        topic="placement",
        text="On four ranks x is cut by columns, Shard(1), and w by rows, Shard(0). DTensor computes y = x @ w. What "
        "does it send, and how is y placed?",
        answers=(
            Answer(
                "x and w, by all_gather; y is Replicate",
                "Then each rank computes the whole product. It can do less: what do its own columns and rows give?",
            ),
            Answer(
                "y, by all_reduce; y is Replicate",
                "That comes when you ask for the sum. If you want a Shard of y, a reduce_scatter sends half as much.",
            ),
            Answer(
                "nothing; y is Shard(1)",
                "Each rank's product is as large as y: a term of the sum, not a part of y.",
            ),
            Answer(
                "nothing; y is Partial",
                "A rank's columns of x times its rows of w are one term of the sum. That is chapter 13's row-parallel "
                "layer, before its all_reduce.",
            ),
        ),
        right=3,
    ),
    Statement(
        name="xla_own_network",
        topic="compiler",
        text="As a rule a compiled program needs no communication library: the compiler generates the communication "
        "code itself.",
        true=False,
        why="You have seen JAX's processes connect with gloo. On NVIDIA GPUs XLA calls NCCL. The compiler decides "
        "what is called, and when. (On TPUs the compiler and the communication are in one library, libtpu. And Pallas "
        "or Triton kernels can send by themselves.)",
    ),
    Statement(
        name="xla_free",
        topic="placement",
        text="To go from Replicate to Shard, DTensor sends nothing.",
        true=True,
        why="Each rank has everything and keeps its part. The way back, Shard to Replicate, is an all_gather.",
    ),
    Statement(
        name="compile_ddp",
        topic="compiler",
        text="You compile a DDP model and turn this option on. The pass moves none of DDP's all_reduces.",
        true=True,
        why="By default DDP's hooks call all_reduce outside the graph, so the pass does not see it. The calls overlap "
        "in another way: torch.compile cuts the backward graph at DDP's buckets, and a bucket's all_reduce runs while "
        "the next piece computes.",
    ),
)
