"""Notes on the interview: questions in pairs, answered aloud."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            8,
            "Who holds what",
            "Pairs: one asks, one answers *aloud*, then they change. `interview_same` from memory, then the two "
            "faulty lines.",
        ),
        Part(
            6,
            "One result, two prices",
            "`interview_gather_broadcast` and `interview_split`. After each answer the asker says: and what does it "
            "cost?",
        ),
        Part(
            9,
            "How many bytes",
            "The rule for every figure: which N, which direction, one rank or all. Leave one out, and the question "
            "comes again.",
        ),
        Part(
            9,
            "What the libraries do",
            "`interview_calls`, `interview_barriers` and `interview_overlap`: two minutes each, aloud, with a reason.",
        ),
        Part(9, "Size a run", "`interview_mfu` and `interview_mesh` on paper; `size_a_run` is for home."),
        Part(
            9,
            "Tell me about ...",
            "Pairs: one speaks for two minutes on a topic that the cell picks, the other opens it and ticks the "
            "points. Then they change. Take *a hang* yourself, badly: what did I leave out?",
        ),
    ),
    ninety=(
        Again(11, "Who holds what"),
        Again(8, "One result, two prices"),
        Again(13, "How many bytes", "Then the table, with one column covered."),
        Part(
            11,
            "How long",
            "`interview_tree_time`, `interview_ring_time` and `interview_ring_half` on paper, with units. Which term "
            "does the sheet lack?",
        ),
        Again(14, "What the libraries do", "Then the order of FSDP's step on the board, from memory."),
        Part(6, "Which would you take?", "`interview_checkpoint`; each pair defends another broadcast."),
        Again(12, "Size a run", "Then *One run by hand*: one row of its table for each pair."),
        Again(12, "Tell me about ..."),
        Part(3, "What you missed", "Everybody runs `again()` and takes the list home."),
    ),
    home="`size_a_run`, and `again()` until nothing is open.",
    room="interview_barriers",
    ask="Play the interviewer: read the candidate's sentence as if you believed it, and ask for a verdict in one "
    "sentence. *So that all ranks are there* sounds right to many. Ask what an all_reduce could return before the last "
    "vector has come.",
    wrong=(
        Mistake(
            "interview_barriers",
            "Nobody can have the sum before the last vector has come. The barrier repairs nothing, and costs a "
            "round of messages.",
            answer=1,
        ),
        Mistake(
            "interview_two_n",
            "A share of what? (p - 1)/p is a share of the whole, and 100 MB is a shard.",
        ),
        Mistake(
            "interview_calls",
            "What a ring does inside is not a call. DDP calls all_reduce; FSDP calls the two halves, with the "
            "optimizer between.",
        ),
        Mistake(
            "interview_tree_time",
            "The sheet forgets the bytes. Each level carries 100 MB: both terms, always.",
        ),
        Mistake(
            "interview_overlap",
            "That is one after the other. The shorter hides behind the longer.",
        ),
    ),
    sheet=(
        "interview_same",
        "interview_split",
        "interview_two_n",
        "interview_tree_time",
        "interview_overlap",
        "interview_checkpoint",
    ),
    replies=(
        Reply(
            "what did I leave out",
            "The points of the fold: the logs, stacks of all ranks taken twice, the flight recorders of all ranks, "
            "the usual cause, and whether to leave out a machine or look for the fault in the code.",
        ),
        Reply(
            "what does it cost",
            "On 8 ranks gather and broadcast send up to 3 N from one rank, a ring all_gather 7/8 N. An "
            "all_reduce of which you keep a chunk sends 2 x 7/8 N, a reduce_scatter half of that.",
        ),
        Reply(
            "Which term does the sheet lack",
            "The tree's formula lacks the bytes: each of the 2 log2 p levels also carries N. The ring's lacks "
            "the latency: 2 (p - 1) times alpha.",
        ),
        Reply(
            "A share of what",
            "(p - 1)/p is a share of the whole vector, here 800 MB. In shards of 100 MB it is p - 1 = 7 of them.",
        ),
    ),
)
