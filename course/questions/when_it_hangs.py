"""The questions of chapter 17: eight broken programs, what the tools see, how long to wait, and two myths."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Choose(
        name="clinic_early",
        topic="diagnose",
        text="Each rank stops as soon as its own loss is below 0.1. What happens?",
        answers=(
            Answer(
                "One rank stops first, and the others wait for it in their next all_reduce",
                "Its loss is below 0.1, theirs are not. They begin the next epoch, and it never "
                "calls all_reduce again.",
            ),
            Answer(
                "One rank stops first, and the others go on without it",
                "all_reduce is a call of all ranks of its group. Three of four cannot finish it.",
            ),
            Answer(
                "One rank stops first, and the others get an error",
                "Plain gloo does not tell them. They wait until a time-out, or until the rank's process ends.",
            ),
            Answer(
                "All ranks stop after the same epoch",
                "They have the same weights, but different data. So each has its own loss.",
            ),
        ),
        right=0,
    ),
    FindLine(
        name="clinic_logs",
        topic="diagnose",
        text="Rank 0 prints the mean loss of all ranks every epoch. Which line breaks the run?",
        source="""
%%ranks
def mean_loss(w, x):
    total = loss_of(w, x).detach()
    dist.all_reduce(total)
    return total.item() / world_size

w = new_model()
for epoch in range(3):
    if rank == 0:
        print(f"epoch {epoch}: mean loss {mean_loss(w, mine):.3f}")
    train_step(w, mine)
""",
        right=(9, 10),
        why="`mean_loss` holds an all_reduce, and only rank 0 calls it. The others are already in `train_step`, so "
        "rank 0's all_reduce of the loss meets their all_reduce of the gradient.",
        wrong=(
            Answer("3", "`detach` is right: what is only printed needs no gradient."),
            Answer("4", "Summing the losses of all ranks is right, if all ranks make this call."),
            Answer("5", "The sum over all ranks divided by their number is the mean."),
            Answer("7", "All ranks begin with the same zeros."),
            Answer("8", "All ranks run three epochs."),
            Answer("11", "All ranks call this. What does rank 0 alone call before it?"),
        ),
    ),
    FindLine(
        name="clinic_counts",
        topic="diagnose",
        text="Four kinds of animals, four pictures on each rank. How many of each kind are there in all? Which line is "
        "wrong?",
        source="""
