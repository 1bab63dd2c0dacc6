"""The questions of chapter 4: what a rank holds and sends when there is no root, and which collective to choose."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="all_gather_sends",
        topic="all_gather",
        text="4 ranks, each has a quarter of N bytes. All chunks go round the ring until every rank has all four. "
        "How many bytes does one rank send, in units of N?",
        right=Answer("(p-1)/p", "Three times a chunk of N/4, its own and two that it passes on."),
        wrong=(
            Answer(
                "1",
                "1 N would be four chunks. The last chunk that arrives is not passed on: it started at the next rank.",
                3,
            ),
            Answer("1/p", "1/4 N is its own chunk, in step 1. In steps 2 and 3 it passes on what has come.", 2),
            Answer("p-1", "It is three messages, but each is a quarter of N.", 1),
            Answer("2*(p-1)/p", "1.5 N is what it sends and what it receives together: 3/4 N out, 3/4 N in."),
        ),
        unit="N",
        p=4,
    ),
    Number(
        name="reduce_scatter_value",
        topic="reduce_scatter",
        text="4 ranks, rank r's number k is 10 r + k. After a reduce_scatter each rank has one number. Which one does "
        "rank 2 have?",
        right=Answer("68", "2 + 12 + 22 + 32 = 68: number 2 of every rank."),
        wrong=(
            Answer("86", "86 = 20 + 21 + 22 + 23 adds up rank 2's own vector. The sum goes across the ranks."),
            Answer("64", "64 = 1 + 11 + 21 + 31 is number 1 of the sum, and belongs to rank 1. Counting starts at 0."),
            Answer("72", "72 = 3 + 13 + 23 + 33 is number 3 of the sum, and belongs to rank 3."),
            Answer("46", "46 = 2 + 12 + 32 leaves out rank 2's own 22: it does not travel, but it counts."),
            Answer("22", "22 is what rank 2 had before. The other three add theirs to it.", 1),
        ),
        unit="",
        p=4,
    ),
    Statement(
        name="reduce_scatter_length",
        topic="reduce_scatter",
        text="x has 4 numbers on each of 4 ranks; `reduce_scatter_single(out, x)` needs an `out` of 4 numbers.",
        true=False,
        why="Each rank gets one chunk of the sum: 4 / 4 = 1 number. With an out of 4 numbers torch expects 16 numbers "
        "of input, gets 4, and raises an error that says `16 vs. 4`.",
    ),
    Statement(
        name="padding",
        topic="lengths",
        text="To reduce_scatter 10 numbers on 4 ranks, every rank may add two zeros at the end, and the last rank "
        "drops its last two numbers afterwards.",
        true=True,
        why="12 numbers are 4 chunks of 3. The two zeros are added up to zeros, at the end of rank 3's chunk. FSDP "
        "pads like this. With `MAX` zeros are fine, too: they meet only zeros, and are dropped.",
    ),
    Number(
        name="two_halves",
        topic="all_reduce",
        text="4 ranks with a vector of N bytes each. First a reduce_scatter, then an all_gather of the chunks. "
        "How many bytes does one rank send in both calls together, in units of N?",
        right=Answer("2*(p-1)/p", "Three chunks of N/4 in the first half, and three in the second."),
        wrong=(
            Answer("(p-1)/p", "3/4 N is the first half alone. Then each rank has a chunk of the sum, not the sum.", 3),
            Answer("2", "2 N would be four chunks in each half. In each half a rank sends three chunks, not four."),
            Answer("2*(p-1)", "6 N is what all four ranks send together."),
            Answer("p-1", "3 N is what all four ranks send together in one half."),
        ),
        unit="N",
        p=4,
    ),
    Choose(
        name="choose_nan",
        topic="which collective",
        text="Each rank knows whether its own gradients hold a NaN (flag 1) or not (flag 0). If any rank has a NaN, "
        "all ranks must skip this step. Which collective do you call on the flag?",
        answers=(
            Answer("reduce with MAX to rank 0", "Then rank 0 knows. The others would go on and train on the NaN."),
            Answer("all_reduce with MIN", "The smallest flag is 1 only if all ranks have a NaN. One is enough."),
            Answer("barrier", "A barrier carries no data: all ranks wait, and none knows more."),
            Answer("all_reduce with MAX", "1 as soon as any rank has a 1, and every rank has the same answer."),
        ),
        right=3,
    ),
    Choose(
        name="all_to_all_rank_1",
        topic="all_to_all",
        text="Rank 1 starts with 10, 11, 12, 13 and sends 12 to rank 2. What does it hold after the all_to_all?",
        answers=(
            Answer("10, 11, 12, 13", "Only its own 11 stays. The other three were for other ranks.", 1),
            Answer("1, 11, 21, 31", "Number 1 of every rank, in the order of the senders."),
            Answer(
                "11, 1, 31, 21",
                "Those are the right numbers in the order of their arrival. all_to_all sorts them by sender.",
            ),
            Answer("64, on every rank", "Nothing is added up here. That would be number 1 of an all_reduce."),
        ),
        right=1,
    ),
    Choose(
        name="choose_gradients",
        topic="which collective",
        text="Each rank has gradients of 100 MB. They are to be added up, and each rank updates its own quarter of the "
        "weights.",
        answers=(
            Answer("reduce_scatter", "Each rank sends 75 MB, and gets just the quarter that it needs."),
            Answer("all_reduce", "The numbers are right, but each rank sends 150 MB and throws away three quarters."),
            Answer(
                "reduce, then scatter",
                "The numbers are right, but all of it goes through the root. In the flat plan 300 MB arrive there.",
            ),
            Answer("scatter", "A scatter hands out one rank's numbers. Nothing is added up."),
        ),
        right=0,
    ),
    Choose(
        name="choose_weights",
        topic="which collective",
        text="Each rank keeps a quarter (25 MB) of a layer's weights, and every rank needs the whole layer.",
        answers=(
            Answer(
                "all_reduce, each rank with zeros for what it does not have",
                "The numbers are right, but each rank sends 150 MB: it adds up zeros.",
            ),
            Answer("broadcast from rank 0", "Rank 0 has a quarter, and cannot broadcast what it does not have."),
            Answer("gather", "Then one rank has the layer. All four need it."),
            Answer("all_gather", "Each rank sends 75 MB: three chunks of 25 MB, passed on round the ring."),
        ),
        right=3,
    ),
    Choose(
        name="choose_tokens",
        topic="which collective",
        text="Each rank has 100 MB of tokens. A quarter of them need the expert on rank 0, a quarter the one on "
        "rank 1, and so on.",
        answers=(
            Answer("all_gather", "The tokens arrive, but each rank sends 300 MB and throws away three quarters."),
            Answer("reduce_scatter", "It would add up the tokens of different ranks. They must stay apart."),
            Answer("all_to_all", "Each rank sends 75 MB: each token goes to its expert and nowhere else."),
            Answer(
                "four scatters, one from each rank",
                "The same bytes, but only one root sends at a time. It takes four times as long.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="choose_bucket",
        topic="which collective",
        text="DDP copies many small gradients into one long tensor, a bucket, and averages it over the"
        " ranks. Every rank then updates all of its weights. Which call, on the bucket?",
        answers=(
            Answer(
                "reduce_scatter",
                "That leaves each rank a quarter of the averages. FSDP calls it, because there a "
                "rank updates only its quarter.",
            ),
            Answer(
                "all_gather",
                "It would work, and nothing is thrown away, so the rule does not help here. Then count bytes. "
                "Each rank sends three buckets, where an all_reduce sends one and a half. And each adds it all up.",
            ),
            Answer(
                "all_reduce",
                "All ranks need the whole sum. A bucket only packs many tensors into one call. The right call stays "
                "the same.",
            ),
            Answer("broadcast from rank 0", "Every rank would get the gradients of rank 0's data, and of no other."),
        ),
        right=2,
    ),
    Choose(
        name="choose_lookup",
        topic="which collective",
        text="A table of 1,000,000 rows of 256 bytes (256 MB) is spread over 4 ranks, a quarter on each. "
        "Each rank needs 1,000 rows, a quarter of them from each rank. What sends the least?",
        answers=(
            Answer(
                "all_gather of the table",
                "The rows are right, but each rank sends 192 MB and throws away 999 of 1,000 rows.",
            ),
            Answer("broadcast from each rank in turn", "The same 192 MB as all_gather, only one root after the other."),
            Answer(
                "all_to_all of the ids, then of the rows",
                "A quarter of the 1,000 rows is its own. A rank sends 750 ids of 8 bytes and 750 rows of 256 "
                "bytes: 0.2 MB.",
            ),
            Answer(
                "all_reduce of the rows found",
                "It works after an all_gather of the ids, with zeros for rows that a rank does not have. But the "
                "vector holds the 4,000 rows of all ranks, 1 MB, and an all_reduce sends 1.5 times that.",
            ),
        ),
        right=2,
    ),
)
