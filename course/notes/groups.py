"""Notes on chapter 8: eight students, two tables, and a mesh on the floor."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            16,
            "A collective for some of the ranks",
            "`groups_rank_5`, then `groups_who_calls`: nearly all say the members. Run the version that nearly "
            "everybody writes first. End with `groups_models`: the drift of chapter 0, on two machines.",
        ),
        Part(
            7,
            "Two numbers for one rank",
            "Give each student two numbers, one for the room and one for the table. `groups_src`.",
        ),
        Part(
            9,
            "A mesh",
            "2 x 4 on the board. Circle a group along `machine`, one along `gpu`. `groups_along_machine`, then "
            "`groups_layout` and both meshes.",
        ),
        Part(
            11,
            "Two machines of four, by hand",
            "`groups_flat_nic` and the map: one NIC works, the others watch.",
        ),
        Part(
            7,
            "Count",
            "Show ours, in three moves, then `groups_hierarchical_nic` and the second map.",
        ),
    ),
    ninety=(
        Again(20, "A collective for some of the ranks", "Also `groups_outsider` and `groups_others_wait`."),
        Again(8, "Two numbers for one rank", "Why does the mistake hide on one machine?"),
        Again(14, "A mesh", "Pairs write down all six groups of the 2 x 4 mesh, then run the cell."),
        Again(12, "Two machines of four, by hand"),
        Part(
            16,
            "Write: hierarchical_all_reduce",
            "Alone, about six lines. Write the three moves on the board, not their calls.",
        ),
        Again(8, "Count"),
        Part(
            8,
            "Measure",
            "`groups_factor` first. The measured factor is below the model's: collect reasons before you read ours.",
        ),
        Part(
            4,
            "Myth check",
            "Both, hands only.",
        ),
    ),
    home="`hierarchical_all_reduce`.",
    room="groups_who_calls",
    ask="Ask it right after the first run, when two groups have just worked. Members only gets most hands, and it is "
    "the code that everybody writes. Run that cell next and let the room read what the launcher says. Then: what "
    "would a plain script say? Perhaps nothing.",
    wrong=(
        Mistake(
            "groups_who_calls",
            "Sensible and wrong. torch counts groups as they are made: a rank that skips one counts on differently.",
            answer=2,
        ),
        Mistake(
            "groups_outsider",
            "They expect a hang. It is worse: a warning, and the old value goes on into the training.",
            answer=1,
        ),
        Mistake(
            "groups_src",
            "`src=` takes the number in the room, `group_src=` the number at the table. On the first machine the two "
            "numbers agree, which is why tests pass.",
        ),
        Mistake(
            "groups_along_machine",
            "*Along* a dimension: that index varies, the others stay. Put a finger on rank 5 and move it.",
        ),
        Mistake(
            "groups_layout",
            "8 x 8 is 8 x 8 as a shape. Ask which ranks sit in one machine: the last dimension varies fastest.",
            answer=1,
        ),
    ),
    sheet=(
        "groups_rank_5",
        "groups_who_calls",
        "groups_src",
        "groups_along_machine",
        "groups_flat_nic",
        "groups_hierarchical_nic",
    ),
    replies=(
        Reply(
            "Why does the mistake hide on one machine",
            "In the group of ranks 0 to 3 the group rank and the global rank are the same number. From the "
            "second machine on they differ, and torch raises.",
        ),
        Reply(
            "what would a plain script say",
            "Perhaps nothing. Both halves give their group the same number and disagree about its members. Their "
            "connections get mixed up, and ranks wait for the time-out.",
        ),
    ),
)
