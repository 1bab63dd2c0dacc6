"""Notes on chapter 14: four students, a stack of sheets, and the bubble that one can see."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            9,
            "One batch, four stages",
            "Four students in a row, one sheet of paper: each signs it, passes it on, and it comes back. `pipe_busy`."
            " Then the Timeline.",
        ),
        Part(
            13,
            "GPipe: micro-batches",
            "The same four with three sheets. Count claps: `pipe_slots`. Write the bubble as idle over all, (p - "
            "1)/(m + p - 1), so 3 of 6 slots here, then the grid: where is rank 0's, where rank 3's?",
        ),
        Part(
            9,
            "1F1B",
            "Everybody now keeps a copy of each sheet until it comes back, and the last student sends each back at "
            "once. How many must rank 0 keep? `pipe_kept`. Write the order of the last rank first, 1, -1, 2, -2, then"
            " of rank 0: 1, 2, 3, 4, -1, 5, -2.",
        ),
        Part(5, "Another send", "`pipe_blocking`, run it, and find chapter 2's circle with two ranks."),
        Part(5, "Interleaving and zero bubble", "The four grids on the wall. What does H2 pay for its small bubble?"),
        Part(
            9,
            "Where the pipeline goes",
            "`pipe_boundary_bytes`, the table of three, then `pipe_where`. Say at the end: *What sends most gets the "
            "fastest wires. Tensor parallel sends 560 N for 80 layers and stays inside a machine. A stage of the "
            "pipeline sends 2 N, so pipelines cross between machines. Data parallel goes outside of both: it sends "
            "once a step, behind the backward pass.*",
        ),
    ),
    ninety=(
        Again(10, "One batch, four stages"),
        Again(13, "GPipe: micro-batches", "Also `pipe_how_many`."),
        Part(
            13,
            "Write: pipeline_forward",
            "Alone. The usual mistake: compute all rows, then send all. The check sees it.",
        ),
        Part(
            7,
            "Diagnose: a learning rate that is m times too large",
            "`pipe_scaled` in pairs. Then the measured bubbles: why is m = 4 not as good as the formula?",
        ),
        Again(8, "1F1B"),
        Part(9, "Write: one_f_one_b", "On paper first, for rank 3 and for rank 0, with m = 5."),
        Again(6, "Another send", "And how do you put both directions into one call?"),
        Again(
            9,
            "Interleaving and zero bubble",
            "Then the formula of interleaving, and an order typed into the SlotGrid together; `split_backward` is "
            "homework.",
        ),
        Part(
            4,
            "PyTorch's schedules",
            "Hands: which order needs the fewest slots, and which the most messages? Then run it.",
        ),
        Again(6, "Where the pipeline goes"),
        Part(
            3,
            "One matrix on two stages",
            "Run it without its last all_reduce first: what will happen to the two copies?",
        ),
        Part(2, "Myth check", "`pipe_myth_batch_norm`."),
    ),
    home="`pipeline_forward` and `one_f_one_b`; interleaving.",
    room="pipe_slots",
    ask="Let the four students do it with three sheets, and clap. The room counts 6 claps. Now ask for 8 sheets, "
    "without trying. 32, 8 and 12 come up. Ask each: when does the last student get the first sheet, and how many"
    " sheets come after it?",
    wrong=(
        Mistake(
            "pipe_slots",
            "That is one sheet after the other. Student 0 is free after one clap.",
        ),
        Mistake(
            "pipe_slots",
            "Three stages come before the last one, not four. The fence and its posts, once more.",
            answer=2,
        ),
        Mistake(
            "pipe_how_many",
            "A tenth of the work, or a tenth of the time? Say what the share is a share of.",
        ),
        Mistake(
            "pipe_kept",
            "That is GPipe. Ask when rank 0 gets its first gradient, and how many passes it has made by then.",
        ),
        Mistake(
            "pipe_myth_bubble",
            "1F1B saves memory. The bubble moves and stays as long; only more micro-batches or interleaving make "
            "it shorter.",
        ),
        Mistake(
            "pipe_where",
            "Ask what each of them sends per layer or per stage, then which wires are slow.",
            answer=1,
        ),
    ),
    sheet=("pipe_busy", "pipe_slots", "pipe_how_many", "pipe_kept", "pipe_blocking", "pipe_boundary_bytes"),
    replies=(
        Reply(
            "What does H2 pay for its small bubble",
            "Memory: its rank 0 keeps seven micro-batches, where 1F1B keeps four.",
        ),
        Reply(
            "which order needs the fewest slots, and which the most messages",
            "ZBV and DualPipeV need the fewest if messages take no time, 25.5 slots. Interleaving and the two Vs send"
            " at least twice as many messages as orders with one stage on each rank.",
        ),
        Reply(
            "what will happen to the two copies",
            "Each end trains its copy with its own part of the gradient, so the copies drift apart, as in chapter 0.",
        ),
        Reply(
            "where is rank 0's, where rank 3's",
            "Rank 0's is in the middle: it waits between its last forward and its first backward pass. Rank "
            "3's is at both ends: it waits for the first micro-batch, and is done before the gradients are "
            "back at rank 0.",
        ),
        Reply(
            "How many must rank 0 keep",
            "Four, as many as there are ranks: it makes four forward passes before the first gradient is "
            "back, and from then on each backward pass frees one.",
        ),
        Reply(
            "why is m = 4 not as good as the formula",
            "The formula has equal passes and free messages. Small micro-batches have more of both: messages "
            "to wait for, and a fixed cost in each call.",
        ),
        Reply(
            "how do you put both directions into one call",
            "`dist.batch_isend_irecv` with one `P2POp` to send and one to receive, as Megatron-LM does in "
            "`send_forward_recv_backward`.",
        ),
        Reply(
            "when does the last student get the first sheet, and how many sheets come after it",
            "After three claps, one for each student before; then seven more sheets come, one a clap. The "
            "last student works in claps 4 to 11: 8 + 4 - 1 = 11.",
        ),
        Reply(
            "A tenth of the work, or a tenth of the time",
            "Of the time: the bubble is the idle slots over all slots. Over the busy slots it would be (p - "
            "1)/m, a larger number.",
        ),
    ),
    thrown_in=(
        Reply(
            "What is an activation",
            "What a layer puts out, some numbers for each example. The backward pass of the layer needs it again, so "
            "it is kept until then.",
        ),
        Reply(
            "On NCCL isend can hang here, too",
            "Yes: put both directions into one `dist.batch_isend_irecv`. The cell below the deadlock does that.",
        ),
        Reply(
            "What do people use",
            "1F1B, often interleaved, as in Megatron-LM. `torch.distributed.pipelining` has it, and ZBV and "
            "DualPipeV: *PyTorch's schedules* runs them.",
        ),
        Reply(
            "A cell says that `step` or `turns` is not defined, and now",
            "A cell above it was skipped: in JupyterLab's menu *Run*, take *Run All Above Selected Cell*.",
        ),
        Reply(
            "You sleep in place of computing, so what does this prove",
            "Nothing about speed. Four ranks would fight for your cores, so the waiting is real and the work is "
            "played. Gradients are computed, and compared with one process: `right: True`.",
        ),
    ),
)
