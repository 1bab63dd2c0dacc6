"""The course's order for a pipeline with several stages on a rank is torch's own."""

import itertools

import pytest
from torch.distributed.pipelining import schedules

from collectives.pipeline import interleaved

KIND = {"FORWARD": "F", "FULL_BACKWARD": "B"}  # the enum's values are numbers in torch 2.8


def torchs(p, m, v):
    """The order that torch has, in our words; it counts micro-batches from 0."""
    orders = []
    for rank in range(p):
        made = object.__new__(schedules.ScheduleInterleaved1F1B)
        made.__dict__.update(rank=rank, pp_group_size=p, n_local_stages=v, _n_microbatches=m)
        made.__dict__.update(number_of_rounds=max(1, m // p), microbatches_per_round=m // max(1, m // p))
        ops = [op for op in made._calculate_single_rank_operations(rank) if op is not None]
        said = [(op.stage_index, KIND[op.computation_type.name], op.microbatch_index + 1) for op in ops]
        orders.append(" ".join(map("{0[0]}{0[1]}{0[2]}".format, said)))
    return orders


@pytest.mark.parametrize("p, v, k", [*itertools.product((2, 4), (2, 3), (1, 2, 3))])
def test_interleaved_is_torchs_own_order(p, v, k):
    assert interleaved(p, k * p, v).texts == torchs(p, k * p, v)
