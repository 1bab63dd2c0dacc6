"""The questions of chapter 12: what a rank keeps at each stage of ZeRO, what it sends for it, and what may be cut."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

CLIPPED = """\
dist.reduce_scatter_single(shard.grad, gradient(model, x))
shard.grad /= world_size
norm = shard.grad.norm()
shard.grad *= min(1.0, 1.0 / float(norm))
adam.step()
dist.all_gather_single(w, shard)
"""

QUESTIONS = (
    Number(
        name="sharding_bytes_per_parameter",
        topic="memory",
        text="Four ranks train one model with Adam, all in float32, and all-reduce their gradients. How many bytes "
        "does each rank keep for one parameter: its weight, its gradient and the state of Adam?",
        right=Answer("16", "4 for the weight, 4 for the gradient, and 8 for Adam's two averages."),
        wrong=(
            Answer("4", "That is the weight alone. It has a gradient, and Adam keeps two numbers of its own."),
            Answer("8", "Weight and gradient. Adam keeps two more numbers for each parameter."),
            Answer("12", "Adam keeps two averages, one of the gradient and one of its square. That is 8, not 4."),
        ),
        unit="bytes",
        p=4,
    ),
    Choose(
        name="sharding_zero1_needs",
        topic="ZeRO",
        text="Only rank r has the Adam state of chunk r, so only rank r can update chunk r of the weights. What is the "
        "cheapest way to take a step?",
        answers=(
            Answer(
                "all_reduce the gradients, and nothing after the update",
                "Then rank 0 has new weights in chunk 0, and old ones in the rest. Every other rank has its new "
                "chunk in another place, so the models drift apart.",
            ),
            Answer(
                "all_gather the Adam state, then update everywhere",
                "Then every rank holds all of the state again, if only for a moment. The state never has to travel.",
            ),
            Answer(
                "all_reduce the gradients, update, all_gather the weights",
                "It would be right. But rank r uses one chunk of the sum and throws the others away. It sends three "
                "times (p - 1)/p N instead of twice.",
            ),
            Answer(
                "reduce_scatter the gradients, update, all_gather the weights",
                "Rank r needs the sum of chunk r and no other. Afterwards each rank has one new chunk, and all ranks "
                "need all of them.",
            ),
        ),
        right=3,
    ),
    Number(
        name="sharding_zero1_bytes",
        topic="memory",
        text="ZeRO-1 on 4 ranks, float32. How many bytes does a rank keep for each parameter of the model now?",
        right=Answer("4 + 4 + 8/p", "Weight and gradient are still whole: 8. Of Adam's 8 it keeps a quarter: 2."),
        wrong=(
            Answer("16/p", "That would be everything cut in four. ZeRO-1 cuts the optimizer's state only."),
            Answer("8", "You forgot its quarter of the Adam state: 8/4 = 2 bytes more."),
            Answer("4 + 4/p + 8/p", "That would have the gradient cut as well, which is the next stage."),
            Answer("16", "That is plain data parallel, where each rank keeps all of Adam's state."),
        ),
        unit="bytes",
        p=4,
    ),
    Choose(
        name="sharding_zero2_peak",
        topic="ZeRO",
        text="The gradients of our model, weight and bias, in bytes: 64 and 64 of layer 1, 1,024 and 64 of layer "
        "2, 1,024 and 64 of layer 3; together 2,304. With ZeRO-2 on four ranks, how many bytes of gradients does a "
        "rank hold at most?",
        answers=(
            Answer("576", "That is what is left at the end, all the shards. But each gradient is whole for a moment."),
            Answer(
                "1,024",
                "The largest gradient is not alone: its own shard is there, too, and the shards of those before it.",
            ),
            Answer(
                "About 1,600",
                "The largest gradient is whole for a moment, beside its shard and the shards of those before it.",
            ),
            Answer("2,304", "That is ZeRO-1, with all gradients whole. Here each leaves as soon as it is ready."),
        ),
        right=2,
    ),
    Choose(
        name="sharding_hsdp",
        topic="ZeRO",
        text="HSDP on two machines: ranks 0 and 1 share one copy of the model, ranks 2 and 3 the other. What crosses "
        "between the machines in a forward and backward pass?",
        answers=(
            Answer(
                "each rank all-reduces the gradients of its half of the model",
                "Ranks 0 and 2 hold the same half and have seen other data, so they add up their gradients of it: half "
                "of Ψ.",
            ),
            Answer(
                "each rank gathers the weights: Ψ",
                "Ranks 0 and 1 together have all the weights, so they gather inside their machine.",
            ),
            Answer(
                "each rank all-reduces the gradients of the whole model",
                "First comes a reduce_scatter inside the machine. A rank keeps the gradients of its half only.",
            ),
            Answer(
                "nothing, since each machine has a whole copy",
                "Each machine has seen its own data only. Without messages the two copies would drift apart.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="sharding_no_sync",
        topic="ZeRO",
        text="Three micro-batches, with `set_requires_gradient_sync(False)` for the first two, every other option by "
        "default. What do a rank's all_gathers and reduce_scatters add up to?",
        answers=(
            Answer("9 Ψ", "That is without the switch: 3 Ψ for each micro-batch. Now gradients leave once."),
            Answer("7 Ψ", "Each micro-batch gathers all weights twice, 6 Ψ. The gradients leave once, 1 Ψ."),
            Answer("4 Ψ", "That is one gather of the weights for each micro-batch. By default there are two."),
            Answer("3 Ψ", "That is one micro-batch. The switch is about gradients: weights are gathered each time."),
        ),
        right=1,
    ),
    Choose(
        name="sharding_backward_of_gather",
        topic="ZeRO",
        text="In the forward pass an all_gather makes the whole weight out of p shards, on every rank. In the "
        "backward pass each rank finds a gradient of the whole weight, from its own data. How does rank r get the "
        "gradient of its shard?",
        answers=(
            Answer(
                "It cuts piece r out of its own gradient",
                "That is its own data's part only. All the other ranks have used its shard, too.",
            ),
            Answer(
                "An all_gather of the gradients",
                "It brings p whole gradients to each rank, which would still have to be added up: p times too much.",
            ),
            Answer(
                "An all_reduce of the gradients",
                "The right numbers, and many more than it needs: it keeps piece r of the sum.",
            ),
            Answer(
                "A reduce_scatter of the gradients",
                "Every rank has used shard r, so its gradient is a sum over all ranks; and only rank r needs it.",
            ),
        ),
        right=3,
    ),
    Number(
        name="sharding_zero3_calls",
        topic="ZeRO",
        text="Three linear layers, each cut in p shards; a whole layer is thrown away right after its forward pass. "
        "How many collectives does each rank call in one forward and backward pass?",
        right=Answer("9", "For each layer one all_gather forward, one more backward, and one reduce_scatter."),
        wrong=(
            Answer("6", "The backward pass needs the weights once more, and they have been thrown away: 3 more."),
            Answer("3", "That is the forward pass alone."),
            Answer(
                "12", "A gradient is reduce-scattered once. Each rank keeps its piece of it, so no rank gathers it."
            ),
        ),
        unit="collectives",
        p=4,
    ),
    Number(
        name="estimate_sharded_memory",
        topic="estimate",
        text="A model has 8 billion parameters. Weights and gradients take 2 bytes each; the optimizer takes 12: a "
        "weight in float32 and Adam's two averages. What does each of 16 GPUs keep under ZeRO-2?",
        right=Answer("(2+14/p)*8e9", "Whole weights: 16 GB. A sixteenth of gradients and optimizer: 14 x 8 / 16 = 7."),
        wrong=(
            Answer("16*8e9", "That is plain data parallel. ZeRO-2 cuts the gradients and the optimizer's state."),
            Answer("(4+12/p)*8e9", "That is ZeRO-1. ZeRO-2 cuts the gradients as well."),
            Answer("16/p*8e9", "That is ZeRO-3. In ZeRO-2 every GPU keeps all the weights."),
            Answer("(2+10/p)*8e9", "The optimizer takes 12 and the gradient 2 bytes: 14 are cut in 16."),
        ),
        unit="bytes",
        p=16,
        within=0.02,
    ),
    Choose(
        name="sharding_which_stage",
        topic="memory",
        text="The same model and 16 GPUs of 40 GB; activations need 9 GB. One backward pass per step, and the network "
        "is slow. What do you take?",
        answers=(
            Answer("Plain data parallel", "It keeps 16 bytes per parameter: 128 GB on every GPU."),
            Answer("ZeRO-1", "4 x 8 + 12 x 8 / 16 = 38 GB, and the activations do not fit beside them."),
            Answer("ZeRO-2", "23 GB and 9 GB of activations fit, and it sends no more than plain data parallel."),
            Answer(
                "ZeRO-3",
                "It fits with the most room, but it sends 1.5 times as much, on a slow network, for room that you do "
                "not need.",
            ),
        ),
        right=2,
    ),
    Statement(
        name="sharding_newton_schulz",
        topic="Muon",
        text="Each rank runs Newton-Schulz on its quarter of the rows. Put together, that is Newton-Schulz of the "
        "matrix.",
        true=False,
        why="Newton-Schulz makes rows perpendicular to each other. A rank does that to its own "
        "rows only: it does not have those of the other ranks.",
    ),
    FindLine(
        name="sharding_clipped",
        topic="ZeRO",
        text="ZeRO-1, and the gradient is clipped to norm 1. All ranks keep the same weights, but not those that "
        "a single process would get. Which line is wrong?",
        source=CLIPPED,
        right=(3,),
        why="Line 3 takes the norm of this rank's piece only: each piece shrinks by a different factor. The norm "
        "of all is the root of the sum of all squares: one all_reduce of one number (clip_norm, chapter 10).",
        wrong=(
            Answer("1", "reduce_scatter gives this rank the sum of its piece: that is what it needs."),
            Answer("2", "The sum over all ranks, divided by their number: the average, as it should be."),
            Answer("4", "With the right norm this line is right: min leaves a short gradient as it is."),
            Answer("5", "Adam works on each number alone, so it may see one piece only."),
            Answer("6", "Each rank has updated its piece, and needs all the others."),
        ),
    ),
    Statement(
        name="sharding_myth_zero2_bytes",
        topic="ZeRO",
        text="Four micro-batches per step: ZeRO-2 sends 2.5 times as many bytes as plain data parallel with no_sync.",
        true=True,
        why="ZeRO-2 reduce-scatters the gradients of each micro-batch and gathers the weights once: 4 + 1 = 5 times "
        "(p - 1)/p Psi. no_sync all-reduces once, which is 2. ZeRO-3 would send 12. With one micro-batch ZeRO-2 sends "
        "2, too.",
    ),
)
