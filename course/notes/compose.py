"""Notes on chapter 10: what adds up, and what a float does when it is added."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            8,
            "The mean",
            "`compose_mean`. The question of the day, on the board: what of it adds up?",
        ),
        Part(
            6,
            "Metrics",
            "`compose_accuracy`. Ask what they report at work, and whether it adds up.",
        ),
        Part(
            8,
            "Write: argmax",
            "Together at the board, no laptops: one call for the value, a second one for the rank. Which op, and "
            "what do the others contribute?",
        ),
        Part(
            14,
            "The order of a sum, and its bits",
            "`compose_bits`, then the table: find a row in which the ranks differ. Why is that worse than a row "
            "that differs from another?",
        ),
        Part(
            14,
            "Collectives out of collectives",
            "The equations as a quiz, all answers on paper before the cells run. "
            "`compose_price`: the same result is not the same price.",
        ),
    ),
    ninety=(
        Again(8, "The mean", "Also `compose_half`."),
        Part(
            4,
            "Write: one blank",
            "`distributed_mean`.",
        ),
        Part(
            16,
            "Write: softmax",
            "First why: exp(1000) in front of them. Then alone.",
        ),
        Again(6, "Metrics"),
        Part(
            14,
            "Write: argmax",
            "Alone, then two versions at the wall: ties go to the lowest rank.",
        ),
        Part(
            6,
            "The price",
            "`compose_softmax_price` on paper.",
        ),
        Again(
            14, "The order of a sum, and its bits", "Then: same machine, same code, other number of ranks. Same bits?"
        ),
        Part(
            6,
            "Write: the same bits in every order",
            "Together; about four lines, one idea: do not round.",
        ),
        Again(16, "Collectives out of collectives", "Then the parameter server, as reduce + broadcast."),
    ),
    home="Softmax and the two drills, with their checks.",
    room="compose_bits",
    ask="Write the four numbers on the board: 1e8, 1, -1e8, 1. First ask for the true sum: 2. Then for what seven "
    "right algorithms say. Hands for each of the four answers; the last one gets few. Run it, and let the room "
    "find the two plans in which ranks disagree. What do these two have in common?",
    wrong=(
        Mistake(
            "compose_bits",
            "True for most plans, and the reason matters: finished once, then copied. In the exchange and the "
            "whole-vector ring every rank adds up for itself.",
            answer=2,
        ),
        Mistake(
            "compose_mean",
            "A mean of means lets one number weigh as much as four. Send sums and counts.",
        ),
        Mistake(
            "compose_scatter_gather",
            "The names fit, the plus is missing. Nothing is added up: it is a broadcast.",
        ),
        Mistake(
            "compose_half",
            "On paper both. Ask for the largest number of float16: 65504.",
        ),
        Mistake(
            "compose_accuracy",
            "The last rank has two samples and gets a quarter of the vote.",
        ),
    ),
    sheet=(
        "compose_mean",
        "compose_half",
        "compose_accuracy",
        "compose_all_to_all_sum",
        "compose_scatter_gather",
        "compose_price",
    ),
    replies=(
        Reply(
            "what of it adds up",
            "Sums and counts. A mean does not, unless all ranks have equally many numbers: send the sum and the "
            "count, and divide at the end.",
        ),
        Reply(
            "Which op, and what do the others contribute",
            "MAX for the value, MIN for the rank. A rank that does not have the value contributes the world size, "
            "which is larger than any rank, so it never wins.",
        ),
        Reply(
            "Why is that worse than a row that differs from another",
            "Two algorithms that differ in a bit are both right. Two ranks that differ no longer hold the same "
            "weights, and every later step starts from the difference.",
        ),
        Reply(
            "Same bits",
            "Usually not. Another number of ranks groups the sum differently, and each grouping rounds "
            "differently. With whole numbers whose sums fit into 24 bits nothing is rounded, and the bits agree.",
        ),
        Reply(
            "What do these two have in common",
            "Every rank adds up for itself, in an order of its own. In the others each chunk is finished once "
            "and copied, or both partners add the same two numbers.",
        ),
    ),
)
