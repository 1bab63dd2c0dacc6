"""The questions of chapter 3: what a root sends and receives, who waits, what is left in a buffer."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="broadcast_bytes",
        topic="broadcast",
        text="4 ranks; rank 0 sends its vector of N bytes to each of the others, one after the other. How many bytes "
        "are sent in total, in units of N?",
        right=Answer("p-1", "One vector for each of the other three. Rank 0 has its own already."),
        wrong=(
            Answer("p", "4 N would be one vector for each rank. Rank 0 needs no message for what it has."),
            Answer("1", "1 N would be one send that all can hear. A message has one receiver, so there are three.", 1),
            Answer("(p-1)/p", "That would be one chunk for each of the others. Here each gets the whole vector."),
        ),
        unit="N",
        p=4,
    ),
    Number(
        name="broadcast_tree",
        topic="broadcast",
        text="8 ranks; rank 0 has a vector. In each step every rank that has it may send it to one rank that does not. "
        "After how many steps can all 8 have it?",
        right=Answer("log2(p)", "1 rank has it, then 2, then 4, then 8. The number doubles in each step."),
        wrong=(
            Answer("p-1", "7 steps is rank 0 alone. From the second step on, a second rank can help.", 2),
            Answer("p", "Rank 0 already has it, so even alone it would take 7. And from step 2 on others help.", 2),
            Answer("4", "4 would be right for 9 to 16 ranks. After step 3 it is 2 * 2 * 2 = 8 ranks.", 3),
            Answer("2", "After 2 steps 4 ranks have it; a step can only double their number.", 2),
            Answer("1", "Here a rank serves one other rank in a step. Rank 0 has one wire, not seven.", 1),
        ),
        unit="steps",
    ),
    Number(
        name="scatter_root",
        topic="scatter",
        text="4 ranks; rank 0 has a vector of N bytes, each rank is to get its own quarter. How many bytes does rank 0 "
        "send, in units of N?",
        right=Answer("(p-1)/p", "Three quarters leave, its own quarter stays where it is."),
        wrong=(
            Answer("1", "1 N would be all four quarters. Its own is already where it belongs.", 3),
            Answer("p-1", "3 N is a broadcast: the whole vector to each of the others. Here each gets a quarter.", 1),
            Answer("1/p", "1/4 N is one message. There are three of them.", 1),
        ),
        unit="N",
        p=4,
    ),
    Choose(
        name="gather_busiest",
        topic="gather",
        text="4 ranks with a quarter of N bytes each; rank 0 puts them together. Which rank has the largest load, and "
        "how large is it?",
        answers=(
            Answer("rank 0: it sends 3/4 N", "Rank 0 sent that in a scatter. In a gather all arrows point at it.", 1),
            Answer("ranks 1 to 3: each sends 1/4 N", "They send that, but rank 0 has to take in all three of them.", 3),
            Answer("rank 0: it receives 3/4 N", "Three quarters arrive at rank 0; its own quarter is there already."),
            Answer("all alike: 1/4 N each", "Each sender sends a quarter, but rank 0 receives three of them.", 3),
        ),
        right=2,
    ),
    Number(
        name="reduce_value",
        topic="reduce",
        text="4 ranks, rank r's number k is 10 r + k, and rank 0 gets the sum of all vectors. What is number 1 "
        "of its vector afterwards?",
        right=Answer("64", "1 + 11 + 21 + 31 = 64: number 1 of each of the four ranks."),
        wrong=(
            Answer("60", "60 is number 0: 0 + 10 + 20 + 30. Counting starts at 0."),
            Answer("63", "63 = 11 + 21 + 31 leaves out rank 0's own 1, which is part of the sum."),
            Answer("16", "16 is the average. Without an op, reduce adds up."),
            Answer("46", "46 = 10 + 11 + 12 + 13 adds up rank 1's vector. A reduce adds across the ranks."),
        ),
        unit="",
        p=4,
    ),
    Choose(
        name="reduce_leftovers",
        topic="reduce",
        text="Rank r passes in a vector full of `10 ** r`; the root is rank 0. What does rank 1's `x` hold after "
        "`dist.reduce`?",
        answers=(
            Answer(
                "its own numbers, all 10",
                "That is what your version by hand leaves. The built-in does not promise it: run it.",
            ),
            Answer(
                "anything: nothing is promised",
                "Only the root's buffer means anything. gloo uses the `x` of every rank as scratch space: "
                "on rank 1 it leaves parts of the sum.",
            ),
            Answer("zeros", "No rank clears it: that would be work for nothing."),
            Answer("the sum, 1111", "That is all_reduce. reduce promises the sum to the root only."),
        ),
        right=1,
    ),
    Statement(
        name="barrier_is_broadcast",
        topic="barrier",
        text="A barrier is a broadcast of zero bytes.",
        true=False,
        why="When a broadcast returns, you know that the root has called it. When a barrier returns, you know that "
        "every rank has.",
    ),
    Statement(
        name="all_collectives_synchronise",
        topic="who waits",
        text="Every collective is a synchronisation point: no rank leaves it before all ranks have entered it.",
        true=False,
        why="A rank leaves when its own part is done. In a broadcast it waits at most for the ranks above it in "
        "the tree and for those that it sends to.",
    ),
    Choose(
        name="rooted_in_place",
        topic="in place",
        text="Which of broadcast, scatter, gather and reduce can overwrite their input `x`?",
        answers=(
            Answer("broadcast and reduce", "Both have one tensor for input and output; scatter and gather have two."),
            Answer("only reduce", "broadcast too: on every rank but the root, x is where the root's vector arrives."),
            Answer("all four", "scatter and gather write into other tensors, since output and input differ in length."),
            Answer(
                "none: torch makes a new tensor",
                "These calls return nothing. You pass in the tensor that gets the result.",
            ),
        ),
        right=0,
    ),
    Statement(
        name="thousand_ranks",
        topic="broadcast",
        text="A tree broadcast on 2,000 ranks takes just one step more than on 1,000.",
        true=True,
        why="The ranks that have the vector double in each step: 10 steps reach 1,024 ranks, and 11 steps 2,048.",
    ),
    Statement(
        name="tree_saves_bytes",
        topic="reduce",
        text="All ranks together send exactly as many bytes in a tree reduce as in a flat one.",
        true=True,
        why="Each rank but the root sends one vector, once: (p - 1) N either way. The tree changes who receives them.",
    ),
)
