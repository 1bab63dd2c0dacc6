"""The questions of chapter 13: matrices cut by columns and rows, f and g, bytes of a layer, and who goes inside."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="tp_row",
        topic="tensor parallel",
        text="Now A is cut by rows. Rank r holds a quarter of the rows of A, and the quarter of x's columns that "
        "belongs to them. What is `x_r @ A_r`?",
        answers=(
            Answer("A quarter of the columns of y", "That is what columns of A give. Here A_r has all columns of A."),
            Answer("A quarter of the rows of y", "A row of y is a token, and every rank has all tokens."),
            Answer(
                "A matrix as large as y, but only a partial sum",
                "Each number of y is a sum over the rows of A. Rank r has added up its quarter of that sum.",
            ),
            Answer("y itself", "Then three of the four ranks would have nothing to do. Each adds up a quarter only."),
        ),
        right=2,
    ),
    Number(
        name="tp_mlp_calls",
        topic="tensor parallel",
        text="`y = relu(x @ A) @ B`, with A cut by columns and B by rows. How many collectives does the forward pass "
        "need?",
        right=Answer(
            "1", "Each rank's columns of h are exactly the input of its rows of B. Only the final result is a sum."
        ),
        wrong=(
            Answer("0", "Each rank ends with one part of a sum, as large as y. These parts have to be added up."),
            Answer(
                "2",
                "One for each matrix would be right if h had to be whole in between. B's rows need only the rank's own "
                "part of h.",
            ),
            Answer("p", "All ranks take part in the same call: it counts once."),
        ),
        unit="collectives",
        p=4,
    ),
    Choose(
        name="tp_order",
        topic="tensor parallel",
        text="Why do we not cut A by rows and B by columns?",
        answers=(
            Answer(
                "relu needs the finished sum",
                "x_r @ A_r is a part of a sum, and relu of a sum is not the sum of the relus. You would have to "
                "all-reduce h before relu, and h is four times as wide as y in most models.",
            ),
            Answer(
                "The shapes do not fit",
                "They do. x would be cut by columns, and y would come out cut by columns.",
            ),
            Answer(
                "Each rank would hold more numbers of A and B",
                "A quarter is a quarter, whichever way it is cut.",
            ),
            Answer(
                "It is the same, and a matter of taste",
                "It is not: with A by rows, each rank has only a part of a sum when relu comes.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="tp_backward",
        topic="tensor parallel",
        text="Each rank has the gradient of y and goes back through its own B_r, relu and A_r. What does it get for "
        "the gradient of x?",
        answers=(
            Answer(
                "The whole gradient: x is whole on every rank",
                "x is whole, but the rank goes back through its own columns of A alone.",
            ),
            Answer(
                "A quarter of its columns",
                "x @ A_r uses every column of x, so every column gets a gradient, though not all of it.",
            ),
            Answer(
                "A matrix as large as x, but only a partial sum",
                "x went to all four pieces, so its gradient is the sum of what comes back from them.",
            ),
            Answer("Nothing: x is no weight", "x is the output of the layers before, and they need its gradient."),
        ),
        right=2,
    ),
    FindLine(
        name="tp_bias",
        topic="tensor parallel",
        text="A colleague's layer on four ranks; A and b1 are cut by columns, B by rows, b2 is whole on every rank. It "
        "trains, but its first loss is not that of the unsharded model. Which line is wrong?",
        source="""x = F.apply(x)
