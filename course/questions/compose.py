"""The questions of chapter 10: what adds up, which bits come out, and what is made of what."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Statement(
        name="compose_all_to_all_sum",
        topic="composition",
        text="reduce_scatter = all_to_all, and a local sum.",
        true=True,
        why="The all_to_all brings rank r everyone's chunk r. Added up, that is what reduce_scatter gives it.",
    ),
    Statement(
        name="compose_scatter_gather",
        topic="composition",
        text="all_reduce = scatter from rank 0, then all_gather.",
        true=False,
        why="No rank adds anything: the chunks of rank 0's vector come to all. That is a broadcast, and a good one.",
    ),
    Statement(
        name="compose_all_to_all_twice",
        topic="composition",
        text="all_to_all twice, with equal chunks, gives back what you started with.",
        true=True,
        why="The first call brings chunk c of rank r to rank c, as its chunk r. The second takes it back the same way.",
    ),
    Statement(
        name="compose_reduce_twice",
        topic="composition",
        text="all_reduce (a sum) twice gives the same as once.",
        true=False,
        why="The second one adds up p copies of the sum: 4 times too much on 4 ranks. With MAX it would be true.",
    ),
    Choose(
        name="compose_price",
        topic="cost",
        text="One server on 8 ranks receives 7 N and sends 7 N. In which of these all_reduces does a rank carry as "
        "much as that server?",
        answers=(
            Answer(
                "reduce_scatter + all_gather", "A ring all_reduce is just that: 1.75 N in and out, the least there is."
            ),
            Answer(
                "reduce + broadcast, by trees",
                "Rank 0 of a tree has 3 N in and 3 N out: the other ranks add up and pass on for it.",
            ),
            Answer(
                "all_gather + a local sum",
                "Each rank sends 7 N, its own vector and those that it passes on, and receives 7 "
                "N. Now every rank carries what the server did. On 8 ranks that is 4 times the bytes of the ring.",
            ),
        ),
        right=2,
    ),
    Number(
        name="compose_mean",
        topic="statistics",
        text="The mean of all ten numbers is 21. Each rank computes its own mean, 0, 10.5, 21 and 31.5, and the ranks "
        "average these. What comes out?",
        right=Answer("15.75", "(0 + 10.5 + 21 + 31.5)/4. Rank 0's one number weighs as much as the four of rank 3."),
        wrong=(
            Answer("21", "It would, if all ranks had equally many numbers. Rank 0 has one, rank 3 has four."),
            Answer("63", "That is the sum of the four means. Divide it by 4."),
            Answer("6.3", "That divides by the ten numbers. What is averaged here are four means."),
        ),
        unit="",
        p=4,
    ),
    Choose(
        name="compose_half",
        topic="statistics",
        text="Four ranks, float16, gradients near 20000. Which gives the mean: add and then divide by 4, or divide by "
        "4 and then add?",
        answers=(
            Answer(
                "Both", "Both do on paper. But the sum, about 80000, is more than float16 can hold: it becomes inf."
            ),
            Answer("Only add, then divide", "The sum, about 80000, is more than float16 can hold: it becomes inf."),
            Answer(
                "Only divide, then add",
                "No sum on the way is above the mean, 20096. The sum first would be 80384, beyond `float16`. "
                "DDP divides first, for this reason, and so does `ReduceOp.AVG` on NCCL. (Very small gradients "
                "then underflow. Loss scaling helps, and FSDP divides by part of p before and by the rest after.)",
            ),
            Answer("Neither", "float16 is coarse, but it can hold 20000. What can it not hold?"),
        ),
        right=2,
    ),
    Number(
        name="compose_accuracy",
        topic="statistics",
        text="What is the accuracy over all samples, in per cent?",
        right=Answer("100*167/192", "81 + 81 + 5 + 0 = 167 right of 90 + 90 + 10 + 2 = 192."),
        wrong=(
            Answer("57.5", "That is the mean of 90, 90, 50 and 0 %: rank 3's 2 samples count as much as 90."),
            Answer("90", "That is ranks 0 and 1 alone. The 12 samples of ranks 2 and 3 count, too."),
            Answer("167/192", "That is the share. In per cent it is a hundred times that."),
        ),
        unit="%",
        p=4,
        within=0.006,
    ),
    Choose(
        name="compose_classes",
        topic="which collective",
        text="Each of 4 ranks has counted 10,000 classes in its own data, and reports on 2,500 of them. Which call "
        "brings it the finished counts with the fewest bytes?",
        answers=(
            Answer(
                "all_reduce", "The counts are right, for twice the bytes, and each rank throws away three quarters."
            ),
            Answer("reduce_scatter", "The counts are added up, and each rank gets its own quarter, nothing else."),
            Answer("all_gather", "Every rank gets 40,000 counts, and has to add them up itself."),
            Answer("gather to rank 0", "Then rank 0 can report. The other ranks have no finished count."),
        ),
        right=1,
    ),
    Choose(
        name="compose_bits",
        topic="floating point",
        text="Seven algorithms add 100000000, 1, -100000000 and 1 on four ranks. What do the ranks print?",
        answers=(
            Answer("All print 2", "That is the exact sum. In float32, 100000000 + 1 is 100000000."),
            Answer(
                "They differ from algorithm to algorithm, and in some of these from rank to rank",
                "0, 1 and 2 all occur. In the exchange and the whole-vector ring the ranks disagree.",
            ),
            Answer(
                "They differ from algorithm to algorithm, but within one all ranks agree",
                "True of most. But in two of the seven each rank adds up in its own order.",
            ),
            Answer(
                "All print the same, but not 2",
                "They add in different orders, so a different 1 is lost each time, and sometimes none.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="compose_softmax_price",
        topic="cost",
        text="525 MB on each of 4 GPUs. A message costs 3.4 microseconds, and NVLink carries 450 GB/s. About how many "
        "times faster are two calls of recursive doubling, of 8,192 numbers (32.8 kB) each, than gathering everything?",
        answers=(
            Answer(
                "250 times",
                "The other ranks' 1.6 GB take 3.5 ms at 450 GB/s. Two calls of two messages, 3.5 us each, take 14 us.",
            ),
            Answer(
                "25 times",
                "The other ranks' 1.6 GB take 3.5 ms. Four messages of 3.5 microseconds take 0.014 ms. 3.5 / 0.014 is "
                "250.",
            ),
            Answer(
                "2 times",
                "Compare times, not calls: the all_gather brings 1.6 GB to each rank, 3.5 ms. The short messages take "
                "0.014 ms.",
            ),
            Answer(
                "12,000 times",
                "By bytes, yes: 1.6 GB against 131 kB. But a message costs 3.4 microseconds, and there are four.",
            ),
        ),
        right=0,
    ),
)
