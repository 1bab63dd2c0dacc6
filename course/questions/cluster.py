"""The questions of chapter 18: numbers of ranks on machines, rendezvous, placement, what a lost machine costs, size."""

from course.questions.question import Answer, Choose, FindLine, Number, Statement

QUESTIONS = (
    Number(
        name="cluster_rank",
        topic="torchrun",
        text="32 machines of 8 GPUs, started by torchrun. The first error is in the log of rank 211. What is "
        "the GROUP_RANK of its machine?",
        right=Answer(
            "26",
            "Each machine has 8 ranks, so GROUP_RANK 26 has 208 to 215. 211 has LOCAL_RANK 3 there. torchrun sorts the "
            "machines itself: to know which host this is, let your script print socket.gethostname().",
        ),
        wrong=(
            Answer("27", "Rank 211 is on the 27th machine. But the first one has GROUP_RANK 0."),
            Answer("3", "That is its LOCAL_RANK: which GPU of its machine it is."),
            Answer("211/8", "The number of a machine is whole: round down. The remainder, 3, is the GPU."),
            Answer(
                "6", "That is 211 / 32: you divided by the number of machines. Divide by the ranks of one machine: 8."
            ),
            Answer(
                "19",
                "That would be right for cyclic placement: 211 = 6 x 32 + 19. torchrun gives each machine 8 in a row.",
            ),
        ),
        unit="",
    ),
    FindLine(
        name="cluster_device",
        topic="torchrun",
        text="/shared is a folder that all machines have in common. This works on one machine of 8 GPUs. On two "
        "machines of 8 it raises an error on the second one. Which line is wrong?",
        source="""
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
if rank == 0:
    download("/shared/data")
dist.barrier()
data = read("/shared/data", rank)
""",
        right=(3,),
        why="Each machine counts its GPUs from 0. Rank 8 is the first of the second machine and asks for GPU 8, but "
        "there are only 0 to 7. Write `int(os.environ['LOCAL_RANK'])`.",
        wrong=(
            Answer("1", "NCCL is the backend for GPUs, on one machine and on many."),
            Answer("2", "The rank in the world is right here: each rank has data of its own."),
            Answer("4", "One rank downloads for all. That is enough, since the folder is shared."),
            Answer(
                "6",
                "All ranks get here, and none goes on before rank 0 has the data. (If the download can take over ten "
                "minutes, raise `timeout`, or NCCL's watchdog ends the job.)",
            ),
            Answer("7", "All machines have the folder, and each rank reads its own part."),
        ),
    ),
    Choose(
        name="cluster_numbers",
        topic="torchrun",
        text="You type the same line on both machines. Which machine gets ranks 0 and 1?",
        answers=(
            Answer(
                "The one on which you typed first", "The order of arrival decides nothing: they wait for each other."
            ),
            Answer(
                "The one that --rdzv-endpoint names",
                "That machine only keeps the store where they meet. Ranks are given out afterwards.",
            ),
            Answer(
                "torchrun decides, once both machines have arrived",
                "It sorts them by name or address. So take every number from the environment, and "
                "never assume which machine is first.",
            ),
            Answer("Both: each begins with rank 0", "Both have a LOCAL_RANK 0. RANK counts across all machines."),
        ),
        right=2,
    ),
    Statement(
        name="cluster_same",
        topic="torchrun",
        text="The script, run by torchrun as two nodes of two, prints the same weights as the cell.",
        true=True,
        why="The same four ranks, the same data, the same calls. Where a rank runs decides how long "
        "a message takes, not what is in it.",
    ),
    Choose(
        name="cluster_interface",
        topic="torchrun",
        text="Two machines. torchrun starts on both, every rank prints its number, and then `init_process_group` or "
        "the first all_reduce fails with a time-out or `Connection refused`. What do you check first?",
        answers=(
            Answer(
                "Which address each rank told the others",
                "Ranks meet in the store and then connect to each other directly. If a rank gives the address of a "
                "wrong interface (127.0.1.1, or that of docker0), no rank on the other machine can reach it.",
            ),
            Answer(
                "The rendezvous: a wrong --rdzv-endpoint",
                "The rendezvous worked: without it no rank would have a number.",
            ),
            Answer(
                "The number of ranks",
                "If --nnodes were too large, torchrun would still wait for machines, and no rank would have a number.",
            ),
            Answer("The program: a rank leaves too soon", "It would have to leave before the very first collective."),
        ),
        right=0,
    ),
    Number(
        name="cluster_cyclic",
        topic="placement",
        text="Cyclic placement: ranks 0 and 2 on one machine, 1 and 3 on the other. The ring is still 0, 1, 2, 3. "
        "How much leaves each machine, as a multiple of N?",
        right=Answer(
            "4*(p-1)/p",
            "Now every hop goes to the other machine, two out of each. Each hop carries 2(p - 1)/p = 1.5 N.",
        ),
        wrong=(
            Answer("2*(p-1)/p", "That is one hop out of each machine. Count again: 0 to 1, 1 to 2, 2 to 3, 3 to 0."),
            Answer("1", "That is the least that an all-reduce of two machines can send."),
            Answer("2", "2 hops, but each of them carries 1.5 N, not N."),
            Answer("8*(p-1)/p", "That is all four hops. Two of them leave each machine."),
        ),
        unit="N",
        p=4,
        within=0.02,
    ),
    Number(
        name="cluster_hierarchical",
        topic="placement",
        text="Two machines of two GPUs, N = 1 MB: reduce_scatter inside, all_reduce between, all_gather inside. The "
        "two GPUs of a machine share one NIC of 4 MB/s. How long does it take, without latency and the time inside?",
        right=Answer(
            "1e6/4e6",
            "Each GPU all-reduces its N/2 with one partner: a ring of two sends N/2. Two GPUs share the NIC: N.",
        ),
        wrong=(
            Answer("1e6/4e6/2", "Each GPU sends N/2. But both GPUs of a machine send through one NIC."),
            Answer("1.5e6/4e6", "That is the flat ring. Here each GPU first reduces its half inside the machine."),
            Answer("2e6/4e6", "That would be N from each GPU. After the reduce_scatter each has only half of it."),
        ),
        unit="s",
        within=0.02,
    ),
    FindLine(
        name="cluster_sbatch",
        topic="slurm",
        text="A batch job for Slurm: two machines of 8 GPUs, one process for each GPU. It starts 16 torchruns, "
        "and most of them only wait. Which line is wrong?",
        source="""
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
first=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun torchrun --nnodes=2 --nproc-per-node=8 \\
    --rdzv-backend=c10d --rdzv-endpoint=$first:29500 line.py
""",
        right=(2,),
        why="srun starts 8 tasks on each machine, and each is a torchrun. `--nnodes=2` admits two of the 16, perhaps "
        "both on one machine; the rest wait. One torchrun per machine is right: `--ntasks-per-node=1`.",
        wrong=(
            Answer("1", "Right: the job asks for two machines."),
            Answer("3", "It asks for all 8 GPUs of a machine. That is right."),
            Answer("4", "It takes the name of the job's first machine, so that all meet there."),
            Answer(
                "5", "Two torchruns, 8 ranks each: this line is right by itself. But how many times does srun run it?"
            ),
            Answer("6", "All torchruns have to meet at one address: that of the first machine."),
        ),
    ),
    Choose(
        name="cluster_power",
        topic="failures",
        text="`torchrun --nnodes=2 --max-restarts=3`, with machine 0 as the endpoint. Machine 1 loses "
        "power. What happens?",
        answers=(
            Answer(
                "The ranks on machine 0 go on alone",
                "Their next collective needs all ranks, so it fails at a time-out. Then torchrun ends them all.",
            ),
            Answer(
                "torchrun on machine 0 ends its ranks and waits for a second machine",
                "A machine without power closes no connection, so its partners wait for a time-out: by default up to "
                "30 minutes with gloo, 10 with NCCL. Then torchrun ends them and starts a new rendezvous, which needs "
                "two machines with --nnodes=2. By default it gives up after another 10 minutes.",
            ),
            Answer(
                "The job ends at once, on machine 0 too",
                "With --max-restarts=0, the default, it ends at the ranks' time-out. Here torchrun tries again.",
            ),
            Answer(
                "Machine 1's ranks are started on machine 0",
                "torchrun starts --nproc-per-node ranks on a machine, never more. (With --nnodes=1:2 machine 0 "
                "would start again with its own ranks alone.)",
            ),
        ),
        right=1,
    ),
    Number(
        name="cluster_interruptions",
        topic="failures",
        text="Llama 3 was trained on 16,384 GPUs. In 54 days its job was interrupted unexpectedly 419 times: once "
        "every 3.1 hours. How many hours would you expect between two interruptions on 512 such GPUs?",
        right=Answer("54*24/419*32", "512 is a 32nd of 16,384 GPUs. So things break 32 times less often."),
        wrong=(
            Answer("54*24/419", "Each GPU breaks as often as before, but there are 32 times fewer of them."),
            Answer("54*24/419/32", "Fewer parts break less often: the time gets longer."),
            Answer("54*24", "That is one interruption in 54 days. But 419 / 32 is still 13."),
        ),
        unit="hours",
        within=0.06,
    ),
    Number(
        name="cluster_too_many",
        topic="size",
        text="With the same batch the backward pass takes 134 ms on 32 GPUs, 67 on 64 and so on. NVLSTree's all-reduce "
        "of the gradients takes 5.2 ms, on 256 GPUs as on 1,024. On how many GPUs do both take equally long?",
        right=Answer(
            "134*32/5.2",
            "On p GPUs the backward pass takes 134 ms x 32 / p. On more than 825 it no longer hides the all-reduce, "
            "and the GPUs wait. A larger batch would hide it again.",
        ),
        wrong=(
            Answer("134/5.2", "By this factor the backward pass has to shrink. But you begin with 32 GPUs."),
            Answer("1024", "There the backward pass takes only 4.2 ms, so they wait already."),
            Answer("256", "There the backward pass still takes 17 ms, and hides the 5.2."),
        ),
        unit="GPUs",
        within=0.05,
    ),
    Statement(
        name="cluster_myth_over",
        topic="nccl",
        text="When `dist.all_reduce(x)` returns on NCCL, the sum is in x's memory.",
        true=False,
        why="The call puts the work on a stream of the GPU and returns. What you launch next on the GPU waits for "
        "it. The CPU does not, until you call something like `x.item()`.",
    ),
    Statement(
        name="cluster_myth_all",
        topic="failures",
        text="When one of 64 ranks dies, torchrun kills the other 63 as well, even with --max-restarts=3.",
        true=True,
        why="torchrun has one way to recover: it ends all 64, and starts all 64 again from the first line of the "
        "script, up to three times. (NCCL can also shrink a group, `dist.shrink_group`. torchrun does not use that.)",
    ),
)
