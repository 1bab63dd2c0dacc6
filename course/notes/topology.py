"""Notes on chapter 9: 32 GPUs on a map; the question is over which wire."""

from course.notes.note import Again, Mistake, Notes, Part, Reply

NOTES = Notes(
    fifty=(
        Part(
            14,
            "One ring, and a ring for each NIC",
            "`topology_ring_nics`, then the map on the wall: how many of the 32 NICs carry nothing? Then "
            "`topology_hierarchical_bytes`, and the three plans on one map.",
        ),
        Part(
            6,
            "And halving-doubling?",
            "`topology_order`: chapter 7's order question, now worth a factor of eight in bytes that leave a machine.",
        ),
        Part(
            9,
            "A switch that adds",
            "`topology_switch`. Why may this beat the bound of chapter 5? Because the bound was for messages "
            "between ranks.",
        ),
        Part(
            9,
            "How it chooses",
            "The hops of a ring and of a tree on two machines. Then `topology_choice` and `nccl.choose`: an estimate "
            "for each call.",
        ),
        Part(
            8,
            "Which wins where",
            "`topology_winner`, then change the network in the menu: the wires decide.",
        ),
        Part(
            4,
            "Take away",
            "The table of the take-away, with the right-hand column covered.",
        ),
    ),
    ninety=(
        Again(18, "One ring, and a ring for each NIC", "Pairs find on the map which wires each plan loads most."),
        Again(8, "And halving-doubling?", "What if the ranks are numbered the other way?"),
        Part(
            10,
            "Write: a broadcast through every NIC",
            "Draw two machines of four. Where is the vector after each of the three moves? Then write the last two.",
        ),
        Again(12, "A switch that adds", "Why is it hardly faster step by step?"),
        Part(
            18,
            "How it chooses",
            "First the formula, and chapter 6's table of protocols: what does each pay, and for what? Then as in the "
            "short plan. Guess the twelve rows before you run them.",
        ),
        Part(
            6,
            "Myth check",
            "Hands up for true: it is.",
        ),
        Again(8, "Which wins where"),
        Part(
            10,
            "On your own machines",
            "The students' own machines: what does `nvidia-smi topo -m` say there? Then `topology_torus`.",
        ),
    ),
    home="`rail_broadcast` where it was not written, and the extra at the end.",
    room="topology_ring_nics",
    ask="Draw one machine with its eight GPUs and eight NICs, and ask for a number on fingers: 1, 2, 4 or 8. Then "
    "follow the ring with a finger, 0 to 7 and out: the finger leaves the machine once. Ask what the other seven "
    "NICs cost to rent.",
    wrong=(
        Mistake(
            "topology_ring_nics",
            "A NIC for each GPU is not a NIC at work for each GPU. Seven of eight right-hand neighbours are in "
            "the same machine.",
        ),
        Mistake(
            "topology_hierarchical_bytes",
            "1.94 is a ring among 32. Between machines only 4 take part: 1.5.",
        ),
        Mistake(
            "topology_winner",
            "Many rings won a minute ago, with eight NICs. Here there is one NIC: count what leaves.",
        ),
        Mistake(
            "topology_switch",
            "Ask which copies the switch makes. Each rank sends N and receives N; none sends its sum to seven others.",
        ),
        Mistake(
            "topology_one_gpu_each",
            "They expect the hierarchy to be better always. Ask what it does inside a machine of one GPU.",
        ),
    ),
    sheet=(
        "topology_ring_nics",
        "topology_hierarchical_bytes",
        "topology_order",
        "topology_myth_threshold",
        "topology_switch",
        "topology_winner",
    ),
    replies=(
        Reply(
            "how many of the 32 NICs carry nothing",
            "24: in each machine only GPU 7's sends and GPU 0's receives.",
        ),
        Reply(
            "Why may this beat the bound of chapter 5",
            "The bound counts vectors that ranks send, because there only ranks add and copy. Here the switch "
            "does both, and what it sends is not counted.",
        ),
        Reply(
            "What if the ranks are numbered the other way",
            "If the ranks are dealt to the four machines in turn, the nearest partner is on another machine: "
            "nearest first then takes 12 GB out of each machine, farthest first 1.5 GB.",
        ),
        Reply(
            "Where is the vector after each of the three moves",
            "First in four chunks on the four GPUs of machine 0. Then chunk i on GPU i of both machines. Then "
            "all of it everywhere.",
        ),
        Reply(
            "what does `nvidia-smi topo -m` say there",
            "Read a row: NV and a number is so many NVLinks, PIX a PCIe switch, SYS the way through both "
            "processors. The NIC for a GPU is the one with PIX in its row.",
        ),
        Reply(
            "what does each pay, and for what",
            "LL pays half of the bandwidth for the lowest latency: a flag with every four bytes. LL128 pays a "
            "sixteenth: 8 bytes of 128. Simple pays no bytes, and a signal for every slice that the receiver "
            "waits for.",
        ),
        Reply(
            "Why is it hardly faster step by step",
            "In the first half a rank sends nearly N and receives little; in the second it is the other way "
            "round. Together the busy direction carries as much as in the two shots. Overlapped halves use both "
            "directions at once.",
        ),
    ),
)