%%ranks
labels = [[0, 1, 3, 2], [3, 3, 0, 1], [2, 0, 1, 1], [1, 2, 3, 0]][rank]
counts = torch.bincount(torch.tensor(labels))
dist.all_reduce(counts)
counts
""",
        right=(3,),
        why="`bincount` counts only up to the largest label. Rank 2 has no picture of kind 3, so its `counts` has "
        "three numbers. Write `minlength=4`.",
        wrong=(
            Answer("2", "Each rank has its own pictures. That is the point of it."),
            Answer("4", "A sum over all ranks is right. But what does each rank add to it?"),
            Answer("5", "This line only shows the result."),
        ),
    ),
    Choose(
        name="clinic_crossed",
        topic="diagnose",
        text="Each rank makes one call in each of its two groups. What happens?",
        answers=(
            Answer(
                "It hangs: 0 waits for 1, 1 for 3, 3 for 2, and 2 for 0",
                "Each rank waits in a call of one group, while its partner in that group waits in a call of its "
                "other group.",
            ),
            Answer(
                "It hangs: 0 and 3 wait for each other, and so do 1 and 2",
                "0 and 3 have no group in common, so they cannot wait for each other. Write down the four groups.",
            ),
            Answer(
                "It works: in each group both ranks make the same single call",
                "Each call by itself is fine. But a rank makes its second call only after its first has finished.",
            ),
            Answer(
                "The sums are wrong: the calls of two groups mix",
                "Each group has connections of its own. Calls of different groups never mix.",
            ),
        ),
        right=0,
    ),
    Choose(
        name="clinic_dropped",
        topic="handles",
        text="After the barrier all four ranks have called `isend`. Then each calls `recv`. What happens?",
        answers=(
            Answer(
                "Each rank gets its left-hand neighbour's x",
                "The messages were started, but in gloo one lives only as long as its handle, and no rank kept it.",
            ),
            Answer(
                "All wait in the barrier: their sends are not over yet",
                "`isend` does not block, and a barrier only waits until all ranks have called it.",
            ),
            Answer(
                "All wait in `recv`: every rank should have received before it sends",
                "This order is right with `isend`, if each rank keeps its handle until the message is received.",
            ),
            Answer(
                "All wait in `recv`, for messages that do not exist any more",
                "The handle was gone when `start_sending` returned, and the message with it. The barrier makes this "
                "certain: no rank receives before it.",
            ),
        ),
        right=3,
    ),
    Choose(
        name="clinic_slow",
        topic="stragglers",
        text="Rank 3 has a slow disk and is half a second late in every epoch. What will the doctor say?",
        answers=(
            Answer(
                "Ranks 0, 1 and 2 wait in all_reduce for rank 3",
                "They do wait, for half a second. But rank 3 is running its own code, so it may still come.",
            ),
            Answer(
                "Rank 3 is too slow",
                "The doctor has no limit for too slow. To see a slow rank, look at a Timeline.",
            ),
            Answer(
                "Nothing",
                "No rank waits forever: rank 3 comes each time. A slow rank is no deadlock.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="clinic_nan",
        topic="diagnose",
        text="Rank 2 reads a broken sample in epoch 1, so its own loss is NaN. Which ranks have a NaN loss, in epoch "
        "1 and in epoch 2?",
        answers=(
            Answer(
                "Only rank 2, in both epochs",
                "The all_reduce of epoch 1 adds rank 2's gradient to everyone's, and NaN plus anything is NaN.",
            ),
            Answer(
                "Rank 2 in epoch 1, all ranks in epoch 2",
                "In epoch 1 the others compute their loss from good weights. Then the all_reduce makes every gradient "
                "NaN, and the step every weight.",
            ),
            Answer(
                "All ranks, in both epochs",
                "In epoch 1 the others compute their loss before the all_reduce, from good weights and good data.",
            ),
            Answer(
                "None: the all_reduce raises an error",
                "It adds what it is given. NaN is a float like any other.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="clinic_killed",
        topic="diagnose",
        text="Rank 2 needs too much memory, and Linux kills its process while the others are in all_reduce. In plain "
        "gloo, without a doctor: which logs have an error message?",
        answers=(
            Answer(
                "Rank 2's: it happened there",
                "A killed process writes nothing more. Its log just ends.",
            ),
            Answer(
                "All logs",
                "Not rank 2's: a killed process cannot write. Its log just ends.",
            ),
            Answer(
                "Logs of other ranks, which did nothing wrong",
                "Ranks that exchange messages with rank 2 see its connections close. The rest wait, until a time-out.",
            ),
            Answer(
                "No log",
                "When a process ends, its connections close, and a rank that sends or receives there notices.",
            ),
        ),
        right=2,
    ),
    Choose(
        name="clinic_detail",
        topic="tools",
        text="DETAIL compares the calls of all ranks before it lets them through. Which of these faults do you expect "
        "it to miss?",
        answers=(
            Answer("One rank's tensor is shorter", "Shapes are part of what it compares."),
            Answer("One rank's tensor is float64, the others' float32", "Dtypes are part of what it compares."),
            Answer("One rank calls broadcast, the others all_reduce", "The kind of call is what it compares first."),
            Answer(
                "One rank takes the maximum, the others the sum",
                "It compares the kind of call, shapes and dtypes, and not the reduce operation. "
                "Nor does it compare the root.",
            ),
        ),
        right=3,
    ),
    Choose(
        name="clinic_watchdog",
        topic="tools",
        text="Which patient is this?",
        answers=(
            Answer(
                "Patient 1: one rank has left the loop",
                "A missing rank does not change what the others pass. Here two ranks pass different sizes in one call.",
            ),
            Answer(
                "Patient 3: the ranks pass different sizes",
                "Both are in the same call of the same group. It gives back 8 times what it takes: an all_gather of 8 "
                "ranks, which need equal sizes. Rank 4 has 56,320 numbers, rank 6 76,800. NCCL does not compare them: "
                "it waits, or gives wrong numbers.",
            ),
            Answer(
                "Patient 4: two groups in different orders",
                "Then the two would be stuck in calls of different groups. These are one call of one group.",
            ),
            Answer(
                "Patient 6: a slow rank",
                "A slow rank has not made the call yet, so it reports no time-out in it.",
            ),
        ),
        right=1,
    ),
    Number(
        name="clinic_hours",
        topic="estimate",
        text="A job on 512 GPUs hangs. The time-out is torch's default for NCCL, 10 minutes, and starting again "
        "from the last checkpoint loses another 20 minutes. How many GPU hours does the hang cost?",
        right=Answer("256", "10 + 20 minutes on each of 512 GPUs: 512 x 1/2 hour. No GPU works while one call waits."),
        wrong=(
            Answer("512/6", "That is the time-out alone. The work since the last checkpoint is lost, too."),
            Answer("512/3", "That is the lost work alone. Before it all GPUs waited for 10 minutes."),
            Answer("0.5", "That is one GPU's. The other 511 wait as long."),
            Answer("512*30", "Those are minutes."),
        ),
        unit="GPU hours",
        within=0.02,
    ),
    Choose(
        name="clinic_timeout",
        topic="tools",
        text="Every hour rank 0 writes a checkpoint, which takes 4 to 6 minutes. The others wait for it in a barrier. "
        "All other calls are over within seconds. Which time-out do you choose for the job?",
        answers=(
            Answer(
                "30 seconds: the sooner a hang is found, the better",
                "Then the first checkpoint ends the job. The barrier takes 4 to 6 minutes, and that is no hang.",
            ),
            Answer(
                "6 minutes: the longest that a call ever takes",
                "If the disk is a little slower one day, a healthy job ends.",
            ),
            Answer(
                "10 to 15 minutes, or a group with a long time-out for the barrier alone",
                "It is longer than the longest wait of a healthy job, with room. `new_group(timeout=...)` gives the "
                "barrier a limit of its own, so all other calls can have a short one.",
            ),
            Answer(
                "Hours: a wrong alarm costs more than a hang",
                "A hang at night then costs hours of all GPUs. The longest wait of a healthy job, "
                "and some room, is enough.",
            ),
        ),
        right=2,
    ),
    Statement(
        name="clinic_myth_same_line",
        topic="tools",
        text="The stacks of all four ranks show the same `all_reduce` in the same line. So no rank is missing, and the "
        "network must be to blame.",
        true=False,
        why="The line may be in a loop, and one rank in another round of it. The flight recorder has the number of "
        "each call, which tells them apart.",
    ),
    Statement(
        name="clinic_myth_after",
        topic="tools",
        text="After a gloo call has timed out, later calls of the same group fail, too.",
        true=True,
        why="The time-out closes connections between the ranks. To go on, a job needs a new group; "
        "most jobs start again.",
    ),
)
