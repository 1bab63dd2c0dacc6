"""The questions of chapter 0: a message that is missing, models that drift apart, and what one rank has to carry."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Choose(
        name="forgotten",
        topic="deadlock",
        text="Rank 2 sends to ranks 0 and 1 only. What does rank 3 do in its `recv`?",
        answers=(
            Answer(
                "It waits, until a timeout ends it.",
                "`recv` waits until its message comes, and rank 2 never sends one to rank 3.",
            ),
            Answer(
                "It fails at once: there is no message from rank 2.",
                "Rank 3 cannot know that. To rank 3 a message that is late looks just like one that is never sent.",
            ),
            Answer(
                "It leaves `x` as it is and goes on.",
                "`recv` does not look and leave: it waits until a message arrives. Rank 3 never gets to its last line.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="drift",
        topic="own memory",
        text="Both ranks start with the same `w` and run the same code, each on its own data. They send no messages. "
        "How do their two `w` compare after 100 steps?",
        answers=(
            Answer(
                "They are the same: both ranks run the same code.",
                "Same code, different data, so different gradients: `w` differs after the first step.",
            ),
            Answer(
                "They differ at first, and then become the same: both look for the best line.",
                "They look for the best line through their own data. The best line through one half of the curve is "
                "not the best one through the other.",
            ),
            Answer(
                "They stay different: each rank's line fits its own half of the curve.",
                "Each rank follows the gradients of its own data, and nothing tells it about the other half.",
            ),
        ),
        right=2,
    ),
    Statement(
        name="alike",
        topic="own memory",
        text="Two ranks that start with the same weights and train on the same data keep the same weights, without a "
        "single message.",
        true=True,
        why="The same code on the same numbers gives the same gradients, and so the same weights: they never have to "
        "travel. (Some GPU kernels add in an order that changes from run to run; then the last bits can differ.)",
    ),
    Number(
        name="messages_in_all",
        topic="all_reduce",
        text="Four ranks. Rank 0 receives the vector of each other rank, adds them up and sends the sum back to each. "
        "How many messages is that?",
        right=Answer("2*(p-1)", "Three vectors come to rank 0, and three copies of the sum go out."),
        wrong=(
            Answer("p-1", "Three messages bring the vectors to rank 0. Then only rank 0 has the sum.", step=3),
            Answer("2*p", "Rank 0 sends nothing to itself: three messages each way, not four.", step=1),
            Answer(
                "p*(p-1)", "That is every rank sending to every other one. Here all messages start or end at rank 0."
            ),
            Answer("p", "Each of the other three ranks sends one message and gets one back: three times two.", step=4),
        ),
        unit="messages",
        p=4,
    ),
    Statement(
        name="some_rank_sends_63",
        topic="all_reduce",
        text="In an all_reduce on 64 ranks some rank must send at least 63 vectors: 63 other ranks need the sum.",
        true=False,
        why="Not every copy of the sum has to come from one rank. If each rank adds up one piece of the vector and the "
        "pieces are passed on, all ranks share the work.",
    ),
)
