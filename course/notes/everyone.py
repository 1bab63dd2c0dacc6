"""Notes on chapter 4: four collectives, four rows of cards, and the question which one a job needs."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "All-gather",
            "`all_gather_sends` at the picture. On the board: before, after, bytes of one rank. The same three "
            "columns for each collective of today.",
        ),
        Part(
            10,
            "Reduce-scatter",
            "`reduce_scatter_value` on paper: it is a sum *across* the ranks, and only one number of it. Then the"
            " refused call: the output is 1/p of the input.",
        ),
        Part(
            8,
            "All-reduce",
            "`two_halves`: the two rows above, one after the other. Then `choose_nan`, the first use that is no "
            "gradient.",
        ),
        Part(
            10,
            "All-to-all",
            "Four students, four letters each, addressed. They swap. What does each hold, in which order? Then "
            "the picture: a transpose.",
        ),
        Part(
            12,
            "Which one?",
            "The first three situations by hands, one after the other, and for each wrong choice: how many bytes are "
            "thrown away?",
        ),
    ),
    ninety=(
        Again(18, "All-gather", "10 minutes for `ring_all_gather`: it is `shift`, p - 1 times."),
        Again(
            20,
            "Reduce-scatter",
            "10 minutes for `pairwise_reduce_scatter`. Say before they begin: leave `x` as it was.",
        ),
        Again(8, "All-reduce"),
        Again(14, "All-to-all", "Then the uneven form at home: what has to be sent first?"),
        Again(
            20,
            "Which one?",
            "Let them guess what grows with p, before the table is printed. Then pairs invent a situation for the next "
            "pair.",
        ),
        Part(
            10,
            "The cheat sheet",
            "Books closed: fill in the page on paper, in pairs, then open it. The Zoo stays on the wall.",
        ),
    ),
    home="Two of the three *Write it*, and the cheat sheet on paper.",
    room="choose_gradients",
    ask="The rule to write on the board first: a rank that throws away what it receives, or sends zeros for data "
    "that it does not have, has the wrong collective. Then ask. `all_reduce` gets most hands, because it is the one "
    "they know. Ask those hands how much of the sum a rank uses.",
    wrong=(
        Mistake(
            "choose_gradients",
            "Right numbers, twice the bytes. Three quarters of the sum are thrown away: say what is thrown away, "
            "every time.",
            answer=1,
        ),
        Mistake(
            "reduce_scatter_value",
            "They add up a row instead of a column. Draw the 4 x 4 table and put a pencil down the column.",
        ),
        Mistake(
            "reduce_scatter_length",
            "The chunks shrink, the sum does not grow: 4 numbers in, 1 number out on each of 4 ranks.",
        ),
        Mistake(
            "all_to_all_rank_1",
            "The order of arrival is nobody's promise. The place in the result is the sender's number.",
            answer=2,
        ),
        Mistake(
            "choose_lookup",
            "Everyone *may* need every row, and needs 1 in 1,000. Ask for the rows that you want, not for the table.",
        ),
    ),
    sheet=(
        "all_gather_sends",
        "reduce_scatter_value",
        "choose_nan",
        "all_to_all_rank_1",
        "choose_gradients",
    ),
    replies=(
        Reply(
            "What does each hold, in which order",
            "Student r holds the letters that are addressed to r, ordered by their sender: row r of the table"
            " has become column r.",
        ),
        Reply(
            "how many bytes are thrown away",
            "What arrives and is not used: an all_gather or an all_reduce where a rank needs a p-th of the "
            "result throws away (p - 1)/p of that result.",
        ),
        Reply(
            "what has to be sent first",
            "How much is coming: each rank sends every other the count that it has for it, so that the "
            "receiver can make room.",
        ),
    ),
)
