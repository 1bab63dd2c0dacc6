"""Notes on chapter 17: eight broken programs, diagnosed before they run."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            4,
            "17 · When it hangs",
            "The rule for this hour: read, say which rank waits for which, and only then run. Nobody scrolls.",
        ),
        Part(
            26,
            "Eight patients",
            "Patients 1, 2, 4, 5 and 8, five minutes each: two to read in pairs, one for hands (`clinic_early`, "
            "`clinic_logs`, `clinic_crossed`, `clinic_dropped`, `clinic_killed`), two to run and to read the "
            "sentence. Draw who waits for whom.",
        ),
        Part(
            14,
            "Without a doctor",
            "Three outputs: a wrong sum without an error, a time-out, DETAIL. What does each say, and what not? Then "
            "the table of what to use when.",
        ),
        Part(
            4,
            "How long to wait",
            "`clinic_timeout`: longer than the longest wait of a healthy job, and why that is not 30 seconds.",
        ),
        Part(
            2,
            "Take away",
            "The first line, together: look for the rank that is *not* in the list.",
        ),
    ),
    ninety=(
        Again(4, "17 · When it hangs"),
        Part(
            38,
            "Eight patients",
            "All eight. After each: where in your own code could this be? `clinic_slow` and `clinic_nan` end without a "
            "message.",
        ),
        Part(
            14,
            "Repair one",
            "`train_until`, alone. Any rule will do, if every rank decides by the same number.",
        ),
        Again(
            22,
            "Without a doctor",
            "Also `clinic_detail`, the stacks and the flight recorder: which of them tells two rounds of one loop "
            "apart?",
        ),
        Again(6, "How long to wait", "Also `clinic_hours` on paper."),
        Part(
            4,
            "Myth check",
            "Both.",
        ),
        Again(2, "Take away"),
    ),
    home="`train_until`, `bad_rank`, and patients 3 and 6.",
    room="clinic_crossed",
    ask="Draw the 2 x 2 mesh and put a student on each corner. Each holds out the right hand along the machine or "
    "across, in the order of the program, and may use the other hand only when the first was shaken. All four "
    "stand with a hand out. Now ask again: which rank is to blame?",
    wrong=(
        Mistake(
            "clinic_crossed",
            "Each call by itself is right. The order *between* groups must agree: a rank makes one call at a time.",
            answer=2,
        ),
        Mistake(
            "clinic_early",
            "all_reduce is a call of all ranks. Three of four cannot finish it.",
            answer=1,
        ),
        Mistake(
            "clinic_dropped",
            "They trust `isend`. Ask where the handle is when `start_sending` has returned.",
        ),
        Mistake(
            "clinic_slow",
            "They do wait, for half a second. A rank that runs its own code may still come, so it is never accused.",
        ),
        Mistake(
            "clinic_killed",
            "A killed process writes nothing more. Look for a log that ends.",
        ),
        Mistake(
            "clinic_detail",
            "Shapes it does compare. It does not compare the reduce operation and the root.",
        ),
    ),
    sheet=("clinic_early", "clinic_dropped", "clinic_killed", "clinic_detail", "clinic_timeout"),
    replies=(
        Reply(
            "What does each say, and what not",
            "The wrong sum says nothing at all. The time-out says in which direction a rank waited, and not for "
            "which rank. DETAIL names the rank that did not come, in rank 0's log, or the shape, dtype or kind "
            "that differs, and not another reduce operation or root.",
        ),
        Reply(
            "where in your own code could this be",
            "Look for a collective under an `if` or in a loop whose end depends on a rank's own data, a shape "
            "that depends on the data, two groups used in two orders, an `isend` without its `wait`, and work "
            "that one rank alone does, as saving a checkpoint.",
        ),
        Reply(
            "which of them tells two rounds of one loop apart",
            "The flight recorder: its calls have numbers. A stack shows the same line in every round.",
        ),
        Reply(
            "which rank is to blame",
            "None alone. Each call is right by itself; the program orders the groups differently on different "
            "ranks, and the four wait in a circle.",
        ),
    ),
)
