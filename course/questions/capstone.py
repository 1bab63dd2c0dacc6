"""The questions of chapter 19: what is cut, copied and averaged on a mesh, and what a step of a GPT sends and takes."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Number(
        name="cap_first_loss",
        topic="estimate",
        text="A GPT that has learned nothing gives each of 32 characters about the same probability. Its loss is the "
        "mean of -ln(probability of the right character). How large is it?",
        right=Answer("3.466", "Each character has the probability 1/32, and -ln(1/32) = ln 32 = 3.47."),
        wrong=(
            Answer("5", "That is log2 of 32, in bits. The loss takes the natural logarithm: 5 x 0.693."),
            Answer("1/32", "That is the probability. The loss is minus its logarithm."),
            Answer("32", "That is the number of characters. Take its logarithm."),
            Answer("1", "A loss is not the share of wrong guesses: it can be larger than 1. Here it is -ln(1/32)."),
        ),
        unit="nats",
        within=0.02,
    ),
    Choose(
        name="cap_qkv",
        topic="tensor parallel",
        text="Many GPTs keep Q, K and V side by side in one matrix of 64 x 192: first 64 columns of Q, then 64 of "
        "K, then 64 of V. You cut it by columns into two halves, one for each rank. What does rank 0 get?",
        answers=(
            Answer(
                "All of Q and half of K",
                "These are the first 96 columns. Rank 0 cuts its result into three parts of 32 columns, so its K is "
                "in fact the second half of Q. Every shape fits, so no error is raised.",
            ),
            Answer(
                "Two heads of each of Q, K and V",
                "That would be columns 0 to 31 of each of the three, which do not lie side by side.",
            ),
            Answer("An error: the heads do not fit", "96 columns are three times 32: every shape fits."),
            Answer(
                "Half of the rows of all three",
                "Cut by columns, each rank keeps all rows.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="cap_who_averages",
        topic="mesh",
        text="Rank 0 holds the left half of a matrix. With which ranks must it average the gradient of that half?",
        answers=(
            Answer("Rank 1", "Rank 1 holds the right half: other weights, with gradients of their own."),
            Answer("Rank 2", "Rank 2 holds the same half, and was trained on other text."),
            Answer(
                "Ranks 1, 2 and 3", "Ranks 1 and 3 hold the right half. The mean of two different halves is useless."
            ),
            Answer(
                "None: its half is its own", "Rank 2 has the same half. If the two do not average, they drift apart."
            ),
        ),
        right=1,
    ),
    Statement(
        name="cap_bits",
        topic="rounding",
        text="After ten steps the pieces on the four ranks are, bit for bit, the weights that one process gets.",
        true=False,
        why="The same numbers are added, but in another order: each rank adds its own part first. So the last "
        "digits differ.",
    ),
    Statement(
        name="cap_copies",
        topic="rounding",
        text="Ranks 0 and 2 hold the same piece. After ten steps it is still the same on both, bit for bit.",
        true=True,
        why="They start with the same bits, and in every step they get the same sum from the ring, where each chunk "
        "is added up once and then copied.",
    ),
    FindLine(
        name="cap_f_before_norm",
        topic="diagnose",
        text="A colleague's layer, on your mesh. The first loss is right, and so is the gradient of x. After some "
        "steps the weights differ from those of one process. Which line is wrong?",
        source="""y = norm(x) * w["norm1", i]
