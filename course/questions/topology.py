"""The questions of chapter 9: what leaves a machine, through which NIC, and what NCCL makes of it."""

from course.questions.question import Answer, Choose, Number, Statement

QUESTIONS = (
    Number(
        name="topology_data_sheet",
        topic="topology",
        text="NVLink 900 GB/s, bidirectional; NIC 400 Gbit/s. How many times as fast does a GPU send over NVLink as "
        "through its NIC?",
        right=Answer("9", "900 GB/s is both directions together, 450 each way. 400 Gbit/s are 50 GB/s. 450 / 50 = 9."),
        wrong=(
            Answer("18", "900 GB/s is both directions together. What a GPU sends is half of it, 450 GB/s."),
            Answer("2.25", "900 are gigabytes and 400 are gigabits. 400 Gbit/s are 50 GB/s. And 900 is both ways."),
            Answer("1.125", "450 are gigabytes and 400 are gigabits. A byte has 8 bits, so 400 Gbit/s are 50 GB/s."),
            Answer("4.5", "A NIC of 400 Gbit/s carries that in each direction, so it sends 50 GB/s and not 100."),
        ),
        unit="times",
        p=32,
        within=0.02,
    ),
    Number(
        name="topology_ring_nics",
        topic="topology",
        text="One ring over all 32 GPUs. How many of the 8 NICs of a machine send anything to another machine?",
        right=Answer(
            "1",
            "A ring leaves a machine at one place: from rank 7 to rank 8. Only GPU 7's NIC sends, and"
            " every NVLink waits for it: a ring is as fast as its slowest link.",
        ),
        wrong=(
            Answer("8", "Each GPU has a NIC, but seven of eight GPUs have their right neighbour in the same machine."),
            Answer("2", "One sends and another receives. Only one of them sends."),
            Answer("4", "That is all four machines together: one NIC in each of them sends."),
        ),
        unit="NICs",
        p=32,
    ),
    Number(
        name="topology_hierarchical_bytes",
        topic="topology",
        text="Hierarchical on 4 machines, 1 GB: how much leaves each machine, through all its NICs together?",
        right=Answer(
            "1.5",
            "Each of 8 NICs does an all-reduce of 1/8 GB among 4 machines: 2 (4 - 1)/4 x 1/8. "
            "Times 8 that is 1.5 GB, less than the 1.94 of a ring among 32.",
        ),
        wrong=(
            Answer("1.9375", "That is the ring over 32: 2 (32 - 1)/32. Between the machines only 4 take part."),
            Answer("0.1875", "That is one NIC. There are eight of them."),
            Answer("8", "That is 1 GB once through each of 8 NICs. A GPU has only an eighth of it to send."),
            Answer("12", "That would be the whole vector through each NIC. Each has only an eighth of it."),
            Answer("1", "An all-reduce among 4 sends 2 (4 - 1)/4 = 1.5 times its vector."),
        ),
        unit="GB",
        p=32,
        within=0.01,
    ),
    Choose(
        name="topology_order",
        topic="topology",
        text="1 GB on 4 x 8. How many GB leave each machine, nearest first and farthest first?",
        answers=(
            Answer(
                "1.5 nearest, 1.5 farthest",
                "A rank sends the same bytes in both orders, but to other partners. Which message leaves the machine?",
            ),
            Answer(
                "1.5 nearest, 12 farthest",
                "Nearest first, each of 8 GPUs sends N/16 and N/32 across in the reduce-scatter, and the same in the "
                "all-gather: 3/16 N. Farthest first it is N/2 and N/4, twice: 3/2 N.",
            ),
            Answer("12 nearest, 1.5 farthest", "The other way round: the first message is the longest, N/2."),
            Answer(
                "1.94 nearest, 15.5 farthest",
                "1.94 N is what each rank sends in all. Some of it stays in the machine.",
            ),
        ),
        right=1,
    ),
    Choose(
        name="topology_winner",
        topic="topology",
        text="Which wins for 1 GB when all eight GPUs of a machine share one Ethernet NIC?",
        answers=(
            Answer("A ring for each GPU", "There is one NIC. Eight rings bring 1.94 GB to it, as one ring does."),
            Answer(
                "Halving-doubling, farthest first",
                "That sends 12 GB through the one NIC, eight times as much as nearest first.",
            ),
            Answer(
                "Halving-doubling, nearest first",
                "Only 1.5 GB leave each machine, and it has few steps. (The hierarchy sends as much, in more steps.)",
            ),
            Answer("Recursive doubling", "It sends whole vectors, 16 GB through the one NIC. It is for short vectors."),
        ),
        right=2,
    ),
    Choose(
        name="topology_smi",
        topic="topology",
        text="GPU 1 has a long message for another machine. Which way should its bytes take?",
        answers=(
            Answer(
                "Straight to NIC0",
                "Row GPU1, column NIC0 says SYS: through both processors and the slow link between them.",
            ),
            Answer(
                "Over NVLink to GPU 3, out from there",
                "GPU 3 has no NIC on its own PCIe switch either: its row says SYS twice.",
            ),
            Answer(
                "Over NVLink to GPU 0 or 2, out from there",
                "18 NVLinks are many times faster than any NIC, and GPUs 0 and 2 have a NIC on their own PCIe switch. "
                "NCCL does this, and calls it PXN.",
            ),
        ),
        right=2,
    ),
    Number(
        name="topology_switch",
        topic="in-network reduction",
        text="The switch adds, and copies. What is the least that each of the 8 ranks must send, in all?",
        right=Answer(
            "1",
            "It sends the seven parts that other ranks own, 7/8 N, and gets its own part back, added up. Then it sends "
            "the sum of that part, N/8, once: the switch makes the copies.",
        ),
        wrong=(
            Answer("2(p - 1)/p", "That is without the switch, where each rank sends its sum to seven others itself."),
            Answer("(p - 1)/p", "That is the first half. Then the sum of its own part goes out."),
            Answer("2", "7/8 N on the way up, and then only N/8: the switch makes the copies."),
            Answer("1/p", "That is the sum of its own part. Before that it sends the seven other parts."),
            Answer(
                "1+1/p",
                "NVLS sends this much: even the rank's own part goes through the switch. The least is 7/8 for the "
                "other ranks' parts and 1/8 for its own.",
            ),
        ),
        unit="N",
        p=8,
    ),
    Number(
        name="topology_chain",
        topic="cost",
        text="One chunk goes round a single ring over all 32 GPUs: 2 x 31 = 62 hops. How many of them leave a "
        "machine, at most?",
        right=Answer(
            "8",
            "The chunk goes round twice, and leaves a machine four times in each round. The other 54 hops stay inside.",
        ),
        wrong=(
            Answer("62", "62 would mean that every hop leaves a machine. Most stay inside: 7 of 8."),
            Answer("4", "That is once round. The chunk goes round to be added, and again to bring the sum to all."),
            Answer("31", "Most hops are between GPUs of one machine: 7 of 8."),
            Answer("6", "Among 4 machines a ring has 6 steps, but this ring has 32 ranks and closes."),
        ),
        unit="hops",
        p=32,
    ),
    Choose(
        name="topology_choice",
        topic="nccl",
        text="16 GPUs on two machines all-reduce 1 kB. What does our copy of NCCL's model choose?",
        answers=(
            Answer(
                "A ring for each NIC",
                "A chunk makes 30 hops, 4 of them between machines. With LL that is 6.6 + 26 x 0.6 + 4 x 2.7 = 33 us. "
                "A tree has a shorter chain.",
            ),
            Answer(
                "The trees, and the switch adds inside",
                "It saves bytes, and 1 kB has few. The switch has no LL: 25 + 2 x 14 = 53 us.",
            ),
            Answer(
                "The trees, without the switch",
                "1 kB is all latency. A tree of two machines has one level: 14 hops inside and 2 between. With LL that "
                "is 6.6 + 14 x 0.6 + 2 x 2.7 = 20 us. A ring takes 33 us.",
            ),
            Answer(
                "Recursive doubling",
                "It has the fewest steps of all, but NCCL does not have it for an all-reduce.",
            ),
        ),
        right=2,
    ),
    Number(
        name="topology_torus",
        topic="topology",
        text="16 chips as a torus of 4 x 4, 1 GB: how many times faster than one ring through all of them?",
        right=Answer(
            "4",
            "Four wires at each chip are at work instead of one. The hierarchy does rows and columns one after the "
            "other, in one direction: three of the four wires are idle.",
        ),
        wrong=(
            Answer("2", "That would be two wires: the ring in both directions. A chip of a torus has four."),
            Answer("16", "The number of chips does not matter for long vectors: nearly 2 N leave each chip anyway."),
            Answer("1", "The same bytes leave each chip, but over four wires instead of one."),
        ),
        unit="times",
        p=16,
        within=0.03,
    ),
    Statement(
        name="topology_myth_threshold",
        topic="nccl",
        text="NCCL uses trees below 256 kB and rings above.",
        true=False,
        why="Size alone does not decide. NCCL estimates how long each algorithm takes on your machines, and takes the "
        "fastest. You will compute such estimates below. A variable NCCL_TREE_THRESHOLD did exist, until NCCL 2.5.",
    ),
    Statement(
        name="topology_one_gpu_each",
        topic="topology",
        text="With one GPU in each machine the hierarchical all-reduce sends just what a plain ring sends.",
        true=True,
        why="Inside a machine of one GPU there is nothing to reduce or to gather. What is left is the ring between "
        "machines.",
    ),
)
