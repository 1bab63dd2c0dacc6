"""The right answers of chapters 5 on, held against schedules and their cost."""

import math
from collections import Counter

import pytest

from collectives import (
    Link,
    Network,
    Topology,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    presets,
    reduce,
    reduce_scatter,
    scatter,
)
from collectives.spec import goal
from course.gpt import ALPHABET, new_weights, pieces
from course.questions import (
    QUESTIONS,
    algorithms,
    capstone,
    cluster,
    compiler,
    compose,
    cost,
    data_parallel,
    experts,
    groups,
    interview,
    pipeline,
    sharding,
    tensor_parallel,
    topology,
    when_it_hangs,
)
from course.questions import all_reduce as ring
from course.teach.amount import amount

MODULES = (
    *(ring, cost, algorithms, groups, topology, compose),
    *(data_parallel, sharding, tensor_parallel, pipeline, experts, compiler),
    when_it_hangs,
    cluster,
    capstone,
    interview,
)
TWO_MACHINES = Topology.machines(2, 4, Link(0, 1), Link(0, 1))
ONE_NIC = Topology.machines(2, 2, Link(0, 1e-20), Link(0, 1 / 4e6), nic="machine")
PLAYED = presets.played("infiniband", 4)


def counts(algorithm, ranks=4):
    return getattr(all_reduce, algorithm)(ranks).counts(nbytes=1)


def seconds(schedule, nbytes, network):
    return schedule.cost(nbytes=nbytes, network=network).seconds


def ratio(network, one, other):
    return seconds(*one, network) / seconds(*other, network)


def crossing():
    """Two costs are straight lines in N: where one shot stops being the quicker."""
    gap = [seconds(all_reduce.exchange(4), n, PLAYED) - seconds(all_reduce.two_shot(4), n, PLAYED) for n in (1e6, 2e6)]
    return 1e6 * (1 - gap[0] / (gap[1] - gap[0]))


def out_of_machines(schedule):
    """GB of 1 GB that the NICs of one of 4 machines x 8 send together."""
    by_link = schedule.cost(nbytes=1e9, network=presets.dgx_h100(4)).by_link
    sent = [use.bytes / 1e9 for name, use in by_link.items() if name.startswith("nic") and name.endswith("out")]
    return sum(sent) / 4


def nics_in_use(schedule):
    by_link = schedule.cost(nbytes=1e9, network=presets.dgx_h100(4)).by_link
    return sum(name.startswith("nic") and name.endswith("out") for name in by_link) / 4


def through_a_nic(schedule):
    """N that the busiest NIC of two machines of 4 sends."""
    by_link = schedule.cost(nbytes=8, network=TWO_MACHINES).by_link
    return max(use.bytes for name, use in by_link.items() if name.startswith("nic")) / 8


def out_of_a_machine(schedule, machine):
    """N that leaves machine 0, if a rank is on that machine."""
    moved = [transfer for step in schedule.steps for transfer in step.transfers]
    far = [each.count for each in moved if machine(each.src) == 0 != machine(each.dst)]
    return sum(far) / schedule.chunks


def slots(stages, micro_batches):
    """When the last stage has finished the last micro-batch, if every one takes every stage a slot."""
    done = [0] * stages  # when each stage is free again
    for _ in range(micro_batches):
        for stage in range(stages):
            done[stage] = 1 + max(done[stage], done[stage - 1] if stage else 0)
    return done[-1]


def blocks_in_last_step(schedule):
    sent = [step.transfers[0] for step in schedule.steps]
    return [transfer.count for transfer in sent if transfer.src != transfer.dst][-1]


