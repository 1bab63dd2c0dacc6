"""A recorded built-in told as if by an algorithm: it comes to what torch's own call gave, and counts as the algorithm.

The oracles are the numbers that the real ranks held before and after, summed up as the told symbols say, and the
counts of `collectives`, which knows no recordings.
"""

import re
from functools import cache, partial

import numpy as np
import pytest

from collectives.catalogue import CATALOGUE, build
from collectives.errors import ScheduleError
from launch.replay.recording import Recording
from tests.launch.programs import RINGS
from widgets import Player
from widgets._packing import pack

CALLS = {  # x is what a rank brings, y where the result is
    "all_reduce": "y = x; dist.all_reduce(y)",
    "broadcast": "y = x; dist.broadcast(y, 1)",
    "reduce": "y = x; dist.reduce(y, 1)",
    "all_gather": "y = torch.zeros(p * len(x)); dist.all_gather_single(y, x)",
    "gather": "y = [torch.zeros_like(x) for _ in range(p)]; dist.gather(x, y if rank == 1 else None, dst=1)",
    "scatter": "y = torch.zeros(n); dist.scatter(y, list(x.chunk(p)) if rank == 1 else None, src=1)",
    "reduce_scatter": "y = torch.zeros(n); dist.reduce_scatter_single(y, x)",
    "all_to_all": "y = torch.zeros_like(x); dist.all_to_all_single(y, x)",
}
ROOTED = ("broadcast", "reduce", "gather", "scatter")
PAIRS = [
    (name, how)
    for name in CALLS
    for how in CATALOGUE[name]
    if (name, how) not in (("all_reduce", "hierarchical"), ("all_to_all", "uneven"))  # they need to be told more
]


@pytest.fixture(scope="module")
def record(gang):
    """record(call, ranks): the recording, and every rank's x and y before and after as arrays by name. One run of each,
    since told as if by an algorithm the recording stays what it was."""
    return cache(partial(run, gang))


def run(gang, call: str, ranks: int):
    source = f"p, n = world_size, 8\nx = torch.arange(n * p, dtype=torch.float32) + 1000 * rank\n{call}\n"
    before, _, _ = source.rpartition("; dist.")
    before += "\nx0, y0 = x.clone(), [v.clone() for v in y] if type(y) is list else y.clone()"
    answers = gang.run(source, ranks, keep=["x", "y", "x0", "y0"], cells=[before])
    assert [answer["error"] for answer in answers] == [""] * ranks
    start = [{"x": flat(a["keep"]["x0"]), "y": flat(a["keep"]["y0"])} for a in answers]
    end = [{"x": flat(a["keep"]["x"]), "y": flat(a["keep"]["y"])} for a in answers]
    return Recording([answer["recording"] for answer in answers]), start, end


def flat(numbers) -> np.ndarray:
    return np.asarray(numbers, np.float32).ravel()


