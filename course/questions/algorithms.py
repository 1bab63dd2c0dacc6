"""The questions of chapter 7: how many steps, how many bytes, and which order."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="algorithms_up_and_down",
        topic="trees",
        text="A reduce up a tree and then a broadcast down it, on 16 ranks. How many steps do they take together?",
        right=Answer(
            "2*log2(p)",
            "Four up: after each step half as many ranks still have a sum to pass on, 8, 4, 2, 1. Four down: "
            "twice as many have the result, 2, 4, 8, 16.",
        ),
        wrong=(
            Answer("log2(p)", "That is one way. The sum goes up in 4 steps, and comes down in 4 more."),
            Answer(
                "2(p - 1)",
                "That is the number of messages, and of the steps if rank 0 did it all. Here many share a step.",
            ),
            Answer("p - 1", "That is the number of messages up the tree. Many of them share a step."),
            Answer("6", "That was for 8 ranks, 3 up and 3 down. 16 ranks need one more each way."),
        ),
        unit="steps",
        p=16,
    ),
    Number(
        name="algorithms_tree_busiest",
        topic="trees",
        text="What does the busiest rank of the tree send in the whole all-reduce, on 8 ranks?",
        right=Answer(
            "log2(p)",
            "Rank 0 sends the whole vector to ranks 4, 2 and 1 on the way down. (Rank 4 sends as much: one up, two "
            "down.) On 1,024 ranks it is 10 N, where a rank of the ring stays below 2 N.",
        ),
        wrong=(
            Answer("1", "That is the way up, where each rank sends once. On the way down some send more."),
            Answer("2", "Up once and down once: but rank 0 has three ranks to tell, one in each step."),
            Answer("p - 1", "That is naive, where rank 0 tells all others itself. Here the others help."),
            Answer("2*log2(p)", "That is the number of steps. On the way up rank 0 only receives."),
            Answer("2(p - 1)/p", "That is the ring, which sends chunks. A plain tree sends whole vectors."),
        ),
        unit="N",
        p=8,
    ),
    Number(
        name="algorithms_doubling",
        topic="doubling",
        text="16 ranks, each with its own vector. After how many steps does every rank have the sum of all?",
        right=Answer("4", "After each step a rank has the sum of twice as many: 2, 4, 8, 16."),
        wrong=(
            Answer("2*log2(p)", "That is a tree, up and then down. Here both partners have the sum at once."),
            Answer("2(p - 1)", "That is the ring, where each chunk passes one more rank in a step."),
            Answer("p - 1", "That would be one other rank in each step. A partner brings all it has added so far."),
        ),
        unit="steps",
        p=16,
    ),
    Number(
        name="algorithms_halving",
        topic="halving",
        text="How much does every rank send in all, on 8 ranks?",
        right=Answer(
            "2(p - 1)/p",
            "1/2 + 1/4 + 1/8 = 7/8 in the reduce-scatter, and 7/8 in the all-gather: the bytes of the ring, in 2 "
            "log2(p) steps. That is the best of both, if all links are equally fast and p is a power of two.",
        ),
        wrong=(
            Answer("(p - 1)/p", "That is the reduce-scatter. The all-gather sends as much again."),
            Answer(
                "log2(p)",
                "That is recursive doubling: 3 steps, each with a whole vector. Here each step sends half of the last.",
            ),
            Answer("2", "Close: it would be 2 N if the halves went on forever. It stops at 1/8."),
            Answer("1", "1/2 + 1/4 + 1/8 is a little less than 1, and then comes the all-gather."),
        ),
        unit="N",
        p=8,
    ),
    Choose(
        name="algorithms_order",
        topic="halving",
        text="Ranks 0 to 3 are one machine, ranks 4 to 7 another. How much does one rank send to the other machine?",
        answers=(
            Answer(
                "The same in both orders", "In total, yes. But the messages have different lengths: which one crosses?"
            ),
            Answer(
                "Nearest first 1/4 N, farthest first 1 N",
                "Only the partner at distance 4 is on the other machine. Nearest first it is the third partner: the "
                "rank sends it N/8 in the reduce-scatter and N/8 in the all-gather. Farthest first it is the first "
                "partner: N/2 and N/2.",
            ),
            Answer(
                "Nearest first 1 N, farthest first 1/4 N",
                "The other way round: what comes first is long. Farthest first sends N/2 to the other machine.",
            ),
            Answer(
                "Nearest first 1/8 N, farthest first 1/2 N",
                "That is the reduce-scatter alone. In the all-gather the rank sends as much again.",
            ),
        ),
        right=1,
    ),
    Number(
        name="algorithms_double_tree",
        topic="trees",
        text="A rank is an inner rank of one tree, with two children, and a leaf of the other. Each tree carries N/2, "
        "up and down. How much does that rank send in all?",
        right=Answer("2", "Inner: N/2 up and 2 x N/2 down. Leaf: N/2 up. Together 2 N."),
        wrong=(
            Answer("3", "That is an inner rank of one tree that carries all of N. Each tree has only half of it."),
            Answer("3/2", "That is its part as an inner rank. As a leaf of the other tree it sends N/2 up."),
            Answer("4", "Three as an inner rank and one as a leaf: but each tree carries only N/2."),
            Answer("1", "That is the way up in both trees. The inner rank passes the sum down, too, to two children."),
        ),
        unit="N",
        p=8,
    ),
    Number(
        name="algorithms_chunk_steps",
        topic="trees",
        text="The double tree on 64 ranks with chunks=8, four in each tree. How many steps does it take?",
        right=Answer(
            "2*log2(p) + 8/2 - 1",
            "12 steps for the first chunk of each tree. The other three of the tree follow one step apart: 12 + 3.",
        ),
        wrong=(
            Answer("2*log2(p)", "That is the first chunk. Three more follow in the same tree, each one step later."),
            Answer(
                "2*log2(p) + 8 - 1", "That would be all eight chunks in one tree. The two trees run at the same time."
            ),
            Answer("2*log2(p) + 8/2", "The first chunk is one of the four. Only three follow it."),
            Answer(
                "2*log2(p)*8/2",
                "The second chunk does not wait until the first one has arrived: it follows one step behind.",
            ),
        ),
        unit="steps",
        p=64,
    ),
    Choose(
        name="algorithms_chunks",
        topic="trees",
        text="The double tree on 64 ranks, for 1 MB. Which number of chunks is fastest?",
        answers=(
            Answer(
                "512",
                "1,042 messages in a row, and each takes 20 + 1 microseconds: 21.9 ms.",
            ),
            Answer("8", "33 messages in a row, and each takes 20 + 62.5 microseconds: 2.7 ms."),
            Answer(
                "2",
                "Only 22 messages in a row. But each takes 20 + 250 microseconds: 5.9 ms.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="algorithms_measured",
        topic="cost",
        text="2 MiB (2,097,152 bytes) on four ranks: recursive doubling (2 steps), halving-doubling (4) and the ring "
        "(6). Which is slowest?",
        answers=(
            Answer("The ring", "It has the most steps, but 6 ms are little beside 252 ms of bytes."),
            Answer("Halving-doubling", "It sends as few bytes as the ring, 1.5 N, in fewer steps."),
            Answer(
                "Recursive doubling",
                "2 N against 1.5 N: 336 ms of bytes against 252 ms. A step is only 1 ms. For 16 "
                "bytes the steps decide, 2 against 6.",
            ),
        ),
        right=2,
    ),
    Statement(
        name="algorithms_myth_powers",
        topic="trees",
        text="Recursive doubling takes fewer steps on 6 ranks than on 8.",
        true=False,
        why="On 6 ranks two are extra: one step to give away their vectors, two for the other four, one to bring the "
        "sum back.",
    ),
    Statement(
        name="algorithms_myth_total",
        topic="cost",
        text="With p a power of two, the ring, halving-doubling and the plain tree send the same number of bytes, all "
        "ranks together.",
        true=True,
        why="2(p - 1) N each time: p - 1 vectors must be added to one, and p - 1 ranks must get the "
        "sum. They differ in which rank sends it and when.",
    ),
    Number(
        name="algorithms_bruck",
        topic="bruck",
        text="Five ranks, each with one chunk. Each rank sends one chunk in the first step, two in the second. How "
        "many in the third?",
        right=Answer("1", "After two steps a rank has 4 of 5 chunks. Only the missing one is sent."),
        wrong=(
            Answer("4", "That would be doubling once more, to 8 chunks. There are only 5."),
            Answer("3", "1, 2, 3 adds up to 6, and only 4 chunks were missing at the start."),
            Answer("2", "A rank has 1 + 1 + 2 = 4 chunks before this step."),
        ),
        unit="chunks",
        p=5,
    ),
)
