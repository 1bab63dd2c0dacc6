"""The questions of chapter 1: own memories, a rank that fails, where rank 21 is, and two myths."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="processes_with_x",
        topic="own memory",
        text="In how many of the five processes is there an `x` afterwards?",
        right=Answer(
            "p", "Four variables that happen to have the same name. The notebook runs none of the three lines."
        ),
        wrong=(
            Answer(
                "1",
                "There is one text but there are four processes, and each makes an `x` in its own memory.",
            ),
            Answer("p+1", "The notebook sends the lines to the ranks and does not run them itself: it has no `x`."),
            Answer("0", "The ranks do not end with the cell. They keep running, and keep what they have made."),
            Answer("p-1", "Rank 0 runs the lines too. Its `x` is 0, and 0 is a value like any other."),
        ),
        unit="processes",
        p=4,
    ),
    Number(
        name="learning_rates",
        topic="own memory",
        text="How many different values does `learning_rate` have on the four ranks afterwards?",
        right=Answer("3", "Rank 0 has 0.1 / 2, rank 2 has 0.1 / 4, and ranks 1 and 3 still have 0.1."),
        wrong=(
            Answer("1", "Each rank has its own `learning_rate`. What rank 0 does to its own changes no other."),
            Answer("2", "Ranks 0 and 2 change theirs, but not alike: rank 0 divides by 2, rank 2 by 4."),
            Answer("p", "There are four variables, but ranks 1 and 3 skip the line, so both still have 0.1."),
        ),
        unit="values",
        p=4,
    ),
    Choose(
        name="late_to_the_meeting",
        topic="own pace",
        text="What do ranks 0 to 2 do in `init_process_group` while rank 3 is missing?",
        answers=(
            Answer(
                "They fail: one rank is not there.",
                "A late rank is no error. Only a timeout, after many minutes, turns it into one.",
            ),
            Answer(
                "They return at once, and rank 3 joins later.",
                "A group has a fixed size. With gloo each rank connects to all the others, so it needs all addresses.",
            ),
            Answer(
                "They wait until rank 3 has called it, too.",
                "The group is complete only when all four addresses are in the store.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="rank_2_raises",
        topic="deadlock",
        text="Ranks 0, 1 and 3 wait in `recv` from rank 2. Rank 2 raises a `ValueError`, and its process stays alive. "
        "Which ranks learn of the error?",
        answers=(
            Answer(
                "All four: an exception ends the program.",
                "There are four programs, one in each process. The exception ends only rank 2's part of the cell.",
            ),
            Answer(
                "Rank 2 alone.",
                "An exception stays in its own process. The other three wait for a message that never comes.",
            ),
            Answer(
                "Ranks 0, 1 and 3: their `recv` raises an error.",
                "Their connections to rank 2 are open, so to them its message is just late. They wait.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="rank_21",
        topic="ranks and GPUs",
        text="Four machines with 8 GPUs each. Where is rank 21?",
        answers=(
            Answer("machine 2, GPU 4", "Rank 16 is GPU 0 of machine 2, so rank 20 is GPU 4 and rank 21 is GPU 5."),
            Answer("machine 3, GPU 5", "Rank 21 is on the third machine. Counted from 0, that is machine 2."),
            Answer(
                "machine 2, GPU 5",
                "21 = 2 * 8 + 5. Machines 0 and 1 have ranks 0 to 15, machine 2 begins with rank 16.",
            ),
            Answer(
                "machine 1, GPU 5",
                "That would be right if rank 0 were on machine 0, rank 1 on machine 1, and so on (21 = 5 * 4 + 1). "
                "Here the first 8 ranks are all on machine 0.",
            ),
        ),
        right=2,
    ),
    Statement(
        name="rank_0_first",
        topic="own pace",
        text="Rank 0 begins a cell before rank 1, rank 1 before rank 2, and so on.",
        true=False,
        why="All ranks are started at once, and the operating system decides which of them gets going"
        " first. They meet only where one waits for another. Only their output is sorted by rank.",
    ),
    Statement(
        name="same_seed",
        topic="own memory",
        text="If every rank calls `torch.manual_seed(0)`, all ranks draw the same random numbers, without any message.",
        true=True,
        why="A seed fixes the whole sequence of random numbers. Many programs start like this: the "
        "same weights on every rank, and nothing sent. A shuffled data set needs it, too: if all ranks shuffle alike, "
        "their shares cover all samples. Only noise such as dropout should differ, so seed that differently on each "
        "rank.",
    ),
)
