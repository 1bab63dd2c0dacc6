"""Notes on chapter 5: the line of chapter 0, written four times; the ring is the heart of the first half."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            10,
            "Plan 1, naive: through rank 0",
            "`naive_messages` and `naive_busiest`, run `naive`, then the Timeline: where is rank 3 while rank 0 works?",
        ),
        Part(
            5,
            "Plan 2, exchange: everyone to everyone",
            "`exchange_busiest`. Fair is not the same as cheap.",
        ),
        Part(
            5,
            "Plan 3: whole vectors round a ring",
            "`whole_ring_busiest`. The pattern is good, the cargo is too big.",
        ),
        Part(
            12,
            "Plan 4: chunks round a ring",
            "Follow ONE chunk, number 0, with a finger on the closed picture: from rank 1 over 2 and 3 to 0, p - 1 "
            "hops to collect, then p - 1 to hand out. Then everybody clicks the cells of `ring_first_step`, one on "
            "each rank: chunk 2 on rank 0, 3 on 1, 0 on 2, 1 on 3. Do not explain it before.",
        ),
        Part(
            5,
            "Replay",
            "Step through the ring. Ask twice: whose numbers are in this cell?",
        ),
        Part(
            6,
            "The price",
            "`ring_many_ranks`, then the table.",
        ),
        Part(
            7,
            "In seconds",
            "The formula and `few_bytes_win`. End at the Race: move N until "
            "the exchange wins. That is below 80 kB, where the three starts it saves (3 α) weigh more than the 1.5 N "
            "it sends in addition (1.5 N β).",
        ),
    ),
    ninety=(
        Again(12, "Plan 1, naive: through rank 0"),
        Again(6, "Plan 2, exchange: everyone to everyone"),
        Again(6, "Plan 3: whole vectors round a ring"),
        Again(12, "Plan 4: chunks round a ring", "Four students with four cards each can act it; p is small enough."),
        Part(
            6,
            "Write the first half: one blank",
            "On paper first: the chunk that arrives is the one that the left-hand neighbour has just sent.",
        ),
        Part(
            16,
            "Write the second half",
            "Alone. Read the verdict's line about the busiest rank aloud when the first one is green.",
        ),
        Again(5, "Replay"),
        Part(
            6,
            "The price",
            "`ring_many_ranks` and the table.",
        ),
        Part(
            6,
            "In seconds",
            "The formula and the Race.",
        ),
        Part(
            10,
            "Measured, on a network",
            "`naive_over_ring` before, the ratios after. If a ratio is far from 1, say so, and ask what the model"
            " leaves out.",
        ),
        Part(
            5,
            "Myth check",
            "`message_table` is in real course notes. Let them find what the row really counts.",
        ),
    ),
    home="Both halves of the ring, with their checks; `ring_any_length` for those who want more.",
    room="ring_many_ranks",
    ask="Everybody writes a number on paper before a hand goes up. You will hear 1.5, 15 and 30. Do 4 ranks together"
    " (6 chunks of N/4), then ask for 16 again: 30 chunks of N/16. The number that stays is *below 2 N, for any "
    "p*.",
    wrong=(
        Mistake(
            "ring_many_ranks",
            "They take 1.5 for a constant. It is 2 (p - 1)/p: compute it for 2, 4, 8 on the board and let them "
            "see where it goes.",
        ),
        Mistake(
            "ring_many_ranks",
            "They forget to cut. p - 1 messages, yes, but of N/p each, and in two halves.",
            answer=1,
        ),
        Mistake(
            "naive_busiest",
            "A wire carries both directions at once, so do not add up what is sent and what is received.",
            answer=1,
        ),
        Mistake(
            "whole_ring_busiest",
            "One neighbour is not one message. Step through plan 3 and count rank 1's arrows.",
        ),
        Mistake(
            "naive_over_ring",
            "3 N against 1.5 N is a factor of 2, and the clock says nearly 4. Rank 0 must have received the last "
            "vector before the first sum can leave.",
            answer=1,
        ),
    ),
    sheet=(
        "naive_messages",
        "naive_busiest",
        "whole_ring_busiest",
        "ring_many_ranks",
        "few_bytes_win",
    ),
    replies=(
        Reply(
            "where is rank 3 while rank 0 works",
            "It waits: in `send` until rank 0 has taken the vectors of ranks 1 and 2, then in `recv` until "
            "its copy of the sum comes, last of all.",
        ),
        Reply(
            "whose numbers are in this cell",
            "Those that the letters name. During the reduce-scatter each step adds one rank's; a finished "
            "cell has all four, and in the all-gather cells are copied and no longer added.",
        ),
    ),
    thrown_in=(
        Reply(
            "What was N",
            "The bytes of one rank's vector, not of all: 4 numbers of 4 bytes, 16. All ranks together hold p N.",
        ),
        Reply(
            "NVLS sends less than 2 N, so what is your bound worth",
            "It is for ranks that add and copy, as the take-away says. A switch that adds is something else: chapter "
            "9 counts it.",
        ),
        Reply(
            "Does NCCL wait for a whole chunk",
            "No, it cuts chunks into slices and passes a slice on at once. Each rank sends the same bytes; only the "
            "wait for the first of them is shorter.",
        ),
        Reply(
            "Just tell me which one to take",
            "The table *Which one, when?* does: the ring for long vectors, the exchange for short ones on two or three "
            "ranks, the algorithms of chapter 7 for short ones on more.",
        ),
        Reply(
            "Is 1.5 N measured or computed",
            "Both: `launch.recording().counts().sent` after *Replay* is 24 bytes on each rank, and N is 16. Seconds "
            "are measured under *Measured, on a network*, on a slow network that a laptop plays: no GPU took part.",
        ),
        Reply(
            "A cell says that `my_ring` or `naive` is not defined, and now",
            "A cell above it was skipped: in JupyterLab's menu *Run*, take *Run All Above Selected Cell*.",
        ),
    ),
)
