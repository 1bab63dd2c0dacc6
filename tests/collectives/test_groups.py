"""NCCL's trees against the drawings in the comments of its src/graph/trees.cc, and what is known of them."""

import numpy as np
import pytest

from collectives.groups import binomial, btree, depths, double_btree, halves, heights


def edges(parent):
    return {(child, int(up)) for child, up in enumerate(parent) if up >= 0}


def below(drawing):
    """{parent: children} as read off a drawing -> set of (child, parent)."""
    return {(child, parent) for parent, children in drawing.items() for child in children}


FIRST_14 = {0: [8], 8: [4, 12], 4: [2, 6], 12: [10, 13], 2: [1, 3], 6: [5, 7], 10: [9, 11]}
FIRST_12 = {0: [8], 8: [4, 10], 4: [2, 6], 2: [1, 3], 6: [5, 7], 10: [9, 11]}
SECOND_12 = {11: [3], 3: [1, 7], 7: [5, 9], 1: [0, 2], 5: [4, 6], 9: [8, 10]}
FIRST_13 = {0: [8], 8: [4, 12], 4: [2, 6], 12: [10], 2: [1, 3], 6: [5, 7], 10: [9, 11]}
SECOND_13 = {1: [9], 9: [5, 0], 5: [3, 7], 0: [11], 3: [2, 4], 7: [6, 8], 11: [10, 12]}


def test_the_trees_are_the_ones_that_nccl_draws():
    assert edges(btree(14)) == below(FIRST_14)
    assert tuple(map(edges, double_btree(12))) == (below(FIRST_12), below(SECOND_12))
    assert tuple(map(edges, double_btree(13))) == (below(FIRST_13), below(SECOND_13))


def test_every_rank_is_inside_one_tree_only_but_rank_0_of_an_odd_number():
    for ranks in (*range(2, 35), 127, 128, 129):
        first, second = double_btree(ranks)
        for parent in (first, second):
            assert np.count_nonzero(parent < 0) == 1 and np.bincount(parent[parent >= 0]).max() <= 2
            assert depths(parent).max() == (ranks - 1).bit_length()
        inside = set(first[first >= 0].tolist()) & set(second[second >= 0].tolist())
        assert inside == ({0} if ranks % 2 else set()), ranks


def test_heights_and_depths_by_hand():
    parent = np.array(btree(6))  # 0 - 4 - {2 - {1, 3}, 5}
    assert depths(parent).tolist() == [0, 3, 2, 3, 1, 2]
    assert heights(parent).tolist() == [3, 0, 1, 0, 2, 0]


@pytest.mark.parametrize("ranks", [*range(2, 18), 33])
@pytest.mark.parametrize("root", [0, 1])
def test_binomial_edges_make_one_tree_and_sizes_are_those_of_subtrees(ranks, root):
    parent, size = {}, {}
    for level in range((ranks - 1).bit_length()):
        for child, up, below_it in zip(*(field.tolist() for field in binomial(ranks, 1 << level, root)), strict=True):
            parent[child], size[child] = up, below_it
    assert set(parent) == set(range(ranks)) - {root}

    def in_subtree(rank, top):
        while rank != top and rank != root:
            rank = parent[rank]
        return rank == top

    for child in parent:
        assert size[child] == sum(in_subtree(rank, child) for rank in range(ranks))


def test_halves_keep_the_largest_power_of_two():
    for ranks, chunks in ((p, chunks) for p in (*range(2, 18), 31, 32, 33) for chunks in (None, p)):
        group = halves(ranks, chunks)
        assert group.survivors <= ranks < 2 * group.survivors and group.survivors + group.extra == ranks
        folded = {2 * i + 1 for i in range(group.extra)}
        assert set(group.place.tolist()) == set(range(ranks)) - folded
        assert group.bounds[0] == 0 and (np.diff(group.bounds) > 0).all()
        assert group.bounds[-1] == (chunks or group.survivors)
