"""Notes on chapter 1: processes, not threads; a meeting that four students can act."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "Four memories",
            "Ask `processes_with_x`, then draw five boxes on the board, one for the notebook, and fill in each "
            "`x`. Leave the drawing there for the rest of the hour.",
        ),
        Part(
            8,
            "One program, different work",
            "How often does the second `print` run? Then the learning rate: four ranks, three learning rates, "
            "no error. Let them say what that does to a training run.",
        ),
        Part(
            5,
            "From one rank to another",
            "Play the run. Before it: which ranks change their `x`?",
        ),
        Part(
            8,
            "One rank per GPU",
            "`rank_21` with its picture of four machines. Then `%ranks` on the wall: what does a rank cost here?",
        ),
        Part(
            12,
            "By hand: how the ranks find each other",
            "Four students are ranks, the board is the store. Each writes an address on it and may read only what"
            " is written. Then the same in the cells, with `late_to_the_meeting`, and the table of script against "
            "`%%ranks`.",
        ),
        Part(
            7,
            "When one rank fails",
            "Ask `rank_2_raises`, run it, and compare with a script: there the loud error is not the cause.",
        ),
    ),
    ninety=(
        Again(12, "Four memories", "Then change the middle line in front of them: `x = x * rank`. Which ranks differ?"),
        Again(12, "One program, different work", "Pairs find one more line that belongs under `if rank == 0`."),
        Again(6, "From one rank to another"),
        Again(6, "One rank per GPU"),
        Again(
            20,
            "By hand: how the ranks find each other",
            "Play it again with one student missing: what do the others do, and for how long? That is a job that lost"
            " a machine at the start.",
        ),
        Again(10, "When one rank fails", "Which line of a log with four tracebacks do you read first?"),
        Part(
            18,
            "Write: your share",
            "Everybody writes the blank. First on paper: 9 numbers on 4 ranks, then 10. The check tries lengths "
            "that nobody thinks of.",
        ),
        Part(
            6,
            "Myth check",
            "Both by show of hands. The second one is true: let a student who said false say why.",
        ),
    ),
    home="`my_share`, and the myth check.",
    room="processes_with_x",
    ask="Write the five boxes on the board, point at the notebook's box and ask for a number on fingers: 1, 4 or 5. "
    "You will see all three. Let a 1 and a 5 explain themselves before you run the cell.",
    wrong=(
        Mistake(
            "processes_with_x",
            "They see one text and think of one variable. Say: a recipe is one text too, and four kitchens make "
            "four soups.",
        ),
        Mistake(
            "processes_with_x",
            "`%%ranks` sends the text away. The notebook does not run it: `pull` fetches, nothing is shared.",
            answer=1,
        ),
        Mistake(
            "rank_2_raises",
            "An exception never leaves its process. In a script the others see a closed connection: another "
            "error, and not the cause.",
        ),
        Mistake(
            "rank_21",
            "Machine 2 is the third. Say every number on this page from 0, aloud, all together.",
            answer=1,
        ),
    ),
    sheet=("processes_with_x", "rank_21", "late_to_the_meeting", "rank_2_raises", "rank_0_first", "same_seed"),
    replies=(
        Reply(
            "How often does the second `print` run",
            "Once for each rank whose condition is true: every rank runs the whole cell, and the `if` decides"
            " on each rank by itself.",
        ),
        Reply(
            "which ranks change their `x`",
            "The receiver alone. `send` copies what the sender has and leaves it as it is.",
        ),
        Reply(
            "what does a rank cost here",
            "Some 55 to 100 MB of memory: a whole process, with Python, torch and its own copy of everything.",
        ),
        Reply(
            "Which ranks differ",
            "All: rank r has r times its `x`. Rank 0 has zeros, and rank 1 is as it was.",
        ),
        Reply(
            "what do the others do, and for how long",
            "They wait at the rendezvous until the world size is reached or the time-out ends it with an "
            "error. None of them can begin with fewer ranks.",
        ),
        Reply(
            "Which line of a log with four tracebacks do you read first",
            "The earliest error that is not about a connection or a time-out: the other ranks fail because of"
            " it, and usually later.",
        ),
    ),
)
