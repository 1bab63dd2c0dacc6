"""Notes on chapter 15: letters to experts and back into their order."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(6, "A transpose", "all_to_all twice, on a 4 x 4 grid on the board: what does each rank have?"),
        Part(
            14,
            "Tokens to experts and back",
            "Four students are experts, everybody else is a token with a number on a card. Sort, count, go, come back"
            " *into your seat*. Which step did we nearly forget? The counts.",
        ),
        Part(
            11,
            "The way back",
            "`experts_way_back` and `experts_reduce`. What came goes back, and only copies need an all_reduce.",
        ),
        Part(
            10, "Too many for one expert", "`experts_skew` on paper, then the map: who sends, who receives, who waits?"
        ),
        Part(
            9,
            "Ulysses: a text too long for one GPU",
            "`ulysses_needs`: it is the transpose of the beginning, tokens for rows and heads for columns.",
        ),
    ),
    ninety=(
        Again(6, "A transpose", "Then uneven pieces: does it still undo itself?"),
        Again(8, "Tokens to experts and back"),
        Part(18, "Write: moe", "Alone, about twelve lines, with the four-line example on the wall."),
        Again(9, "The way back", "Also `experts_calls`."),
        Part(8, "Write: the backward pass of exchange", "Three lines. Ask why a test with equal counts finds nothing."),
        Part(5, "Diagnose: right shapes, wrong rows", "`experts_order` in pairs."),
        Again(9, "Too many for one expert", "Then both bottlenecks: the NIC and the computing."),
        Part(6, "A capacity, or a bias", "`experts_capacity`: dropped, and yet still in the batch."),
        Again(7, "Ulysses: a text too long for one GPU"),
        Part(
            14,
            "Ring attention: keys and values travel",
            "`ulysses_myth_heads` first: 8 KV heads, so 8 ranks. `cp_ring_bytes`. Then four students in a ring, each "
            "with a query on the desk and a key on a card. The cards go round. What does each keep of a card "
            "that goes on? The example with two scores, by hand, and the table of the three ways.",
        ),
    ),
    home="`moe` and `to_heads`; then ring attention with its exercise; *A capacity, or a bias* and the estimate.",
    room="experts_skew",
    ask="Write the four rows 40, 8, 8, 8 under each other. Ask: how many times longer than 16, 16, 16, 16? Those who "
    "look at rows say about 1.2, those who look at columns say 2.5. Let one of each explain before the model "
    "runs. The column is what arrives.",
    wrong=(
        Mistake(
            "experts_skew",
            "They count what is sent. Rank 0's NIC has to *receive* 3 x 40 instead of 3 x 16. The busiest rank "
            "sends or receives most: chapter 3.",
            answer=1,
        ),
        Mistake(
            "experts_reduce",
            "The expert has seen its tokens from all ranks: its gradient is whole. Adding those of other experts "
            "would be a mixture of strangers.",
            answer=2,
        ),
        Mistake(
            "experts_calls",
            "Two there, two back, and the counts first: no rank knows yet how much comes. Backward both lists are "
            "known.",
            answer=2,
        ),
        Mistake(
            "experts_capacity",
            "There is no next step for them: the layers above need all tokens now. The residual carries them.",
        ),
        Mistake(
            "ulysses_needs",
            "It would do, with four times the memory. Attention needs all tokens of a head, not all heads.",
            answer=3,
        ),
    ),
    sheet=("experts_way_back", "experts_reduce", "experts_skew", "experts_capacity", "cp_ring_bytes"),
    replies=(
        Reply(
            "What does each keep of a card that goes on",
            "Not the key: three things for its query, which are the largest score so far, the sum of the powers, and "
            "the sum of the values with these weights.",
        ),
        Reply(
            "what does each rank have",
            "After the first: column r of the grid, piece r of every rank. After the second: its own row again, "
            "as at the start.",
        ),
        Reply(
            "Which step did we nearly forget",
            "The counts. A rank must know how many tokens come from each rank before it can make room for them.",
        ),
        Reply(
            "who sends, who receives, who waits",
            "Every rank sends: rank 0 24 tokens, each of the others 56. Rank 0 receives 120, each of the others "
            "24. All wait for what comes into rank 0.",
        ),
        Reply(
            "does it still undo itself",
            "Yes, if the second call swaps the two lists of sizes: each rank sends back as many to each rank as "
            "came from it.",
        ),
        Reply(
            "how many times longer than 16, 16, 16, 16",
            "2.5 times: rank 0's NIC receives 3 x 40 tokens instead of 3 x 16, and sends fewer than before.",
        ),
    ),
)
