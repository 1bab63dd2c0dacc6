"""Notes on chapter 18: one script, many machines, and what crosses the slow wire."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            4,
            "18 · On a cluster",
            "Ask who has had a job on more than one machine. What went wrong first? Write the answers on the board and "
            "tick them off during the hour.",
        ),
        Part(
            10,
            "From notebook to script",
            "Export, open the file, point at what is not in it: no address, no number. `cluster_rank` and "
            "`cluster_device` in pairs.",
        ),
        Part(
            10,
            "Two nodes, one laptop",
            "`cluster_numbers` for hands, then run it. If you have a second laptop on the same network, do it for "
            "real: name the first laptop and drop `--local-addr`. Then `cluster_interface`.",
        ),
        Part(
            12,
            "Across the slow wire",
            "Draw two boxes and four ranks. Let the room draw the ring 0, 1, 2, 3 for both ways to number them, and "
            "count the lines between the boxes. `cluster_cyclic`, then the map.",
        ),
        Part(
            9,
            "A rank dies",
            "`cluster_myth_all` for hands. Predict, run, read the two lines. `cluster_power`.",
        ),
        Part(
            5,
            "Take away",
            "Each says one line of a script of their own that would break on a second machine.",
        ),
    ),
    ninety=(
        Again(4, "18 · On a cluster"),
        Again(12, "From notebook to script"),
        Again(
            14, "Two nodes, one laptop", "Also the wrong name of an interface: what does the message say, and what not?"
        ),
        Again(
            26,
            "Across the slow wire",
            "Then `neighbours_first` alone, and the three times: predict them on paper first.",
        ),
        Again(
            16,
            "A rank dies",
            "Also `cluster_interruptions` on paper. What belongs in a checkpoint beside the weights? Then `survive` "
            "in pairs.",
        ),
        Part(
            8,
            "Slurm, Kubernetes, this notebook",
            "Only what your cluster has. `cluster_sbatch` in pairs.",
        ),
        Part(
            8,
            "NCCL, and how big is too big",
            "Their line for the backward pass, then the table. `cluster_too_many`. Why does a batch of fixed size stop "
            "scaling?",
        ),
        Again(2, "Take away"),
    ),
    home="`survive`, `neighbours_first`, and `%ranks attach 127.0.0.1` with a terminal beside it.",
    room="cluster_cyclic",
    ask="Two tables are two machines, two students at each. Pass a note round in the order 0, 1, 2, 3, once with "
    "neighbours at one table and once with cyclic placement, and count how often it goes from table to table. Then "
    "ask for N.",
    wrong=(
        Mistake(
            "cluster_device",
            "They suspect the download. It is fine, since the folder is shared; the GPU has its number on its machine.",
            answer=2,
        ),
        Mistake(
            "cluster_numbers",
            "The endpoint is where they meet. Who is first is decided when all are there.",
            answer=1,
        ),
        Mistake(
            "cluster_interface",
            "The ranks have numbers, so the rendezvous worked. What have they told each other there?",
            answer=1,
        ),
        Mistake(
            "cluster_cyclic",
            "They see one hop out of each machine, as before. Draw it: there are two.",
        ),
        Mistake(
            "cluster_sbatch",
            "The torchrun line is right. Ask how often srun runs it.",
            answer=3,
        ),
        Mistake(
            "cluster_power",
            "The survivors' next collective needs all ranks, and torchrun ends them. Ask what it then waits for.",
        ),
    ),
    sheet=("cluster_rank", "cluster_interface", "cluster_cyclic", "cluster_power", "cluster_too_many"),
    replies=(
        Reply(
            "What went wrong first",
            "There is no one answer. This chapter has: an address of the wrong interface, a closed port, a GPU "
            "number of the wrong machine, ranks numbered across the slow wire, a restart that was never tried.",
        ),
        Reply(
            "what does the message say, and what not",
            "It says that gloo finds no address for that name. It does not say which names the machine has: "
            "look with `ip -brief address`. Nor does it name the machine.",
        ),
        Reply(
            "What belongs in a checkpoint beside the weights",
            "The step, the optimizer's state, and whatever else decides the next step: the learning rate's "
            "schedule, the place in the data, the random generators.",
        ),
        Reply(
            "Why does a batch of fixed size stop scaling",
            "Each GPU computes 1/p of the batch, and the gradients are as large as before. 134 ms on 32 GPUs "
            "are 4 ms on 1,024, and the all_reduce takes 5 ms.",
        ),
        Reply(
            "What have they told each other there",
            "The address at which each can be reached. If that is an address of the wrong interface, the "
            "meeting works and the first connection does not.",
        ),
    ),
)
