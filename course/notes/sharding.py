"""Notes on chapter 12: bytes per parameter on the board, and each stage of ZeRO strikes one out."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "p copies of one thing",
            "`sharding_bytes_per_parameter`. Write 4 + 4 + 8 = 16 on the board, large. Everything today divides "
            "one of these by p.",
        ),
        Part(
            10,
            "ZeRO-1: shard the optimizer's state",
            "`sharding_zero1_needs`, then step through the watched run: the update is between the two halves "
            "of an all_reduce.",
        ),
        Part(
            5,
            "ZeRO-2: shard the gradients",
            "`sharding_zero2_peak`, then read the hook together.",
        ),
        Part(
            9,
            "ZeRO-3: shard the weights",
            "`sharding_backward_of_gather` and `sharding_zero3_calls`.",
        ),
        Part(
            10,
            "The price",
            "Say that the estimates are in mixed precision: 2 + 2 + 12 in place of the 4 + 4 + 8 on the board, and 16 "
            "again. `estimate_sharded_memory` and `sharding_which_stage` in pairs. Then the table of 2, 2 and 3.",
        ),
        Part(
            6,
            "Muon",
            "`sharding_newton_schulz`, then run the cell below it and read its two lines: eight times 1.0 of the whole "
            "matrix, from 1.4 down to 0.4 of its shards. So the shards put together are another matrix, which "
            "stretches some directions more than others.",
        ),
    ),
    ninety=(
        Again(12, "p copies of one thing", "Then mixed precision: 2 + 2 + 12, also 16."),
        Again(10, "ZeRO-1: shard the optimizer's state", "At the end `sharding_clipped`."),
        Part(
            14,
            "Write: zero1_step",
            "Alone, about nine lines. It takes two steps, so the momentum must remember.",
        ),
        Again(6, "ZeRO-2: shard the gradients"),
        Again(12, "ZeRO-3: shard the weights", "Read our `gathered` instead of writing it."),
        Part(
            10,
            "FSDP2",
            "Let them predict both times, then show in the Timeline what prefetch hides. Then `sharding_hsdp`, "
            "`sharding_no_sync` and the lines of the two recordings.",
        ),
        Again(12, "The price", "Then the picture."),
        Again(10, "Muon", "Clipping needed the whole gradient: what else looks at more than one number?"),
        Part(
            4,
            "Myth check",
            "`sharding_myth_zero2_bytes`.",
        ),
    ),
    home="`zero1_step`, `muon_updates`, and `gathered` for those who know autograd functions.",
    room="sharding_which_stage",
    ask="Write the budget on the board: 40 GB, 10 of them for activations, 30 left. Pairs compute GB per GPU for each"
    " stage first: 16 x 8 = 128, 32 + 96/16 = 38, 16 + 112/16 = 23, 128/16 = 8. Only then ask. Some take the stage "
    "that saves most. Ask what it costs on a slow network.",
    wrong=(
        Mistake(
            "sharding_bytes_per_parameter",
            "Weight and gradient are what they see. Adam's two averages are half of all memory.",
            answer=1,
        ),
        Mistake(
            "sharding_zero1_needs",
            "Right numbers, once more the wrong collective: a rank uses one piece of the sum. The rule of chapter 4.",
            answer=2,
        ),
        Mistake(
            "sharding_zero1_bytes",
            "They divide everything. Point at the three numbers: which one does ZeRO-1 cut?",
        ),
        Mistake(
            "sharding_zero3_calls",
            "The whole layer is gone after its forward pass. Each rank has to gather it again.",
        ),
        Mistake(
            "sharding_which_stage",
            "Most room, and half as many bytes again on the slow network. Take what fits, not what is largest.",
            answer=3,
        ),
    ),
    sheet=(
        "sharding_bytes_per_parameter",
        "sharding_zero1_needs",
        "sharding_zero1_bytes",
        "sharding_zero3_calls",
        "estimate_sharded_memory",
        "sharding_newton_schulz",
    ),
    replies=(
        Reply(
            "what else looks at more than one number",
            "Whatever has a norm or a matrix in it: clipping by the global norm, LARS and LAMB with a norm "
            "for each layer, Shampoo and Muon. Adam and SGD look at each number alone.",
        ),
        Reply(
            "which one does ZeRO-1 cut",
            "The optimizer's state alone. Weights and gradients stay whole on every rank.",
        ),
    ),
    thrown_in=(
        Reply(
            "What is a singular value",
            "How much a matrix stretches one of its directions. An 8 x 8 matrix has eight; where all are 1 it turns or "
            "mirrors and stretches nothing.",
        ),
        Reply(
            "Does FSDP not hide its gathers",
            "Yes, by prefetch, which the 50 minutes leave out: under *FSDP2* a forward pass of six layers takes 504 ms "
            "by the model without it and 334 with it, at the price of two whole layers in memory.",
        ),
        Reply(
            "Why not always ZeRO-3",
            "It sends 3 where ZeRO-2 and plain data parallel send 2. With k micro-batches it is 3k against k + 1, and "
            "2 for plain data parallel with `no_sync`.",
        ),
        Reply(
            "A cell says that `make_model` is not defined, and now",
            "A cell above it was skipped: in JupyterLab's menu *Run*, take *Run All Above Selected Cell*.",
        ),
        Reply(
            "Is it really the same model",
            "To rounding: after 20 steps each weight is within 1e-5 of one process that trains alone, and each "
            "stage's cell prints that.",
        ),
    ),
)