x = x + g(attention(f(y), w, i))
y = norm(f(x)) * w["norm2", i]
z = g(mlp(y, w, i))
x = x + z + w["bias", i]""",
        right=(3,),
        why="The backward pass reaches norm2 before f. So norm2 gets only the part of the gradient that comes from "
        "this rank's pieces, and its copies drift apart. Apply f last, just before the cut matrices.",
        wrong=(
            Answer("1", "Nothing is cut here. Its gradient is whole, because f comes after it, in line 2."),
            Answer("2", "f in front of the pieces, g behind them: as it should be."),
            Answer("4", "g adds up the parts, as it should. Look at where this y comes from."),
            Answer("5", "The bias comes after g: it is added once, and its gradient is whole."),
        ),
    ),
    Choose(
        name="cap_gradients",
        topic="bytes",
        text="The model has 105,408 weights. Each rank holds 49,408 of them in its halves of cut matrices, and 6,592 "
        "as copies. Which gradients must it average with the other replica?",
        answers=(
            Answer(
                "All 105,408",
                "Half of each cut matrix is on the other rank of its tensor group. That rank averages it.",
            ),
            Answer(
                "The 49,408 in pieces",
                "The 6,592 agree only inside the tensor group, which has read the same text. The other replica "
                "has read other text.",
            ),
            Answer(
                "The 6,592 in copies",
                "The other replica has the same pieces, and has read other text.",
            ),
            Answer("All 56,000 that it trains", "The other replica trains the same 56,000, on other text."),
        ),
        right=3,
    ),
    Number(
        name="cap_tokens_per_second",
        topic="estimate",
        text="Two machines of two ranks; 20 MB/s inside, 0.5 MB/s between. A step trains 512 tokens. In it a rank "
        "all-reduces 8 times 65,536 bytes inside its machine, and once 224,000 bytes between the machines. How many "
        "tokens a second, if nothing else took time? Within 15 % is right.",
        right=Answer(
            "512/(8*65536/20e6+224000/0.5e6)",
            "A ring of two sends N: 8 x 3.3 ms inside and 448 ms between. 512 tokens in 0.474 s.",
        ),
        wrong=(
            Answer(
                "256/(8*65536/20e6+224000/0.5e6)",
                "That is half: one replica alone, or a ring of two that sends 2 N instead of N.",
            ),
            Answer(
                "1024/(8*65536/20e6+224000/0.5e6)",
                "The two ranks of a replica train on the same tokens: count them once.",
            ),
            Answer("512/(8*65536/20e6)", "That is tensor parallel alone. The gradients take 448 ms more."),
        ),
        unit="tokens/s",
        within=0.15,
    ),
    Number(
        name="cap_score",
        topic="overlap",
        text="2 MB/s inside a machine, 1 MB/s between. The forward pass all-reduces 4 x 65,536 bytes inside, and so "
        "does the backward pass. 224,000 bytes of gradients go between, over other wires. Leave out "
        "computing and latency. How many seconds can overlap save?",
        right=Answer(
            "4*65536/2e6",
            "The backward pass takes 4 x 33 ms, and that much of the 224 ms of gradients can hide behind it. In the "
            "forward pass there are no gradients yet.",
        ),
        wrong=(
            Answer("224000/1e6", "All gradients would have to hide, and the backward pass takes only 131 ms."),
            Answer("8*65536/2e6", "That counts the forward pass too, and there are no gradients then."),
            Answer("224000/1e6-4*65536/2e6", "That is what stays exposed. The rest of the 224 ms hides."),
        ),
        unit="s",
        within=0.1,
    ),
    Choose(
        name="cap_bucket",
        topic="overlap",
        text="The same network; each of the two steps of a ring has 4 ms of latency. Which training step is faster?",
        answers=(
            Answer(
                "24 small all_reduces, each started in a hook",
                "They hide behind the backward pass, and that saves about 150 ms. But 23 more calls cost 23 x 8 ms of "
                "latency.",
            ),
            Answer(
                "One large all_reduce, when the backward pass is over",
                "It hides nothing, but it pays for latency once: 184 ms less. Larger buckets *and* hooks beat both.",
            ),
            Answer("Both alike: they send the same bytes", "The bytes are alike. But one pays for latency 24 times."),
        ),
        right=1,
    ),
    Choose(
        name="cap_pipeline",
        topic="bytes",
        text="Eight ranks, 2 x 2 x 2: layer 0 on one machine, layer 1 on another. After layer 0 both ranks of a "
        "tensor group have the whole x, and both ranks of the next stage need it. Each rank has its own NIC to the "
        "other machine. What is fastest?",
        answers=(
            Answer(
                "Each rank sends all of x to its partner", "It works, but the same x goes between the machines twice."
            ),
            Answer(
                "Rank 0 sends all of x, and its partner passes it on to the other rank",
                "Now x crosses once, but one NIC carries all of it while the other has nothing to do.",
            ),
            Answer(
                "An all_reduce of x over all four",
                "There is nothing to add up: x is finished. An all_reduce would send more, in both directions.",
            ),
            Answer(
                "Each rank sends half of x, and the receivers all_gather it",
                "x crosses once, half on each NIC, and is put together on the fast wires inside. "
                "Megatron-LM can do this.",
            ),
        ),
        right=3,
    ),
    Statement(
        name="cap_myth_world",
        topic="data parallel",
        text="Embeddings and norms are copied to all four ranks. Averaging their gradients over all four ranks "
        "instead of two gives the same, up to rounding.",
        true=True,
        why="Ranks 0 and 1 have the same gradient a, ranks 2 and 3 the same b. The mean of a, a, b and b is the "
        "mean of a and b. Four ranks only send more.",
    ),
    Statement(
        name="cap_myth_scale",
        topic="data parallel",
        text="You divide the gradients by 4, although the data group has 2 ranks, and you do not clip. You train with "
        "Adam. The loss shows this mistake, because each step is half as long.",
        true=False,
        why="Adam divides each gradient by a running average of its size, so a factor cancels. The loss looks right. "
        "To find it, compare the gradients with those of one process.",
    ),
)