h = torch.relu(x @ A + b1)
y = h @ B + b2
return G.apply(y)""",
        right=(3,),
        why="G adds up four copies of b2. b2 belongs after G: G.apply(h @ B) + b2. (Where b2 starts at zero, as in "
        "Megatron-LM, the first loss is right. Then the bias learns four times as fast.)",
        wrong=(
            Answer("1", "F does nothing forward, and the first loss needs only the forward pass."),
            Answer("2", "b1 is cut as the columns of A are: each rank adds its own part, once."),
            Answer("4", "G is where it should be. Look at what it adds up."),
        ),
    ),
    Choose(
        name="tp_drift",
        topic="tensor parallel",
        text="A layer before the block has a learned number, `scale`, and every rank has a copy of it. A colleague "
        "forgets F. What will happen?",
        answers=(
            Answer("The first loss is wrong", "F does nothing forward. The first loss is right, on all ranks."),
            Answer("An error: the gradients do not fit", "They have the right shapes, and no rank compares numbers."),
            Answer(
                "Nothing: x is the same on all ranks",
                "x is the same. Its gradient is not: each rank has gone back through its own piece.",
            ),
            Answer(
                "The copies of `scale` drift apart",
                "Each rank gets its own part of the gradient of x, and updates its copy with it.",
            ),
        ),
        right=3,
    ),
    Number(
        name="tp_layer_bytes",
        topic="estimate",
        text="A layer is attention and an MLP, each with a column-parallel and a row-parallel part. 4,096 tokens, "
        "hidden size 8,192, 2 bytes a number, 8 GPUs, ring. How many bytes does each GPU send for one layer in one "
        "step, forward and backward?",
        right=Answer(
            "4*2*(p-1)/p*4096*8192*2",
            "Four all_reduces, two forward and two backward, of N = 4096 x 8192 x 2 = 67 MB. A ring sends "
            "2 (p - 1)/p N for each: 470 MB.",
        ),
        wrong=(
            Answer(
                "2*2*(p-1)/p*4096*8192*2",
                "That is half: the forward pass alone, or one half of the ring in each all_reduce.",
            ),
            Answer("4*4096*8192*2", "Four times N. A ring sends 2 (p - 1)/p N in each all_reduce, 1.75 N here."),
            Answer(
                "2*(p-1)/p*4096*8192*2", "That is one all_reduce. There is one for each of the two blocks, each way."
            ),
        ),
        unit="bytes",
        p=8,
        within=0.03,
    ),
    Statement(
        name="tp_sequence",
        topic="tensor parallel",
        text="On rings, the reduce_scatter and the all_gather in the table send more bytes than the all_reduce that "
        "they replace.",
        true=False,
        why="An all_reduce is a reduce_scatter and an all_gather. Sequence parallel does the first half before the "
        "layer norm, and the second after it.",
    ),
    Number(
        name="tp_factor",
        topic="mesh",
        text="Leave out computing, and add up the time of every all_reduce in one step. How many times as long is it "
        "in layout `outer` as in layout `inner`? Within 30 % is right.",
        right=Answer(
            "13.7",
            "In `inner` 65 ms for tensor parallel and 28 for the gradients, in `outer` 1,282 and 2: nearly 14 times.",
        ),
        wrong=(
            Answer("1", "The calls and their bytes are the same, but not the wires that they go over."),
            Answer(
                "2",
                "Most calls, and the long ones, are those of tensor parallel: they now go over wires 20 times slower.",
            ),
            Answer(
                "20",
                "The wires differ by 20, but the gradients go over the slow ones when tensor parallel does not.",
            ),
        ),
        unit="times",
        within=0.3,
    ),
    Choose(
        name="tp_choose",
        topic="mesh",
        text="A model needs at least 8 GPUs for its weights, and your machines have 4 GPUs each. You have 8 machines, "
        "and a step has only 8 sequences. What do you try first?",
        answers=(
            Answer(
                "Tensor parallel over 8",
                "Every one of its calls would wait for the network, and the layer waits for each of them.",
            ),
            Answer(
                "Data parallel over 32",
                "Each of the 32 would need the whole model, and it does not fit.",
            ),
            Answer(
                "Tensor parallel over 32",
                "Each GPU would compute very little, and send nearly as much as with 8, through the slow NICs.",
            ),
            Answer(
                "Tensor parallel over 4, and the rest between the machines by sharding or a pipeline",
                "Tensor parallel stays on the fast wires. What goes between the machines is small, or can be "
                "sent early. (With a sequence for each GPU, and enough tokens in it, try FSDP over all 32 first.)",
            ),
        ),
        right=3,
    ),
    Statement(
        name="tp_myth_batch",
        topic="tensor parallel",
        text="All ranks of a tensor-parallel group must be given the same batch.",
        true=True,
        why="They compute pieces of one and the same layer. With different batches the row-parallel sum adds up parts "
        "of different outputs, and no error is raised.",
    ),
    Statement(
        name="tp_myth_row_backward",
        topic="tensor parallel",
        text="With sequence parallel, a row-parallel layer calls reduce_scatter in the backward pass.",
        true=False,
        why="It does so forward. Backward it is the other way round: each rank has the gradient of its own tokens, and "
        "an all_gather brings those of all. (Without sequence parallel: an all_reduce forward, nothing backward.)",
    ),
    Number(
        name="tp_bound",
        topic="roofline",
        text="FSDP over machines of 8 H100s. A GPU computes 989e12 operations a second, and its NIC sends 50e9 bytes a "
        "second. From how many tokens per GPU and micro-batch (one forward and backward pass) does computing take "
        "longer than sending?",
        right=Answer(
            "989e12/(8*50e9)",
            "Its NIC sends 6 Psi / 8 bytes. 6 Psi x tokens / C = 6 Psi / (8 W), so tokens = C / (8 W): about 2,500. "
            "With fewer, the GPU waits for its NIC. (Gradients summed in float32, as in chapter 12's policy, make it "
            "8 Psi / 8 bytes: 3,300 tokens.)",
        ),
        wrong=(
            Answer(
                "989e12/50e9",
                "That sends all the bytes through one NIC. There are eight rings, so each NIC carries an eighth.",
            ),
            Answer("989e12/(8*50e9)/6", "6 operations per weight and token, 6 bytes per weight: the sixes cancel."),
            Answer("989e12/(8*50e9)*2/3", "That is plain data parallel, which sends 2 times 2 bytes for each weight."),
            Answer("989e12/(8*50e9)*3", "3 times 2 bytes are 6 bytes for each weight, against 6 operations a token."),
        ),
        unit="tokens",
        within=0.05,
    ),
)
