"""Notes on chapter 3: one rank gives or takes, and the two prices are at the busiest rank."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            14,
            "Broadcast",
            "`broadcast_bytes`, the flat run, then the room as a tree: you tell one student a number, each who "
            "knows it tells one more per clap. Count the claps. Then `broadcast_tree`.",
        ),
        Part(
            12,
            "Scatter and gather",
            "`scatter_root`: the difference to a broadcast is one word, *its own* chunk. Then all arrows reversed, and "
            "`gather_busiest`: sent is not received.",
        ),
        Part(
            10,
            "Reduce",
            "`reduce_value` on paper first. Then `reduce_leftovers`, and run the built-in: 1110 on rank 1 wakes "
            "everybody up.",
        ),
        Part(
            9,
            "Which rank waits for which?",
            "The myth first, then the table. Ask for each row: which rank needs something of rank 3? Then rank 1 comes "
            "late, and the root of the broadcast waits.",
        ),
        Part(
            5,
            "The price",
            "The table, one column at a time: a tree saves steps and no bytes.",
        ),
    ),
    ninety=(
        Again(
            26,
            "Broadcast",
            "12 minutes to write `tree_broadcast`. The hint to give: how many ranks have it before round k?",
        ),
        Again(20, "Scatter and gather", "Which of the four chunks never travels? Then the blank of `flat_gather`."),
        Again(14, "Reduce", "Then sent and received side by side: which rank is the busiest, and by which column?"),
        Part(
            8,
            "Barrier",
            "`barrier_is_broadcast`, then: when do you need one at all? Collect cases; most are wrong, the file "
            "that one rank writes is right.",
        ),
        Again(12, "Which rank waits for which?", "Pairs explain one row each: rank 1 in broadcast is the hard one."),
        Part(
            5,
            "In place, out of place",
            "`rooted_in_place`, and the table.",
        ),
        Again(5, "The price"),
    ),
    home="`tree_broadcast`, the barrier, in place and out of place.",
    room="all_collectives_synchronise",
    ask="Ask it before anybody scrolls. Many will say true, because many tutorials say so. Do not argue: run the "
    "cell, 300 ms late, and let the room find the ranks that did not wait. Then make rank 1 late: now the root waits, "
    "because it sends to rank 1 itself.",
    wrong=(
        Mistake(
            "all_collectives_synchronise",
            "Ask of each rank what it needs. A rank leaves when its own part is done. Only a barrier promises more.",
        ),
        Mistake(
            "broadcast_tree",
            "7 is one rank doing all the work. Clap again and count how many know it after each clap: 1, 2, 4, 8.",
        ),
        Mistake(
            "gather_busiest",
            "They carry the scatter over. Turn the picture round: the door is the same, the direction is not.",
        ),
        Mistake(
            "reduce_leftovers",
            "So it was in the version by hand. The built-in promises the root's buffer and nothing else: reduce a"
            " `clone()`.",
        ),
        Mistake(
            "tree_saves_bytes",
            "They expect a tree to save everything. p - 1 ranks must give their vector, each once: (p - 1) N, "
            "flat or by a tree.",
        ),
    ),
    sheet=("broadcast_bytes", "broadcast_tree", "scatter_root", "gather_busiest", "reduce_value", "thousand_ranks"),
    replies=(
        Reply(
            "which rank needs something of rank 3",
            "In broadcast and scatter from rank 0 none does. In gather and reduce to rank 0 only rank 0. In a"
            " barrier, and in every collective whose result depends on all, everybody.",
        ),
        Reply(
            "how many ranks have it before round k",
            "2^(k-1), with rounds counted from 1: each rank that has it passes it on once a round, so their "
            "number doubles.",
        ),
        Reply(
            "Which of the four chunks never travels",
            "The root's own: it is where it belongs from the start.",
        ),
        Reply(
            "which rank is the busiest, and by which column",
            "Flat: rank 0, by what it receives, p - 1 vectors. By what is sent it looks idle: count both columns.",
        ),
        Reply(
            "when do you need one at all",
            "For what happens outside the collectives: rank 0 writes a file and the others read it, or a time"
            " measurement begins. Between two collectives that exchange data it adds only time.",
        ),
    ),
)
