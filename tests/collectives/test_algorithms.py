"""Every algorithm does its collective: on numbers, against numpy; and proves it on symbols."""

import re

import pytest
from brute_force import inputs, is_right, run
from every import NAMES, schedules

from collectives import ScheduleError, all_gather, all_reduce, all_to_all, barrier, broadcast, reduce_scatter, send_recv

EVERY = pytest.mark.parametrize(("collective", "algorithm"), NAMES, ids=lambda name: name)


@EVERY
def test_numbers_come_out_as_numpy_says(collective, algorithm):
    for ranks in (*range(2, 14), 16, 17, 21):
        for schedule in schedules(collective, algorithm, ranks):
            assert is_right(schedule), schedule


@EVERY
def test_it_proves_itself_on_symbols(collective, algorithm):
    for ranks in (*range(2, 18), 32):
        for schedule in schedules(collective, algorithm, ranks)[:2]:
            assert schedule.check() is None


@EVERY
def test_it_says_what_it_is(collective, algorithm):
    for schedule in schedules(collective, algorithm, 4):
        assert (schedule.collective, schedule.algorithm, schedule.ranks) == (collective, algorithm, 4)
        assert (
            repr(schedule)
            == f"Schedule({collective}.{algorithm}, ranks=4, chunks={schedule.chunks}, steps={len(schedule.steps)})"
        )


@EVERY
def test_every_step_has_one_sentence_that_names_a_real_message(collective, algorithm):
    for ranks in (2, 3, 4, 6, 12):
        for schedule in schedules(collective, algorithm, ranks):
            for step in schedule.steps:
                assert step.phase and re.fullmatch(r"[A-Z][^.\n]*\.", step.caption), step.caption
                assert len(step.caption) < 400
                said = {
                    (int(src), int(dst))
                    for src, dst in re.findall(r"rank (\d+) sends[^,:]*? to rank (\d+)", step.caption)
                }
                sent = {(transfer.src, transfer.dst) for transfer in step.transfers if transfer.src != transfer.dst}
                assert said <= sent and len(said) == min(len(sent), 4)


@pytest.mark.parametrize("chunks", [1, 2, 3, 20])
def test_pipelines_work_with_any_number_of_chunks(chunks):
    for ranks in (2, 3, 8):
        assert is_right(broadcast.chain(ranks, chunks=chunks))
        assert is_right(all_reduce.pipelined_tree(ranks, chunks))
        assert is_right(all_reduce.double_tree(ranks, 2 * chunks))


@pytest.mark.parametrize("ranks", range(2, 18))
def test_pat_works_with_every_aggregation(ranks):
    for aggregate in (2**i for i in range((ranks - 1).bit_length())):
        for pat in (reduce_scatter.pat, all_gather.pat):
            schedule = pat(ranks, aggregate)
            schedule.check()
            assert is_right(schedule)
            for step in schedule.steps:
                load = {}
                for transfer in step.transfers:
                    load[transfer.src, transfer.dst] = load.get((transfer.src, transfer.dst), 0) + transfer.count
                assert max(load.values()) <= aggregate


def test_ring_hands_chunk_r_to_rank_r_before_the_all_gather():
    for ranks in (2, 3, 4, 7):
        schedule = all_reduce.ring(ranks)
        state = schedule.states(ranks - 2)
        for rank in range(ranks):
            assert state[rank]["data"][rank].contributors == tuple(range(ranks))
        assert {transfer.dst for transfer in schedule.steps[0].transfers if transfer.src == 0} == {1}


def test_ring_of_four_in_full():
    first = all_reduce.ring(ranks=4).steps[0]
    assert first.phase == "reduce-scatter"
    assert first.caption == (
        "Every rank sends a partial sum to the right and adds its own to what arrives: rank 0 sends chunk 3 to rank 1, "
        "rank 1 sends chunk 0 to rank 2, rank 2 sends chunk 1 to rank 3, rank 3 sends chunk 2 to rank 0."
    )
    assert [tuple(transfer)[:4] for transfer in first.transfers] == [
        (0, 1, 3, "reduce"), (1, 2, 0, "reduce"), (2, 3, 1, "reduce"), (3, 0, 2, "reduce"),
    ]  # fmt: skip


def test_uneven_all_to_all_delivers_rows_in_order_of_sender():
    splits = [[1, 2, 0], [3, 0, 1], [0, 2, 2]]
    schedule = all_to_all.uneven(splits)
    schedule.check()
    assert schedule.chunks == 4  # the longest buffer: what rank 0 gets, and others
    sent = inputs(schedule)["input"]
    got = run(schedule, {"input": sent, "output": [[None] * 4 for _ in range(3)]})["output"]
    assert got[0] == [sent[0][0], *sent[1][0:3]]
    assert got[1] == [*sent[0][1:3], *sent[2][0:2]]
    assert got[2] == [sent[1][3], *sent[2][2:4], None]


def test_hierarchical_sends_only_its_share_between_machines():
    schedule = all_reduce.hierarchical(nodes=4, local=8)
    between = {}
    for step in schedule.steps:
        for transfer in step.transfers:
            if transfer.src // 8 != transfer.dst // 8:
                between[transfer.src] = between.get(transfer.src, 0) + transfer.count
    assert set(between.values()) == {2 * 3}  # 2 (nodes - 1) / nodes of 1/8 of the vector of 32 chunks
    assert len(schedule.steps) == 2 * 7 + 2 * 3


def test_periodic_halo_wraps_around():
    schedule = send_recv.halo_exchange(3, chunks=5, periodic=True)
    schedule.check()
    assert str(schedule.states(-1)[0]["left"][0]) == "c4" and str(schedule.states(-1)[2]["right"][0]) == "a0"


def test_barrier_counts_no_bytes_and_tolerates_news_heard_twice():
    schedule = barrier.dissemination(5)
    schedule.check()
    assert schedule.counts().total_bytes == 0 and schedule.counts(nbytes=100).total_bytes == 0
    assert schedule.counts().messages == 15


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: all_reduce.ring(ranks=1), "all_reduce.ring needs at least 2 ranks, got 1"),
        (lambda: all_reduce.ring("four"), "all_reduce.ring needs a whole number of ranks, got 'four'"),
        (lambda: all_reduce.ring(4.5), "all_reduce.ring needs a whole number of ranks, got 4.5"),
        (lambda: broadcast.flat(4, root=4), "broadcast.flat: root must be one of the ranks 0 to 3, got 4"),
        (lambda: broadcast.flat(4, root=-1), "broadcast.flat: root must be one of the ranks 0 to 3, got -1"),
        (lambda: broadcast.chain(4, chunks=0), "broadcast.chain needs at least 1 chunks, got 0"),
        (
            lambda: all_gather.recursive_doubling(6),
            "all_gather.recursive_doubling needs a power of two of ranks (2, 4, 8, ...), got 6; "
            "all_gather.bruck takes any number",
        ),
        (
            lambda: all_reduce.double_tree(4, chunks=3),
            "all_reduce.double_tree needs an even number of chunks, half for each tree, got 3",
        ),
        (lambda: all_reduce.hierarchical(1, 1), "all_reduce.hierarchical needs at least 2 ranks, got 1"),
        (
            lambda: reduce_scatter.pat(8, 3),
            "reduce_scatter.pat: aggregate is a power of two up to 4 with 8 ranks, got 3",
        ),
        (
            lambda: all_to_all.uneven([[1, 2], [3]]),
            "all_to_all.uneven needs the rows from each rank to each: 2 lists of 2 numbers, not others",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(ScheduleError) as error:
        call()
    assert str(error.value) == sentence
    assert isinstance(error.value, ValueError)
