"""Notes on chapter 0: the first meeting, where something has to move and something has to hang."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            8,
            "0 · Start here",
            "Have everybody run the first two cells before you explain anything. (On a shared machine the first start "
            "takes longest: 43 s where 20 students began at once on two cores.) If a student's kernel does not start, "
            "they save, stop JupyterLab (Ctrl-C twice in its terminal) and start it again, with `make lab` in the "
            "checkout or `ringside lab` where the course is installed: both keep what they wrote. `No module "
            "named 'launch'` means that the kernel is of a Python without the course: start it in one of these two "
            "ways. Until it runs, two students share a screen. Then put the picture on the wall, "
            "step through it, and ask for each arrow: which line of the code is that, and on which rank?",
        ),
        Part(
            12,
            "Change one line",
            "Ask `forgotten` by show of hands, then let them cause the deadlock. Read the sentence under the cell"
            " aloud: which rank waits, for which rank, and why that one does not come. Three minutes for "
            "deadlocks of their own. (Rank 2 sends to rank 3 twice: its second `send` is stuck. Rank 0 waits for rank "
            "1: all four are.)",
        ),
        Part(
            12,
            "A model that drifts apart",
            "The story of the whole course, so take your time. Ask `drift`, run it, and let a student say which "
            "half of the curve each rank knows. They write down the slope that they expect before you switch the one "
            "line on. Many will say 1.83, the average of the two; it is 2.00.",
        ),
        Part(
            10,
            "What is inside that line?",
            "`messages_in_all` first: the answer opens the picture. Play the naive plan and count the ranks that only "
            "wait, two of four in each step and 62 of 64. Ask `some_rank_sends_63`, and run the cell below it: 63.00 "
            "and 1.97. Give the answer and keep the reason: it is chapter 5.",
        ),
        Part(
            8,
            "Your turn",
            "Everybody writes `pass_it_on` and runs the check. Students who are done help their neighbours.",
        ),
    ),
    ninety=(
        Again(
            12,
            "0 · Start here",
            "Then let rank 1 send instead of rank 2: what changes in the code, what in the picture?",
        ),
        Again(
            20,
            "Change one line",
            "Eight minutes in pairs: find two more ways to hang four ranks. Collect them on the board (no sender, no "
            "receiver, both sides wait). Each comes back in chapter 2.",
        ),
        Part(
            22,
            "A model that drifts apart",
            "Project the picture of the two lines. After `alike`, pairs change the learning rate "
            "or the data on one rank only and predict whether the ranks stay alike.",
        ),
        Again(16, "What is inside that line?", "Then they count the naive plan for 8 ranks on paper: 14 messages."),
        Again(14, "Your turn", "Project one verdict and read it together: it judges the result and the messages."),
        Part(
            6,
            "Take away",
            "One sentence from each table: what surprised you?",
        ),
    ),
    home="The glossary, and `pass_it_on` if it is not green yet.",
    room="drift",
    ask="Draw x² from 0 to 2 and cut it in the middle before you ask. Count hands for each answer. The second one gets"
    " many hands, and it is the one to talk about: ask a student who chose it which line is best for rank 0 "
    "*alone*. Then run the cell.",
    wrong=(
        Mistake(
            "drift",
            "Run it for 1,000 steps in front of them (1001 and 1000 for 101 and 100 in the cell). "
            "The slopes go to 1.00 and 3.00: the lines move further "
            "apart, because after 100 steps rank 1 had not yet found the best line for its half.",
            answer=1,
        ),
        Mistake(
            "forgotten",
            "They know the web, where no answer is an error. Say: a rank cannot tell late from never. A timeout "
            "is only a guess.",
            answer=1,
        ),
        Mistake(
            "messages_in_all",
            "Point at rank 0 in the picture. Its own vector is there already: no rank sends to itself.",
            answer=1,
        ),
        Mistake(
            "some_rank_sends_63",
            "They picture one rank that holds the sum. Ask: must the whole sum ever be on one rank before it is "
            "passed on?",
        ),
    ),
    sheet=("forgotten", "drift", "alike", "messages_in_all", "some_rank_sends_63"),
    replies=(
        Reply(
            "which line of the code is that, and on which rank",
            "An arrow is one `send` and the `recv` that it meets: the `send` line on the rank where the arrow"
            " starts, the `recv` line on the rank where it ends.",
        ),
        Reply(
            "what changes in the code, what in the picture",
            "In the code the two numbers: rank 1 sends, and the receiver names rank 1. In the picture the "
            "arrow starts at rank 1, and the numbers that arrive are rank 1's.",
        ),
        Reply(
            "what surprised you",
            "There is no right answer. Often named: a rank that waits forever is no error, and nobody ever "
            "sees the variables of another rank.",
        ),
        Reply(
            "must the whole sum ever be on one rank before it is passed on",
            "No. Each rank can finish one piece of the sum and pass that piece on: then no rank ever sends "
            "more than about two vectors.",
        ),
    ),
    thrown_in=(
        Reply(
            "What is a gradient",
            "For each number in `w`, how fast the error grows with it. A step moves the number the other way. "
            "You need no more than that today.",
        ),
        Reply(
            "NCCL's send does not block, does it",
            "Right: it puts the message on a CUDA stream and returns, and the stream waits. Here it is gloo, whose "
            "`send` returns when the message is taken. Without the `recv` both hang; on NCCL Python notices when it "
            "needs a result.",
        ),
        Reply(
            "DDP does this for me, so why write it",
            "DDP has settings: the size of a bucket, what hides behind the backward pass, how long to wait. To choose "
            "them you count what it sends. Chapter 11 reads that off DDP itself.",
        ),
        Reply(
            "My kernel will not start, and now",
            "Watch the neighbour's screen and answer on the handout. Afterwards `filled/00_start_here.html` of the "
            "pack shows every output.",
        ),
        Reply(
            "Who says that −0.61 + 2x is the best line",
            "x² is (x − 1)² + 2x − 1. The eight points are the same to the left and to the right of 1, so the best "
            "line through (x − 1)² is flat, at its mean, 0.39. And 0.39 − 1 is −0.61.",
        ),
    ),
)
