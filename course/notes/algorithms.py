"""Notes on chapter 7: doubling, drawn on the board; every algorithm is one picture and one formula."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            12,
            "Trees",
            "`algorithms_up_and_down` by clapping, up and down (if you clapped in chapter 3, ask only). Then bytes: "
            "`algorithms_tree_busiest`.",
        ),
        Part(
            8,
            "Recursive doubling",
            "Eight students in a row, pairs at distance 1, 2, 4. After each round everybody says whose numbers "
            "they have. Then `algorithms_doubling`.",
        ),
        Part(
            10,
            "Halving and doubling",
            "The same eight students; each pair tears its sheet of paper in half. `algorithms_halving`.",
        ),
        Part(
            7,
            "Which order, and why?",
            "A line through the middle of the row is the slow cable. Which message crosses it? `algorithms_order`.",
        ),
        Part(
            8,
            "Two trees, cut into chunks",
            "Find one rank in both trees on the board: inner here, leaf there. `algorithms_double_tree`.",
        ),
        Part(
            5,
            "All of them, run and priced",
            "The table for 64 ranks: which row for 100 bytes, which for 1 GB?",
        ),
    ),
    ninety=(
        Again(18, "Trees", "Also the blank of `tree_reduce`: try it with 6 ranks on paper first."),
        Again(20, "Recursive doubling", "12 minutes for `recursive_doubling_all_reduce`."),
        Again(12, "Halving and doubling", "What happens on 6 ranks?"),
        Again(10, "Which order, and why?", "The code for it is homework."),
        Again(6, "Two trees, cut into chunks"),
        Again(10, "All of them, run and priced", "`algorithms_measured`, then the clock."),
        Part(
            4,
            "Myth check",
            "Both, hands only.",
        ),
        Part(
            4,
            "Extra: how many chunks?",
            "`algorithms_chunk_steps`: why does 1 GB want many?",
        ),
        Part(
            6,
            "Extra: Bruck, doubling for any p",
            "`algorithms_bruck` at the picture.",
        ),
    ),
    home="`tree_reduce` and `recursive_doubling_all_reduce`; Bruck and the right order for those who want more.",
    room="algorithms_order",
    ask="Draw eight ranks, a line between 3 and 4, and the three distances. Most say that it makes no difference: the"
    " bytes are the same. Let them write the length of each message on its arrow, for both orders, and add up "
    "what crosses the line.",
    wrong=(
        Mistake(
            "algorithms_order",
            "The same bytes in all, and not over the same wires. The first message is the longest: where does it go?",
        ),
        Mistake(
            "algorithms_tree_busiest",
            "Up once, down once is a leaf's parent. Rank 0 tells three ranks, one in each step.",
            answer=1,
        ),
        Mistake(
            "algorithms_doubling",
            "They count up and down. Here there is no down: both partners have the sum.",
        ),
        Mistake(
            "algorithms_measured",
            "They learned to count steps a minute ago. Ask what 2 MB cost and what a step costs on this network: 1 ms.",
            answer=0,
        ),
        Mistake(
            "algorithms_myth_powers",
            "They think that fewer ranks need fewer steps. Draw the two extra ranks: hand over, wait, get it back. "
            "Trees "
            "need no detour, and take more steps even so: 6 on 6 ranks.",
        ),
    ),
    sheet=(
        "algorithms_up_and_down",
        "algorithms_tree_busiest",
        "algorithms_doubling",
        "algorithms_order",
        "algorithms_myth_total",
    ),
    replies=(
        Reply(
            "Which message crosses it",
            "Only the one to the partner at distance 4. Nearest first, that is an eighth of the vector, once in "
            "the reduce-scatter and once in the all-gather. Farthest first, it is half of the vector, twice.",
        ),
        Reply(
            "which row for 100 bytes, which for 1 GB",
            "For 100 bytes recursive doubling: 6 steps, 0.12 ms. For 1 GB halving-doubling or the ring, which "
            "send the fewest bytes: 0.98 and 0.99 s.",
        ),
        Reply(
            "why does 1 GB want many",
            "A rank passes a chunk on when it has all of it, so the ranks at the top are idle until the first "
            "chunk has climbed the tree. The smaller the chunk, the shorter that is. Each chunk costs one more "
            "start, which 1 GB does not notice.",
        ),
        Reply(
            "What happens on 6 ranks",
            "The two extra ranks hand their whole vector to a neighbour and wait for the result. The neighbour "
            "sends 1.5 N as one of four and that result besides: 2.5 N in all.",
        ),
        Reply(
            "where does it go",
            "To the first partner. So the first partner should be the nearest, on the same machine.",
        ),
    ),
)
