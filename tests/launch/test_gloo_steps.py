"""What gloo sends inside its collectives, counted on its connections: who to whom, and how much."""

import pytest

from collectives import Network
from launch.backends.gloo import steps_of
from launch.doctor.snapshot import How
from launch.ranks import Ranks

NUMBERS = 840 * 250  # divides into 4, 5 and 8 parts
WORDS = 40_000  # bytes of gloo's own at most: who is ready for what
CALLS = {
    "all_reduce": "dist.all_reduce(x)",
    "reduce_scatter_single": "dist.reduce_scatter_single(torch.empty(len(x) // world_size), x)",
    "reduce_scatter": "dist.reduce_scatter(torch.empty(len(x) // world_size), list(x.chunk(world_size)))",
    "all_gather_single": "dist.all_gather_single(torch.empty(len(x) * world_size), x)",
    "all_gather": "dist.all_gather([torch.empty_like(x) for _ in range(world_size)], x)",
    "broadcast": "dist.broadcast(x, 1)",
    "reduce": "dist.reduce(x, 1)",
    "gather": "dist.gather(x, [torch.empty_like(x) for _ in range(world_size)] if rank == 1 else None, 1)",
    "scatter": "dist.scatter(torch.empty_like(x), [x.clone() for _ in range(world_size)] if rank == 1 else None, 1)",
    "all_to_all_single": "dist.all_to_all_single(torch.empty_like(x), x)",
    "all_to_all": "dist.all_to_all(list(torch.empty_like(x).chunk(world_size)), list(x.chunk(world_size)))",
    "barrier": "dist.barrier()",
}


@pytest.fixture(scope="module", params=(4, 5, 8))
def ranks(request, warm):
    ranks = Ranks(fork_from=warm)
    ranks.ensure(request.param)
    ranks.play(Network(alpha=1e-6, beta=1e-10))
    yield ranks
    ranks.close()


@pytest.mark.parametrize("op", CALLS)
def test_gloo_sends_what_is_said(ranks, op):
    answers = ranks.execute(f"x = torch.ones({NUMBERS})\n{CALLS[op]}")
    assert {answer.how for answer in answers} == {How.LEFT}
    said = [[0.0] * ranks.size for _ in range(ranks.size)]
    for step in steps_of(op, ranks.size, 1):
        for src, dst, share in step:
            said[src][dst] += share * 4 * NUMBERS
    for src, row in enumerate(ranks.carried.bytes):
        for dst, nbytes in enumerate(row):
            assert abs(nbytes - said[src][dst]) < WORDS, f"{src} to {dst}: {nbytes} bytes, not {said[src][dst]}"
