"""Notes on chapter 16: a program that is read before it runs."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            7,
            "Placements",
            "`xla_partial`. Then name two placements and let the room shout the collective.",
        ),
        Part(
            5,
            "One program, four devices",
            "`xla_devices` by hands.",
        ),
        Part(
            7,
            "Say where the data is",
            "`xla_data_parallel` by hands; then run the cell below it: who wrote that all_reduce?",
        ),
        Part(
            12,
            "Read what was compiled",
            "One line of HLO on the wall, large. Each piece of it to one row of students: what does yours say? Then "
            "the table: cover the torch column and let the room fill it in.",
        ),
        Part(
            7,
            "What a compiler may change",
            "`xla_calls`. Four hands up for four calls; they come down one by one, with the reason.",
        ),
        Part(
            12,
            "Two axes",
            "`xla_axis`. Draw the 2 x 2 square, one axis down and one across. Then `xla_mlp` on it: colour the copies "
            "of one part of the weights.",
        ),
    ),
    ninety=(
        Part(
            9,
            "A call that moves",
            "Where could the compiler put `mm` in that graph? Between the call and the wait.",
        ),
        Part(
            10,
            "Write: redistribute",
            "In pairs, one conversion each, then put together.",
        ),
        Again(5, "One program, four devices"),
        Again(8, "Say where the data is"),
        Again(11, "Read what was compiled"),
        Part(
            4,
            "Estimate",
            "`estimate_compiled` on paper: bytes first, then the 1.75.",
        ),
        Part(
            10,
            "Write: ring_sum",
            "Alone. Five lines; the judge also looks into the compiled program.",
        ),
        Again(7, "What a compiler may change"),
        Again(13, "Two axes"),
        Part(
            5,
            "Diagnose: along which axis?",
            "`xla_wrong_axis` in pairs: find the two ranks of a group on the square first.",
        ),
        Part(
            6,
            "Several processes",
            "`xla_processes`. Then look for the word Gloo in what the ranks print.",
        ),
        Part(
            2,
            "Myth check",
            "`xla_own_network`.",
        ),
    ),
    home="`redistribute`, if it was not written in the room.",
    room="xla_mlp",
    ask="Draw the 2 x 2 square with `data` down and `model` across. Ask who holds a copy of rank 0's columns. It is "
    "the rank below it, 2. Who has the same rows of the batch? The one beside it, 1. Gradients are summed among "
    "copies, so along `data`. Only then open the Player.",
    wrong=(
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
    sheet=("xla_partial", "xla_text_says", "xla_axis"),
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
            "Where could the compiler put `mm` in that graph",
            "Between the call and the wait. `mm` does not need the sum, and the call needs only `gradient`, so "
            "the call can go in front of it and the wait behind it.",
        ),
        Reply(
            "Who has the same rows of the batch",
            "The rank beside it, 1: ranks 0 and 1 have the same coordinate along `data`, and different columns "
            "of the weights.",
        ),
    ),
)
