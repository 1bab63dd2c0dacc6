"""Notes on chapter 9: 32 GPUs on a map; the question is over which wire."""

from course.notes.note import Mistake, Notes, Part

NOTES = Notes(
    fifty=(
        Part(
            14,
            "One ring, and a ring for each NIC",
            "`topology_ring_cards`, then the map on the wall: how many of the 64 ways carry anything? Then "
            "`topology_hierarchical_bytes`, and the three plans on one map.",
        ),
        Part(
            6,
            "And halving-doubling?",
            "`topology_order`: chapter 7's order question, now worth a factor of eight in bytes that leave a machine.",
        ),
        Part(
            8,
            "Which wins where",
            "`topology_winner`, then change the network in the menu: the wires decide.",
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
            "`topology_chain`, then `nccl.choose`: no thresholds, an estimate for each call.",
        ),
        Part(
            4,
            "Take away",
            "The table of the take-away, with the right-hand column covered.",
        ),
    ),
    ninety=(
        Part(
            18,
            "One ring, and a ring for each NIC",
            "As in the short plan. Pairs find on the map which wires each plan loads most.",
        ),
        Part(
            8,
            "And halving-doubling?",
            "As in the short plan. What if the ranks are numbered the other way?",
        ),
        Part(
            10,
            "Write: a broadcast through every NIC",
            "Draw two machines of four. Where is the vector after each of the three moves? Then write the last two.",
        ),
        Part(
            10,
            "Which wins where",
            "As in the short plan. Then the students' own machines: what does `nvidia-smi topo -m` say there?",
        ),
        Part(
            6,
            "What NCCL has",
            "The table, and the three protocols: what does each pay, and for what?",
        ),
        Part(
            12,
            "A switch that adds",
            "As in the short plan. Why is it hardly faster step by step?",
        ),
        Part(
            12,
            "How it chooses",
            "As in the short plan. Guess the nine rows before you run them.",
        ),
        Part(
            8,
            "Other wires, other partners",
            "`topology_torus`, and for which length a hierarchical all_to_all helps.",
        ),
        Part(
            6,
            "Myth check",
            "Both. The second one is true.",
        ),
    ),
    home="`rail_broadcast` where it was not written, tori, and the table of what NCCL has.",
    room="topology_ring_cards",
    ask="Draw one machine with its eight GPUs and eight cards, and ask for a number on fingers: 1, 2, 4 or 8. Then "
    "follow the ring with a finger, 0 to 7 and out: the finger leaves the machine once. Ask what the other seven "
    "cards cost to rent.",
    wrong=(
        Mistake(
            "topology_ring_cards",
            "A card for each GPU is not a card at work for each GPU. Seven of eight right-hand neighbours are in "
            "the same machine.",
        ),
        Mistake(
            "topology_hierarchical_bytes",
            "1.94 is a ring among 32. Between machines only 4 take part: 1.5.",
        ),
        Mistake(
            "topology_winner",
            "Many rings won a minute ago, with eight cards. Here there is one card: count what leaves.",
        ),
        Mistake(
            "topology_switch",
            "Ask which copies the switch makes. Up goes N, down comes N, and no rank sends the sum to seven others.",
        ),
        Mistake(
            "topology_one_gpu_each",
            "They expect the hierarchy to be better always. Ask what it does inside a machine of one GPU.",
        ),
    ),
    sheet=(
        "topology_ring_cards",
        "topology_hierarchical_bytes",
        "topology_order",
        "topology_winner",
        "topology_switch",
        "topology_myth_threshold",
    ),
)
