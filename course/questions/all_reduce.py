"""The questions of chapter 5: what each plan sends, and who carries it."""

from course.questions.question import Answer, Choose, Click, Number, Statement

QUESTIONS = (
    Number(
        name="naive_messages",
        topic="all_reduce",
        text="You counted this plan in chapter 0, on 4 ranks. Every rank sends its vector to "
        "rank 0, which adds them up and sends the sum back to each. How many messages is that on 8 ranks?",
        right=Answer("2*(p-1)", "Seven vectors go in, seven sums come out."),
        wrong=(
            Answer("p-1", "That is one way only: seven vectors go in. The seven sums have to come back, too."),
            Answer("p*(p-1)", "That would be every rank to every other rank. Ranks 1 to 7 only talk to rank 0."),
            Answer("2*p", "That counts two messages from rank 0 to itself. It has its own vector already."),
            Answer("6", "That was for 4 ranks. Now seven other ranks send a vector and get the sum."),
        ),
        unit="messages",
        p=8,
    ),
    Number(
        name="naive_busiest",
        topic="all_reduce",
        text="In the same plan on 4 ranks, how many bytes does the busiest rank send? Answer in N, the bytes of one "
        "rank's "
        "vector.",
        right=Answer("p-1", "Rank 0 sends the whole sum to each of the other three ranks. The others send 1 N each."),
        wrong=(
            Answer("1", "That is what ranks 1 to 3 send. Rank 0 sends the whole sum three times.", 4),
            Answer("2*(p-1)", "That adds up what rank 0 sends and what it receives: 3 N out and 3 N in."),
            Answer("p", "That counts a message from rank 0 to itself. It has the sum already: three messages of N."),
        ),
        unit="N",
        p=4,
    ),
    Number(
        name="exchange_busiest",
        topic="all_reduce",
        text="Exchange on 4 ranks: every rank sends its vector to every other rank, all at once, and adds up what it "
        "gets. How many bytes does the busiest rank send now? Answer in N.",
        right=Answer("p-1", "Three messages of N each. Every rank now sends as much as rank 0 did in the naive plan."),
        wrong=(
            Answer("1", "It is one vector, but it goes to three ranks: three messages of N."),
            Answer("p*(p-1)", "That is the total of all four ranks. Each of them sends a quarter of it."),
            Answer(
                "2*(p-1)",
                "That would count an answer to each message. Nothing comes back here: every rank adds up for itself.",
            ),
        ),
        unit="N",
        p=4,
    ),
    Choose(
        name="whole_ring_busiest",
        topic="all_reduce",
        text="Whole vectors round a ring of 4: pass your vector to the right, add what comes from the left, pass that "
        "on, three times. Compared with the 3 N of the exchange, how much does each rank send?",
        answers=(
            Answer("1 N: one neighbour, one vector", "One neighbour, but three steps, with a whole vector in each."),
            Answer("3 N: just as much", "Three steps, and a whole vector of N in each."),
            Answer(
                "1.5 N: half of it", "Nothing is cut here: in each of the three steps a whole vector of N goes out."
            ),
            Answer("6 N: twice as much", "It takes three steps, not six: after them every rank has seen all vectors."),
        ),
        right=1,
    ),
    Click(
        name="ring_first_step",
        topic="all_reduce",
        text="Each chunk goes right, visits every rank, and is finished at the rank with its own number (chunk 2 at "
        "rank 2). On each rank, click the cell that the first step changes.",
        step=1,
        why="Chunk 2 has to reach rank 2 last, after three hops to the right. So it starts at rank 3, and its first "
        "hop ends at rank 0. In the same way, rank r sends chunk r - 1 and receives chunk r - 2.",
    ),
    Statement(
        name="ring_same_bits",
        topic="all_reduce",
        text="After a ring all-reduce of random floats, all ranks hold exactly the same bits.",
        true=True,
        why="Each chunk is finished once, on one rank, and then only copied. (In the exchange and in plan 3 each "
        "rank adds in an order of its own, so there the ranks' last bits can differ.) Your ring and the built-in agree "
        "only up to rounding: they add in different orders, too.",
    ),
    Number(
        name="ring_many_ranks",
        topic="all_reduce",
        text="On 4 ranks each rank of the chunked ring sends 1.5 N, and on 64, as chapter 0 printed, 1.97 N. How "
        "much is it on 16 ranks? Answer in N.",
        right=Answer(
            "2*(p-1)/p",
            "2 (p - 1) chunks of N/p. Some texts call this constant. It is not, but it stays below 2 N for any p.",
        ),
        wrong=(
            Answer("1.5", "It grows a little: 2 (p - 1)/p is 1.5 for 4 ranks, but not for 16."),
            Answer("p-1", "That is the whole-vector ring. Here each message is N/p, 16 times smaller."),
            Answer("(p-1)/p", "That is one half of the ring. The other half sends as much again."),
            Answer("2*(p-1)", "That is the number of chunks. Each of them has N/16 bytes."),
            Answer("2", "It comes close to 2 N on very many ranks. On 16 there are 30 chunks of N/16."),
        ),
        unit="N",
        p=16,
        within=0.02,
    ),
    Choose(
        name="few_bytes_win",
        topic="all_reduce",
        text="4 ranks, a vector of 16 bytes. A message costs 20 microseconds to start; 16 bytes cost next to nothing "
        "to carry. Which plan finishes first?",
        answers=(
            Answer(
                "exchange: it has the fewest starts in a row",
                "Each rank starts 3 messages one by one, all ranks at once: 3 starts in a row, 60 microseconds.",
            ),
            Answer(
                "naive: it has the fewest messages",
                "6 messages, but all through rank 0, one by one: 6 starts in a row, 120 microseconds.",
            ),
            Answer(
                "ring: its busiest rank has the fewest bytes",
                "It has 6 steps, and each waits for the one before: 6 "
                "starts, 120 microseconds. Bytes do not count here.",
            ),
        ),
        right=0,
    ),
    Number(
        name="naive_over_ring",
        topic="all_reduce",
        text="4 ranks, a vector of 1 MB, a network of 12.5 MB/s and 1 ms: a whole vector takes 81 ms, a chunk of a "
        "quarter 21 ms. Divide naive's time by the ring's. What do you get?",
        right=Answer("(6*81)/(6*21)", "Six whole vectors, one after the other: 486 ms. Six chunks: 126 ms."),
        wrong=(
            Answer("1", "Both have six messages one after the other, but those of the ring are four times shorter."),
            Answer(
                "2",
                "3 N against 1.5 N is what the busiest rank sends. But rank 0 must receive 3 N before it can "
                "send 3 N: six vectors, one after the other.",
            ),
            Answer(
                "6", "Six is how many messages come one after the other, in both plans. Those of the ring are shorter."
            ),
            Answer("1/4", "The other way round: the ring sends quarters, so the ring is the fast one."),
        ),
        unit="times",
        p=4,
        within=0.05,
    ),
    Statement(
        name="message_table",
        topic="all_reduce",
        text="This table shows that the ring sends fewer messages than naive.",
        true=False,
        why="The row of naive is the exchange's messages, p (p - 1). The row of the ring is its steps, 2 (p - 1); in "
        "each step all p ranks send. By messages naive wins, and the ring sends the most of all.",
    ),
)