def hops_between_machines(schedule):
    """Of the chunk that goes from a machine to the next most often."""
    moved = [transfer for step in schedule.steps for transfer in step.transfers]
    far = Counter(transfer.chunk for transfer in moved if transfer.src // 8 != transfer.dst // 8)
    return max(far.values())


def slower_between():
    """How many times longer the all_reduces of chapter 13's step take with tensor parallel between two machines."""
    inside, between = Link(1e-4, 1 / 50e6), Link(1e-3, 1 / 2.5e6)

    def step(tensor, data):
        rooms = [Topology.machines(machines, gpus, inside, between) for machines, gpus in (tensor, data)]
        activations, gradients = 2048 * 64 * 4, 2 * 2 * 64 * 64 * 4
        return 4 * seconds(all_reduce.ring(4), activations, rooms[0]) + seconds(all_reduce.ring(2), gradients, rooms[1])

    return round(step((2, 2), (1, 2)) / step((1, 4), (2, 1)), 1)


def exchanged(*tokens):
    """Seconds for an exchange in which each of four ranks has so many tokens for each, if only bytes count."""
    schedule = all_to_all.uneven([tokens] * 4)
    return seconds(schedule, schedule.chunks, Network(0, 1))


def gigabytes(psi, weights, gradients, optimizer):
    """What a rank keeps, if each of the three is cut among so many: 2, 2 and 12 bytes per parameter."""
    return psi * (2 / weights + 2 / gradients + 12 / optimizer) / 1e9


KEPT = ("weight", "gradient", "exp_avg", "exp_avg_sq")  # of Adam, each in float32; chapter 12 counts their bytes


def slow_backward(layers):
    """Seconds of chapter 11's backward pass of 16 layers, with so many in a bucket."""
    network, over = Network(4e-3, 1 / 16e6), 0.0
    for bucket in range(16 // layers):
        over = max((bucket + 1) * layers * 25e-3, over) + seconds(all_reduce.ring(4), layers * 2**18, network)
    return over


SHEET = Network(alpha=10e-6, beta=1 / 10e9)  # of the interview


def half_starts(schedule):
    """The bytes at which its starts take as long as what is sent: cost is a straight line in N."""
    starts = seconds(schedule, 0, SHEET)
    return 1e6 * starts / (seconds(schedule, 1e6, SHEET) - starts)


def everywhere_alike():
    """After how many of the collectives that move data every rank of 4 must hold the same."""
    modules = (broadcast, scatter, gather, reduce, all_gather, reduce_scatter, all_reduce, all_to_all)
    goals = [next(iter(goal(module.ALGORITHMS[0](4)).values())) for module in modules]
    return sum(all((row == rows[0]).all() and None not in row for row in rows) for rows in goals)


def capstone_tokens():
    """Per second, if only the bytes of a step took time: activations inside a machine, gradients between two."""
    numbers = sum(weight.numel() for weight in pieces(new_weights(), 0, 2).values())
    inside, between = Network(0, 1 / 20e6), Network(0, 1 / 0.5e6)
    activations = 8 * seconds(all_reduce.ring(2), 256 * 64 * 4, inside)
    return 512 / (activations + seconds(all_reduce.ring(2), 4 * numbers, between))


def ring_against_ulysses(ranks):
    """What a ring of keys and values sends against four exchanges; a rank has 1 byte of each."""
    ring_sends = 2 * all_gather.ring(ranks).counts(nbytes=ranks).busiest
    return ring_sends / (4 * all_to_all.linear(ranks).counts(nbytes=1).busiest)


NIC, NVLINK_LL = Network(0, 1 / 50e9), Network(0.6e-6, 1 / 225e9)
LL = presets.PROTOCOLS["LL"]
FOUND = {
    "naive_messages": lambda: counts("naive", 8).messages,
    "naive_busiest": lambda: counts("naive").busiest,
    "exchange_busiest": lambda: counts("exchange").busiest,
    "ring_many_ranks": lambda: counts("ring", 16).busiest,
    "naive_over_ring": lambda: ratio(
        presets.played("ethernet", 4), (all_reduce.naive(4), 1e6), (all_reduce.ring(4), 1e6)
    ),
    "one_two_crossing": crossing,
    "bucket_times": lambda: 33 * ratio(PLAYED, (all_reduce.ring(4), 8192), (all_reduce.ring(4), 33 * 8192)),
    "estimate_gradients": lambda: seconds(all_reduce.ring(16), 16e9, NIC),
    "estimate_token": lambda: seconds(all_reduce.ring(8), 65.5e3, NVLINK_LL),
    "estimate_busbw": lambda: 8.59e9 / 158.07e-3 * 7 / 4,  # 95.10 GB/s in nccl-tests#252
    "long_message": lambda: 20e-6 + 4e6 / 2e9,
    "half_latency": lambda: 20e-6 * 2e9,
    "algorithms_up_and_down": lambda: counts("tree", 16).steps,
    "algorithms_tree_busiest": lambda: counts("tree", 8).busiest,
    "algorithms_double_tree": lambda: counts("double_tree", 8).busiest,
    "algorithms_chunk_steps": lambda: all_reduce.double_tree(64, chunks=8).counts(nbytes=1).steps,
    "algorithms_doubling": lambda: counts("recursive_doubling", 16).steps,
    "algorithms_halving": lambda: counts("halving_doubling", 8).busiest,
    "algorithms_bruck": lambda: blocks_in_last_step(all_gather.bruck(5)),
    "groups_rank_5": lambda: sum(10 * rank for rank in range(4, 8)),
    "groups_models": lambda: len({rank // 4 for rank in range(8)}),
    "groups_flat_nic": lambda: through_a_nic(all_reduce.ring(8)),
    "groups_hierarchical_nic": lambda: through_a_nic(all_reduce.hierarchical(2, 4)),
    "topology_data_sheet": lambda: presets.NDR_INFINIBAND.beta / presets.NVLINK_4.beta,
    "topology_ring_nics": lambda: nics_in_use(all_reduce.ring(32)),
    "topology_hierarchical_bytes": lambda: out_of_machines(all_reduce.hierarchical(4, 8)),
    "topology_switch": lambda: counts("nvls", 8).busiest,
    "topology_torus": lambda: round(
        ratio(presets.tpu_torus(4, 4), (all_reduce.ring(16), 1e9), (all_reduce.torus(4, 4), 1e9)), 1
    ),
    "topology_chain": lambda: hops_between_machines(all_reduce.ring(32)),
    "compose_mean": lambda: sum((10 * r + 11 * r) / 2 for r in range(4)) / 4,
    "compose_accuracy": lambda: 100 * (81 + 81 + 5 + 0) / (90 + 90 + 10 + 2),
    "sharding_bytes_per_parameter": lambda: 4 * len(KEPT),
    "sharding_zero1_bytes": lambda: sum(4 / (4 if name.startswith("exp_avg") else 1) for name in KEPT),
    "sharding_zero3_calls": lambda: 3 * len(["all_gather, forward", "all_gather, backward", "reduce_scatter"]),
    "estimate_sharded_memory": lambda: 1e9 * gigabytes(8e9, 1, 16, 16),
    "tp_mlp_calls": lambda: 1,  # chapter 13 runs it with one
    "tp_layer_bytes": lambda: 4 * counts("ring", 8).busiest * 4096 * 8192 * 2,
    "tp_bound": lambda: (2 + 2 + 2) / (8 * 50e9) / (6 / 989e12),  # two gathers, a reduce; 6 operations
    "tp_factor": slower_between,
    "dp_per_parameter": lambda: 16 * seconds(all_reduce.ring(4), 2**18, Network(4e-3, 1 / 16e6)),
    "dp_bucket_best": lambda: min([1, 2, 4, 8, 16], key=slow_backward),
    "pipe_busy": lambda: 4 / slots(4, 1),
    "pipe_slots": lambda: slots(4, 8),
    "pipe_how_many": lambda: next(m for m in range(1, 100) if 10 * (slots(8, m) - m) <= slots(8, m)),
    "pipe_kept": lambda: slots(4, 1),  # rank 0 makes a pass in each slot until micro-batch 1 is at the end
    "pipe_boundary_bytes": lambda: len(["forward", "backward"]) * 4096 * 8192 * 2,
    "experts_calls": lambda: 3 + 2,  # chapter 15 counts them in a recording
    "cp_ring_bytes": lambda: ring_against_ulysses(8),
    "experts_skew": lambda: exchanged(40, 8, 8, 8) / exchanged(16, 16, 16, 16),
    "clinic_hours": lambda: 512 * (10 + 20) / 60,
    "cluster_rank": lambda: [machine for machine in range(32) for _ in range(8)][211],
    "cluster_cyclic": lambda: out_of_a_machine(all_reduce.ring(4), machine=lambda rank: rank % 2),
    "cluster_hierarchical": lambda: seconds(all_reduce.hierarchical(2, 2), 1e6, ONE_NIC),
    "cluster_interruptions": lambda: 54 * 24 * 16384 / 419 / 512,
    "cluster_too_many": lambda: (
        134e-3
        * 32
        / round(all_reduce.nvls_tree(128, 8).cost(1e9, network=presets.dgx_h100(128), pipelined=True).seconds, 4)
    ),
    "experts_bytes": lambda: 4 * all_to_all.pairwise(8).counts(nbytes=1).busiest * 4096 * 2 * 4096 * 2,
    "cap_first_loss": lambda: round(-math.log(1 / len(ALPHABET)), 3),
    "cap_tokens_per_second": capstone_tokens,
    "cap_score": lambda: sum(passes := (4 * 65536 / 2e6, 224000 / 1e6)) - max(passes),
    "interview_same": everywhere_alike,
    "interview_split": lambda: counts("ring", 8).busiest / reduce_scatter.ring(8).counts(nbytes=1).busiest,
    "interview_two_n": lambda: all_gather.ring(8).counts(nbytes=8 * 100e6).busiest,
    "interview_tree_time": lambda: seconds(all_reduce.tree(8), 100e6, SHEET),
    "interview_ring_time": lambda: seconds(all_reduce.ring(8), 8e3, SHEET),
    "interview_ring_half": lambda: half_starts(all_reduce.ring(8)),
    "interview_overlap": lambda: max(80e-3, 60e-3),
    "interview_mfu": lambda: (2 + 2 + 2) * 70e9 / (989e12 / (900e3 / 1024)),
    "interview_decode": lambda: 2 * 80 * LL.call + 2 * 80 * seconds(all_reduce.ring(8), 0, Network(LL.nvlink, 0)),
    "estimate_compiled": lambda: counts("ring", 8).busiest * 8192 * 8192 * 2 / 370e9,
    "xla_calls": lambda: 1,  # chapter 16 compiles it
    "estimate_overlap": lambda: max(20e-3 * ready + 16.8e-3 * (33 - ready) for ready in range(1, 33)),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_right_answer_is_what_is_counted(name):
    question = QUESTIONS[name]
    right = amount(question.right.text, question.p)
    assert right == pytest.approx(float(FOUND[name]()), rel=1e-6)


def test_every_number_is_held_against_something():
    numbers = [question for module in MODULES for question in module.QUESTIONS if hasattr(question, "unit")]
    assert {question.name for question in numbers} == set(FOUND)


def test_no_wrong_answer_would_count_as_right_and_no_two_are_alike():
    for module in MODULES:
        for question in module.QUESTIONS:
            if hasattr(question, "unit"):
                said = [amount(answer.text, question.p) for answer in (question.right, *question.wrong)]
                assert None not in said, question.name
                for one in range(len(said)):
                    for other in said[:one]:
                        assert abs(said[one] - other) > question.within * abs(other), (question.name, said)
