"""The questions of chapter 8: groups, two numbers for one rank, meshes, and what a hierarchy saves."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="groups_rank_5",
        topic="groups",
        text="Rank r holds 10 r. Ranks 0 to 3 all-reduce in the group `low`, ranks 4 to 7 in the group `high`. "
        "What will rank 5 hold?",
        right=Answer("220", "40 + 50 + 60 + 70: the sum over its own group, ranks 4 to 7."),
        wrong=(
            Answer(
                "280",
                "That is the sum over all eight ranks. Only the four ranks of its group take part.",
            ),
            Answer("60", "That is the sum of the other group: 0 + 10 + 20 + 30. Rank 5 is not in it."),
            Answer("50", "That is what rank 5 brings. all_reduce writes the sum into x, on every rank of the group."),
            Answer("55", "That is the average of its group. all_reduce adds up unless you ask for AVG."),
        ),
        unit="",
        p=8,
    ),
    Choose(
        name="groups_who_calls",
        topic="groups",
        text="You want a group of ranks 4 to 7. Which ranks must call `dist.new_group([4, 5, 6, 7])`?",
        answers=(
            Answer(
                "All eight ranks",
                "All ranks make every group, in the same order, members or not. torch gives each group an ID by "
                "counting, and the IDs must match.",
            ),
            Answer("Rank 0", "Rank 0 is no server: each rank makes its own handle and connections."),
            Answer(
                "Ranks 4 to 7",
                "It looks that way. But torch gives each group an ID by counting. Ranks 0 to 3 would have counted one "
                "group less, so for the next group the two halves would use different IDs.",
            ),
            Answer("Any one of them", "Each member needs its own handle and its own connections."),
        ),
        right=0,
    ),
    Choose(
        name="groups_outsider",
        topic="groups",
        text="All eight ranks call `dist.all_reduce(x, group=low)`. What happens on rank 5, which is not in `low`?",
        answers=(
            Answer(
                "It raises an error",
                "That would be kinder. But torch prints a warning and returns, and x stays as it was.",
            ),
            Answer("It waits forever", "There is no rank that it could wait for: it has no connection in that group."),
            Answer("It gets the sum of ranks 0 to 3", "Only members send and receive. Rank 5 gets nothing."),
            Answer(
                "A warning, and x stays as it was",
                'Its handle says "not a member", and the call returns at once. In the log of a big '
                "job the warning is easily missed, and the result is wrong.",
            ),
        ),
        right=3,
    ),
    Statement(
        name="groups_others_wait",
        topic="groups",
        text="A collective on a group makes the ranks outside it wait until it is over.",
        true=False,
        why="A collective concerns its members alone. Ranks 4 to 7 do not even hear of it.",
    ),
    Number(
        name="groups_models",
        topic="groups",
        text="Eight ranks train. The all_reduce of the gradients has `group=inside` (ranks 0 to 3, or 4 to 7). How "
        "many different models are there afterwards?",
        right=Answer(
            "2",
            "The four ranks of a machine add up their gradients and stay alike. The machines drift "
            "apart, and no error is raised.",
        ),
        wrong=(
            Answer("1", "That needs the gradients of all eight. Here nothing goes from one machine to the other."),
            Answer("8", "That would be without any all_reduce. The four ranks of a machine do add up their gradients."),
            Answer("4", "Four ranks share a model, in each of two machines."),
        ),
        unit="models",
        p=8,
    ),
    Choose(
        name="groups_src",
        topic="groups",
        text="What goes into `dist.broadcast(x, src=..., group=high)`, so that rank 6 is the source?",
        answers=(
            Answer(
                "2",
                "2 is its number inside the group. That is `group_src=2`; `src=` is always a global rank. (In MPI a "
                "root is a rank of the communicator.)",
            ),
            Answer(
                "0",
                "The source need not be the first of its group, and 0 is a rank on the other machine, outside this "
                "group.",
            ),
            Answer(
                "6",
                "`src=` is a global rank in every group. Rank 6 is number 2 of `high`, which is what "
                "`group_src=` takes.",
            ),
            Answer("2 or 6, both work", "With src=2 torch raises: global rank 2 is not part of the group."),
        ),
        right=2,
    ),
    Choose(
        name="groups_along_machine",
        topic="mesh",
        text='Which ranks are in rank 5\'s group along the dimension "machine", `mesh.get_group("machine")`?',
        answers=(
            Answer(
                "4, 5, 6, 7",
                "Those are the GPUs of its machine: the machine number stays and the GPU number varies. That is the "
                'group along "gpu".',
            ),
            Answer(
                "1, 5",
                "The machine number varies, and the GPU number stays: GPU 1 of both machines, the same place on each.",
            ),
            Answer("0, 4", "That is the column of GPU 0. Rank 5 is GPU 1 of its machine."),
            Answer("All eight", "A group along one dimension keeps the other fixed."),
        ),
        right=1,
    ),
    Statement(
        name="groups_rows_columns",
        topic="mesh",
        text="An all_reduce along the rows and then one along the columns gives every rank the sum over all eight.",
        true=True,
        why="Along the row each rank gets the sum of its machine; along the column the two machines' sums are added.",
    ),
    Choose(
        name="groups_layout",
        topic="mesh",
        text="64 GPUs, 8 in each machine, tensor parallel over 8 and data parallel over 8. Somebody writes "
        '`init_device_mesh("cuda", (8, 8), mesh_dim_names=("tensor", "data"))`. What is wrong?',
        answers=(
            Answer(
                "Tensor parallelism runs over the network",
                'The last dimension varies fastest, so a machine\'s 8 GPUs are a "data" group, and every "tensor" '
                "group has one GPU from each machine: the dimension that communicates most got the slow wires.",
            ),
            Answer("Nothing: 8 x 8 is 8 x 8", "The table has the right size, but look at which ranks share a row."),
            Answer(
                "Data parallelism runs over the network",
                "It would be right if it did. Here it has the fast wires, which it needs less.",
            ),
        ),
        right=0,
    ),
    Number(
        name="groups_flat_nic",
        topic="hierarchy",
        text="A ring over ranks 0 to 7 leaves each machine at one place only. How much does the NIC at that place "
        "send, as a multiple of N?",
        right=Answer(
            "2(p - 1)/p",
            "Every hop of a ring carries 2(p - 1)/p N, this one too: 1.75 N on 8 ranks. Another NIC "
            "of the machine receives as much, and the other two have nothing to do.",
        ),
        wrong=(
            Answer("1", "That is what a rank would send if it passed the vector on once. There are two rounds."),
            Answer("(p - 1)/p", "That is the reduce-scatter. The all-gather passes here, too."),
            Answer("1/p", "That is one chunk. In each of the 2(p - 1) steps another one passes."),
            Answer("2", "Nearly: of 8 chunks 7 pass here in each of the two rounds, and one stays where it is."),
            Answer("2(p - 1)", "That is in chunks; each is 1/p of N: together 1.75 N."),
        ),
        unit="N",
        p=8,
        within=0.02,
    ),
    Number(
        name="groups_hierarchical_nic",
        topic="hierarchy",
        text="Hierarchical, two machines of four GPUs: how much does each NIC send?",
        right=Answer(
            "1/4",
            "Its GPU has a quarter of the vector, and an all-reduce between two ranks sends its vector once: N/4.",
        ),
        wrong=(
            Answer("1", "That is all four NICs of a machine together. Each has a quarter of the vector."),
            Answer(
                "2(p - 1)/p",
                "That was the one NIC of the flat ring. Here a GPU has only a quarter to send, to one partner.",
            ),
            Answer("1/p", "A GPU holds a quarter after the reduce-scatter: its machine has four GPUs, not eight."),
            Answer("1/2", "An all-reduce of two ranks sends 2 (2 - 1)/2 = 1 times its vector, and that is N/4."),
        ),
        unit="N",
        p=8,
        within=0.02,
    ),
    Choose(
        name="groups_factor",
        topic="hierarchy",
        text="4.19 MB, 10 MB/s between the machines, 200 MB/s inside. About how much faster is the hierarchical one, "
        "by the cost formula?",
        answers=(
            Answer("Not at all: both send 1.75 N", "In all, yes. But not over the same wires, and not over one NIC."),
            Answer("Twice", "The bytes between fall from 1.75 N on one NIC to 0.25 N on each: more than that."),
            Answer("20 times", "200 against 10 MB/s would be 20, if nothing had to leave the machine."),
            Answer(
                "5 times",
                "The NICs need a seventh of the time: 105 ms instead of 734. What happens inside, 1.5 N at 200 MB/s, "
                "adds 31 ms.",
            ),
        ),
        right=3,
    ),
    Statement(
        name="groups_two_zeros",
        topic="groups",
        text='`dist.get_rank(mesh.get_group("gpu"))` is 0 on two of the eight ranks.',
        true=True,
        why="There are two such groups, one in each machine, and each counts its members from 0: ranks 0 and 4.",
    ),
    Statement(
        name="groups_myth_order",
        topic="groups",
        text="`dist.new_group([6, 4])` makes rank 6 number 0 of the group.",
        true=False,
        why="torch sorts the list: rank 4 is number 0 and rank 6 number 1. Only `sort_ranks=False` keeps your order.",
    ),
)
