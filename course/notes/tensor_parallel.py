"""Notes on chapter 13: matrices cut with chalk, and a drift without an error."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            8,
            "One matrix, cut in two ways",
            "Draw both cuts. `tp_row` on paper with a 2 x 2 matrix and two ranks: what exactly does each rank hold?",
        ),
        Part(
            7,
            "Two matrices, one after the other",
            "`tp_mlp_calls` and `tp_order`: what comes before relu in each case?",
        ),
        Part(
            9, "The way back: f and g", "`tp_backward`, then the table of f and g. Cover two of its four cells and ask."
        ),
        Part(
            7,
            "Diagnose: a layer in front of the block",
            "`tp_drift`. Chapter 0 with the same data on all ranks. How would you find it in a real run?",
        ),
        Part(4, "Bytes", "`tp_layer_bytes`: no weight appears in it."),
        Part(
            7,
            "When am I communication-bound?",
            "`tp_bound` on paper: bytes over W, operations over C, divide. Then the table of four: which rows are "
            "above 1?",
        ),
        Part(
            8,
            "Which dimension stays inside the machine?",
            "`tp_factor`, the model's two lines, and the map of `outer`. Then the three reasons, from the room.",
        ),
    ),
    ninety=(
        Again(8, "One matrix, cut in two ways"),
        Again(8, "Two matrices, one after the other", "Attention is the same picture: heads instead of columns."),
        Again(9, "The way back: f and g"),
        Part(10, "Write: f and g", "Two blanks. The check looks at both directions."),
        Part(5, "Diagnose: a first loss that is off", "`tp_bias` in pairs, then ask what changes with more ranks."),
        Again(8, "Diagnose: a layer in front of the block"),
        Part(
            7,
            "The last matrix",
            "The logits of one token, a quarter on each rank. Which three numbers must the ranks agree on? "
            "`vocab_parallel_loss` is homework.",
        ),
        Again(4, "Bytes"),
        Again(9, "When am I communication-bound?"),
        Part(6, "Sequence parallel", "`tp_sequence`: the same bytes, so what is it for?"),
        Again(
            16,
            "Which dimension stays inside the machine?",
            "Let them predict both times from the wires before the model does. `tp_choose` at the end.",
        ),
    ),
    home="`f_and_g` and `vocab_parallel_loss`; sequence parallel.",
    room="tp_drift",
    ask="Ask it after f and g are on the board. *An error* and *the first loss is wrong* get many hands: people trust"
    " errors. Run it. The first loss is right, the last one is the same on all ranks, and four scales differ. "
    "Then ask for a test that would have caught it.",
    wrong=(
        Mistake(
            "tp_drift",
            "The same x everywhere, so the same gradient? No: each rank goes back through its own piece and has a"
            " part of the sum.",
            answer=2,
        ),
        Mistake(
            "tp_row",
            "That is the cut by columns. With rows every rank has a full-size y that is a quarter of the truth.",
        ),
        Mistake(
            "tp_mlp_calls",
            "They sum after each matrix. B's rows need only the columns of h that the rank already has.",
            answer=1,
        ),
        Mistake(
            "tp_factor",
            "The wires differ by 20, but the gradients change places too: they take the slow wires when tensor "
            "parallel takes the fast ones.",
            answer=2,
        ),
        Mistake(
            "tp_choose",
            "Eight GPUs, two machines: every all_reduce of every layer crosses the network, and the layer waits.",
        ),
    ),
    sheet=("tp_row", "tp_mlp_calls", "tp_backward", "tp_drift", "tp_layer_bytes", "tp_myth_batch"),
    replies=(
        Reply(
            "which rows are above 1",
            "For tensor parallel those of the NICs, of both GPUs: the GPU would wait even if everything overlaps. On "
            "NVLink it is below 1.",
        ),
        Reply(
            "Which three numbers must the ranks agree on",
            "The largest logit, the sum of the exponentials, and the right token's logit, which one rank has. The "
            "logits themselves stay where they are.",
        ),
        Reply(
            "what exactly does each rank hold",
            "Rank r has column r of x and row r of A. Their product is a full 2 x 2 matrix, and each of its "
            "numbers is one of the two products whose sum is the number of y.",
        ),
        Reply(
            "what comes before relu in each case",
            "A by columns: finished columns of h. A by rows: a partial sum, as large as h, and relu of "
            "parts is not relu of the sum.",
        ),
        Reply(
            "How would you find it in a real run",
            "Not by the loss: it falls on all ranks alike. After a step, all_gather a few numbers of every "
            "weight that is copied, and compare the ranks.",
        ),
        Reply(
            "the same bytes, so what is it for",
            "Memory and work between the blocks: layer norm, dropout and the residual see 1/p of the tokens "
            "on each rank, and only that is kept for the backward pass.",
        ),
        Reply(
            "The same x everywhere, so the same gradient",
            "No. The gradient comes back through this rank's piece of the matrices, and is one part of the sum.",
        ),
    ),
)
