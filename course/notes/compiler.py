"""Notes on chapter 16: a program that is read before it runs."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            12,
            "A call that moves",
            "The graph as written on the wall. Where could the compiler put the call, and where the wait? Let them "
            "predict both times, then run it. `compile_ddp` at the end.",
        ),
        Part(8, "Placements", "`xla_partial`. Then name two placements and let the room shout the collective."),
        Part(11, "Write: redistribute", "In pairs, one conversion each, then put together."),
        Part(
            8,
            "DTensor computes, too",
            "`xla_product`, then the recorded calls: three for four conversions and a product.",
        ),
        Part(
            11,
            "Read what was compiled",
            "One line of HLO on the wall, large; nobody has to run JAX. Each piece of it to one row of students: what"
            " does yours say? Then the table: cover the torch column and let the room fill it in.",
        ),
    ),
    ninety=(
        Again(11, "A call that moves"),
        Again(7, "Placements"),
        Again(11, "Write: redistribute"),
        Again(7, "DTensor computes, too"),
        Part(4, "One program, four devices", "`xla_devices` by hands."),
        Part(
            6,
            "Say where the data is",
            "`xla_data_parallel` by hands; then run the cell below it: who wrote that all_reduce?",
        ),
        Again(9, "Read what was compiled"),
        Part(8, "Write: ring_sum", "Alone. Five lines; the judge also looks into the compiled program."),
        Part(
            6,
            "What a compiler may change",
            "`xla_calls`. Four hands up for four calls; they come down one by one, with the reason.",
        ),
        Part(
            11,
            "Two axes",
            "`xla_axis`. Draw the 2 x 2 square, one axis down and one across. Then `xla_mlp` on it: colour the copies"
            " of one part of the weights. Who has the same rows of the batch?",
        ),
        Part(
            4,
            "Diagnose: along which axis?",
            "`xla_wrong_axis` in pairs: find the two ranks of a group on the square first.",
        ),
        Part(
            4,
            "Several processes",
            "Let them predict the two numbers. Then look for the word Gloo in what the ranks print.",
        ),
        Part(2, "Myth check", "`xla_own_network`."),
    ),
    home="The JAX half, from *One program, four devices* on, with `ring_sum`: no later chapter needs it.",
    room="xla_product",
    ask="Put x and w on the board for two ranks, x cut down the middle and w across, each rank's pieces in its own "
    "colour. *Shard(1)* gets hands: x and w are shards. Ask how large the product of one colour is: as large as y. "
    "So each rank has a number in every place of y, and no rank has the right one. Only then run the cell.",
    wrong=(
        Mistake(
            "xla_product",
            "A shard times a shard is not a shard. One rank's columns times its rows are as large as y, and a term of "
            "the sum.",
            answer=2,
        ),
        Mistake(
            "xla_mlp",
            "They sum where the forward pass summed. Ranks in one row hold different columns of the weights; ranks "
            "in one column of the square hold copies.",
            answer=0,
        ),
        Mistake(
            "xla_text_says",
            "They look for the ring. HLO says what each rank has afterwards; the library decides how.",
            answer=0,
        ),
        Mistake(
            "xla_calls",
            "They count the lines. That is right for torch, which makes each call. Show both numbers.",
            answer=0,
        ),
        Mistake(
            "xla_devices",
            "Four devices here are four threads of one process. No time measured on them says anything about a "
            "network.",
            answer=1,
        ),
    ),
    sheet=("xla_partial", "xla_product", "xla_text_says"),
    replies=(
        Reply(
            "who wrote that all_reduce",
            "The compiler. The function is a mean over the whole batch, and the batch is cut, so its gradient is a sum "
            "over the ranks.",
        ),
        Reply(
            "what does yours say",
            "From left to right: the name; the shape on one device, `s32[4]`; the operation and its input; a "
            "number for the call; the groups, here one of all four; the function that joins two numbers, which "
            "adds.",
        ),
        Reply(
            "Where could the compiler put the call, and where the wait",
            "The call first, since it needs only `gradient`, and the wait just before `copy`, which is the first "
            "to need the sum. Both products are between them: 80 ms, where as written it is 146.",
        ),
        Reply(
            "Who has the same rows of the batch",
            "The rank beside it, 1: ranks 0 and 1 have the same coordinate along `data`, and different columns "
            "of the weights.",
        ),
    ),
)