def part(recording, held, rank, buffer, chunk):
    """The numbers of a chunk, None if it is of no tensor of the student's."""
    region = recording._layout.region(rank, buffer, chunk)
    return held[rank][region.place][region.lo // 4 : region.hi // 4] if region and region.place in "xy" else None


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name, how", PAIRS, ids=lambda case: case)
def test_it_comes_to_what_the_built_in_gave(record, name, how, ranks):
    recording, start, end = record(CALLS[name], ranks)
    try:
        expected = build(name, how, ranks, **({"root": 1} if name in ROOTED else {}))
    except ScheduleError as error:  # not for this number of ranks: the same sentence
        with pytest.raises(ScheduleError, match=re.escape(str(error))):
            recording.as_if(**{name: how})
        return
    told = recording.as_if(**{name: how})
    numbers = {}
    for buffer, cells in told.start().cells.items():
        for rank, chunk in zip(*np.nonzero(cells != None), strict=True):  # noqa: E711
            for origin in cells[rank, chunk].origins:
                numbers[origin] = part(told, start, rank, buffer, chunk)
    compared = 0
    for buffer, cells in told.states(-1).cells.items():
        for rank, chunk in np.ndindex(cells.shape):
            real = part(told, end, rank, buffer, chunk)
            if name == "reduce" and rank != 1:
                continue  # what gloo leaves in the tensors of the others is its own affair
            if real is not None and cells[rank, chunk]:
                assert (sum(n * numbers[origin] for origin, n in cells[rank, chunk].terms) == real).all()
                compared += len(real)
    whole = 8 * ranks
    results = {"reduce": 1, "gather": ranks, "scatter": 1, "reduce_scatter": 1, "all_gather": ranks * ranks}
    assert compared >= (results[name] * (whole if name != "scatter" else 8) if name in results else ranks * whole)
    nbytes = {"all_gather": ranks * 4 * whole, "gather": ranks * 4 * whole}.get(name, 4 * whole)
    if expected.chunks in (1, 2, 4, 8, ranks):  # else the chunks are not alike
        assert told.counts() == expected.counts(nbytes=nbytes)
    assert told.check() is None and len(told.steps) >= len(expected.steps)


def test_it_plays_and_says_what_it_is(record, tmp_path):
    recording, _, _ = record(CALLS["all_reduce"], 4)
    told = recording.as_if(all_reduce="ring")
    assert "your run as if all_reduce ring" in Player(told).summary()
    assert [step.phase for step in told.steps] == ["reduce-scatter"] * 3 + ["all-gather"] * 3
    assert told.steps[0].caption.startswith("all_reduce as if ring: What arrives is added: rank 0 sends")
    assert told.steps[4].sources[2] == (2, 3, "y = x; dist.all_reduce(y)") and not any(pack(told)[1]["effects"])
    final = {(rank, chunk): text for step in (3, 4, 5) for rank, _, chunk, text in told.values(step) if text}
    assert final[1, 2].split()[0] == str(sum(16 + 1000 * rank for rank in range(4))), "values are the run's"
    told.save(tmp_path / "as_if.json")
    assert recording.counts().messages == 0 and recording.built_ins, "the recording itself is what it was"


def test_calls_of_other_kinds_and_the_students_messages_stay(gang):
    source = "p, n = world_size, 2\nx = torch.arange(n * p, dtype=torch.float32) + 100 * rank\n"
    source += RINGS["chunk views, one scratch"] + "dist.broadcast(y, 0)\ndist.all_reduce(x)\ndist.barrier()\n"
    answers = gang.run(source, 4)
    recording = Recording([answer["recording"] for answer in answers])
    told = recording.as_if(all_reduce="tree")
    phases = [step.phase for step in told.steps]
    tree = build("all_reduce", "tree", 4)
    assert phases == ["reduce"] * 3 + ["copy"] * 3 + ["broadcast (built-in)"] + [s.phase for s in tree.steps] + [
        "barrier (built-in)"
    ]
    ring = recording.counts()
    assert told.counts().messages == ring.messages + tree.counts(nbytes=32).messages
    assert told.built_ins == (("broadcast", 32, 4), ("barrier", 0, 4))
    both = told.as_if(broadcast="binomial")
    assert (
        both.built_ins == (("barrier", 0, 4),) and both.title == "your run as if all_reduce tree and broadcast binomial"
    )


def test_a_group_of_some_ranks_sends_among_them(gang):
    source = """
group = dist.new_group([1, 3])
x = torch.arange(6.) + 10 * rank
if rank in (1, 3):
    dist.all_reduce(x, group=group)
"""
    recording = Recording([answer["recording"] for answer in gang.run(source, 4)])
    told = recording.as_if(all_reduce="ring")
    assert {(t.src, t.dst) for step in told.steps for t in step.transfers} == {(1, 3), (3, 1)}
    assert told.counts().messages == 4 and told.counts().total_bytes == 48


def test_parts_are_cut_as_tensor_split_cuts_them(gang):
    source = "x = torch.arange(10.) + 100 * rank\ndist.all_reduce(x)"
    recording = Recording([answer["recording"] for answer in gang.run(source, 4)])
    assert list(recording.as_if(all_reduce="ring").chunk_bytes) == [12, 12, 8, 8]


@pytest.mark.parametrize(
    "wanted, message",
    [
        ({"all_reduce": "rnig"}, "all_reduce has no algorithm 'rnig'; it has naive, "),
        ({"allreduce": "ring"}, "as_if knows no collective 'allreduce'; there are all_reduce, broadcast"),
        ({"broadcast": "flat"}, "no built-in broadcast was recorded"),
        (
            {"all_reduce": "recursive_doubling", "barrier": "tree"},
            "a barrier moves no data, so as_if has nothing to tell",
        ),
    ],
)
def test_a_name_that_is_not_there_is_said(record, wanted, message):
    recording, _, _ = record(CALLS["all_reduce"], 3)
    with pytest.raises(ScheduleError, match=message):
        recording.as_if(**wanted)


def test_uneven_blocks_are_refused(gang):
    source = "x = torch.arange(12.)\nsplits = [6, 3, 3]\ny = torch.zeros(3 * splits[rank])\n"
    source += "dist.all_to_all_single(y, x, [splits[rank]] * 3, splits)\n"
    recording = Recording([answer["recording"] for answer in gang.run(source, 3)])
    with pytest.raises(ScheduleError, match="blocks of different sizes"):
        recording.as_if(all_to_all="linear")
