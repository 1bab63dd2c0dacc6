"""Notes on chapter 2: the room as a ring, a ball as a message, and a deadlock in which every student waits."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            8,
            "One message",
            "Ask `first_half_to_rank_3`. The sentence to leave on the board: `recv` fills, it does not return.",
        ),
        Part(
            12,
            "Two patterns",
            "Four students in a circle. Ring pass with one ball, then a shift with four. The room counts messages"
            " and steps aloud. Then the two pictures, with `ring_pass_steps` and `shift_steps`.",
        ),
        Part(
            10,
            "All at once",
            "The same four students, each hands a ball over only when the neighbour's hand is open, and nobody "
            "opens a hand first. Nothing moves. Then run it and read the proof.",
        ),
        Part(
            8,
            "Start it, and wait later",
            "`isend` is: put it on the table and take your hands back. How many steps will the picture have now?",
        ),
        Part(
            6,
            "Diagnose: a colleague's shift",
            "`shift_of_a_colleague` in pairs, two minutes, then hands for each line.",
        ),
        Part(
            6,
            "One batch too many",
            "A deadlock without a circle. Ask for the real program that has it: the last batch of an uneven data set.",
        ),
    ),
    ninety=(
        Again(12, "One message", "Then sizes that do not agree: does rank 1 get the first two numbers?"),
        Again(16, "Two patterns", "For 1,000 ranks: messages and steps of both, on paper."),
        Again(10, "All at once"),
        Part(
            6,
            "Some ranks receive first",
            "`even_odd_in_flight` with the four students: even ones give first.",
        ),
        Again(8, "Start it, and wait later", "Ask what may happen to `x` before `wait`."),
        Again(6, "Diagnose: a colleague's shift"),
        Part(
            14,
            "Write: your own shift",
            "`shift`, alone, with the check. About six lines; the usual first version drops the handle.",
        ),
        Part(
            10,
            "Fix a swap",
            "Pairs. Read the verdict before you change anything; then 3 ranks, where one has no partner.",
        ),
        Again(4, "One batch too many"),
        Part(
            4,
            "Myth check",
            "`small_never_blocks` and `messages_in_order`, hands only. The second one is true.",
        ),
    ),
    home="`shift` and `swap` with their checks; the barrier is extra.",
    room="all_send_first",
    ask="Ask it while the four students still stand in the circle with the balls in their hands. Most say that the "
    "neighbour gets the numbers. Let the students try it under the rule: you may let go only when the other hand "
    "is open. Then the room answers again.",
    wrong=(
        Mistake(
            "all_send_first",
            "They think of a letter box. Ask where the letter box would be: gloo has none. MPI has a small one, "
            "and programs that rely on it hang on the day their messages grow.",
        ),
        Mistake(
            "first_half_to_rank_3",
            "In Python a function returns its result. Show the second argument of the call: the tensor is the "
            "room that you offer.",
            answer=2,
        ),
        Mistake(
            "shift_steps",
            "They count messages. Ask which of the four needs another one first: none, so they share a step.",
        ),
        Mistake(
            "small_never_blocks",
            "Many have seen it work in MPI. True there up to some kilobytes, promised nowhere, and false here.",
        ),
    ),
    sheet=(
        "first_half_to_rank_3",
        "ring_pass_steps",
        "shift_steps",
        "all_send_first",
        "even_odd_in_flight",
        "free_after_send",
    ),
    replies=(
        Reply(
            "How many steps will the picture have now",
            "One. No rank waits before it has started its message, so all of them travel at the same time.",
        ),
        Reply(
            "does rank 1 get the first two numbers",
            "No. Both sides must name the same size and dtype. Ringside stops the cell and says which sizes "
            "met; plain gloo may hang, fail or leave wrong numbers.",
        ),
    ),
)
