"""The questions of chapter 14: who waits in a pipeline, what a stage keeps, what it sends, and where it goes."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

SCALED = """\
for x, target in micro_batches:
    y = stage(x)
    loss = ((y - target) ** 2).mean()
    loss.backward()
    dist.isend(x.grad, rank - 1).wait()
optimizer.step()
"""

QUESTIONS = (
    Number(
        name="pipe_busy",
        topic="pipeline",
        text="Four ranks hold a quarter of the layers each. One batch goes through, forward and backward. How many of "
        "the ranks compute at any one time?",
        right=Answer("1", "A stage needs what the stage before it has computed. All others wait."),
        wrong=(
            Answer("p", "Rank 1 has nothing to compute with before rank 0 has finished. There is one batch only."),
            Answer("2", "Forward, rank 2 starts when rank 1 has finished. Backward it is the same, the other way."),
            Answer("p-1", "For that, several batches would have to be on their way. There is one."),
        ),
        unit="ranks",
        p=4,
    ),
    Number(
        name="pipe_slots",
        topic="bubble",
        text="8 micro-batches go forward through 4 stages. Each stage takes one slot of time for a "
        "micro-batch. After how many slots has the last stage finished the last micro-batch?",
        right=Answer(
            "8+p-1", "The last stage starts after p - 1 = 3 slots, and then has a micro-batch in each of the next 8."
        ),
        wrong=(
            Answer("8*p", "That is one micro-batch after the other. Stage 0 starts the second when it is free."),
            Answer("8", "The last stage cannot start in the first slot: nothing has reached it yet."),
            Answer("8+p", "Three stages come before the last one, so it starts after 3 slots, not after 4."),
            Answer("8/p", "Every stage works on all 8 micro-batches: each has a part of the model, not of the data."),
        ),
        unit="slots",
        p=4,
    ),
    Number(
        name="pipe_how_many",
        topic="bubble",
        text="8 stages. How many micro-batches do you need so that the bubble is at most a tenth of the time?",
        right=Answer("9*(p-1)", "7 / (m + 7) is a tenth when m + 7 is 70."),
        wrong=(
            Answer(
                "10*(p-1)",
                "With m = 70 the bubble is 7 of 77 slots, 9 %. You need m + 7 = 70.",
            ),
            Answer("10*p", "The bubble is p - 1 slots, not p, and it is a tenth of the whole time, m + p - 1."),
            Answer("p", "With as many micro-batches as stages nearly half of the time is bubble: 7 of 15 slots."),
        ),
        unit="micro-batches",
        p=8,
    ),
    Number(
        name="pipe_kept",
        topic="activations",
        text="1F1B on 4 ranks, 10 micro-batches. What is the largest number of micro-batches whose activations rank 0 "
        "keeps at the same time?",
        right=Answer(
            "p",
            "Micro-batch 1 goes through p stages and back. p micro-batches on their way, one for each stage, keep all "
            "stages busy.",
        ),
        wrong=(
            Answer("10", "That is GPipe, which begins the backward pass when all forward passes are over."),
            Answer("1", "That is the last rank, which can go back at once. Rank 0 waits for the way there and back."),
            Answer("p-1", "It makes p forward passes before the first gradient arrives."),
            Answer("2*p", "While a micro-batch goes to the end and back, rank 0 makes p forward passes, not 2 p."),
        ),
        unit="micro-batches",
        p=4,
    ),
    Choose(
        name="pipe_blocking",
        topic="deadlock",
        text="The same 1F1B, with a blocking `send` instead of `isend`. GPipe has run with it. What will happen?",
        answers=(
            Answer(
                "A deadlock, and all four ranks are in it",
                "Rank 2 sends its second output to rank 3, which sends its first gradient to rank 2: neither "
                "receives. Ranks 0 and 1 send to ranks that no longer receive.",
            ),
            Answer(
                "A deadlock between ranks 2 and 3 only; ranks 0 and 1 finish",
                "Ranks 0 and 1 need gradients that come through rank 2, and rank 2 takes no more activations.",
            ),
            Answer(
                "The same result, only slower",
                "That is what happens in GPipe, where all messages go the same way. In 1F1B they cross.",
            ),
            Answer(
                "Wrong gradients: activations and gradients get mixed up",
                "Messages from one rank to another stay in their order, and these come from different neighbours.",
            ),
        ),
        right=0,
    ),
    FindLine(
        name="pipe_scaled",
        topic="gradients",
        text="This is a colleague's last stage, in a step of m micro-batches. With plain SGD it trains, but as "
        "if the learning rate were m times as large. Which line is wrong?",
        source=SCALED,
        right=(3,),
        why="Line 3 is the mean over one micro-batch. backward() adds the gradients of all m up, and m means together "
        "are m times the mean of the batch. Divide by m here. (Adam would hide the factor.)",
        wrong=(
            Answer("1", "All micro-batches of the batch, one after the other: as it should be."),
            Answer("2", "That is the forward pass of this stage."),
            Answer("4", "backward() adds to what is in .grad already: that is how micro-batches become one batch."),
            Answer("5", "The stage before needs the gradient of its output, and that is x.grad."),
            Answer("6", "One step for the whole batch. After each micro-batch it would be another training."),
        ),
    ),
    Number(
        name="pipe_boundary_bytes",
        topic="estimate",
        text="A batch of 4,096 tokens, hidden size 8,192, 2 bytes a number, cut in 16 micro-batches. How many bytes "
        "does a stage in the middle send in one step, to both neighbours together?",
        right=Answer(
            "2*4096*8192*2", "The batch's activations to the next stage, as many gradients to the one before."
        ),
        wrong=(
            Answer("4096*8192*2", "That is one direction. The gradient of an activation is as large as it is."),
            Answer("2*4096*8192*2/16", "That is one micro-batch. All 16 go through."),
            Answer("2*16*4096*8192*2", "The 4,096 tokens are cut in 16 micro-batches: together they are one batch."),
            Answer("2*8192*8192*2", "Weights stay where they are. What travels is tokens times hidden size."),
        ),
        unit="bytes",
        within=0.02,
    ),
    Choose(
        name="pipe_where",
        topic="mesh",
        text="64 GPUs, 8 in a machine, on a slow network between the machines. The model needs 16 GPUs for its "
        "weights. What do you try first?",
        answers=(
            Answer(
                "Tensor parallel over 16, two machines together",
                "Every layer would all-reduce its activations over the slow network, and wait for it.",
            ),
            Answer(
                "Pipeline over the 8 of a machine, tensor parallel over 2 machines",
                "The wrong way round: what sends most goes through the slowest wires.",
            ),
            Answer(
                "FSDP over all 64",
                "The simplest, and on a fast network a good first try (the interview has such a case). But here each "
                "step would gather all weights twice between the machines. A "
                "pipeline sends the far smaller activations.",
            ),
            Answer(
                "Tensor parallel over the 8 of a machine, a pipeline of 2 machines, 4 copies",
                "What sends most stays inside. A boundary between stages sends one activation, and the four "
                "copies wait for each other once a step.",
            ),
        ),
        right=3,
    ),
    Statement(
        name="pipe_myth_bubble",
        topic="bubble",
        text="With the same number of micro-batches, 1F1B has a smaller bubble than GPipe.",
        true=False,
        why="Both fill and drain the same pipe, forward and backward. 1F1B keeps fewer activations, so you can afford "
        "more micro-batches, and these make the bubble smaller.",
    ),
    Statement(
        name="pipe_myth_batch_norm",
        topic="gradients",
        text="If the model has a batch norm, GPipe does not compute the same gradients as one process.",
        true=True,
        why="A batch norm takes mean and variance of what it sees, and it sees a micro-batch. Layer norm looks at each "
        "token alone, and does not notice.",
    ),
)
