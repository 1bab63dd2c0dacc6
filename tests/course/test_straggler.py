"""The network with a slow link: one of its links is slow, and its name does not say which."""

import numpy as np

from collectives import Network, all_reduce
from course.straggler import ALPHA, BETA, RANKS, TIMES, straggler


def test_one_of_its_links_is_slow():
    betas = np.sort(straggler().betas(RANKS))
    assert len(betas) == 2 * RANKS
    assert np.allclose(betas[:-1], BETA) and np.isclose(betas[-1], TIMES * BETA)


def test_what_one_rank_receives_is_slow_whoever_sends_it():
    """As the question `slow_link` has it."""
    network = straggler()
    betas = network.betas(RANKS)
    slowest = {
        (src, dst): max(betas[link] for link, _ in network.way(src, dst, RANKS).links)
        for src in range(RANKS)
        for dst in range(RANKS)
        if src != dst
    }
    assert {dst for (_, dst), beta in slowest.items() if beta > BETA} == {2}
    assert all((beta > BETA) == (dst == 2) for (_, dst), beta in slowest.items())


def test_the_whole_ring_waits_for_it():
    ring, flat = all_reduce.ring(RANKS), Network(ALPHA, BETA)
    slow, quick = (ring.cost(nbytes=400_000, network=network).seconds for network in (straggler(), flat))
    assert np.isclose(quick, 6 * (ALPHA + 1e5 * BETA)) and np.isclose(slow, 6 * (ALPHA + 1e5 * TIMES * BETA))


def test_its_name_does_not_tell():
    assert straggler().name == "4 ranks on one switch"
