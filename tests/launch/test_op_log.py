"""The op log of a rank: it sees what torch does in a recorded cell, and changes nothing about it."""

import sys

import pytest

from launch.replay.provenance import Kind
from launch.replay.recording import Recording

MODES = "from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as stack\n"


def recorded(gang, source, ranks=2, **options):
    answers = gang.run(source, ranks, **options)
    assert [answer["error"] for answer in answers] == [""] * ranks
    return Recording([answer["recording"] for answer in answers]), [answer["keep"] for answer in answers]


@pytest.mark.parametrize("record", [False, True])
def test_only_a_recorded_cell_enters_the_mode(gang, record):
    answers = gang.run(MODES + "entered = len(stack())", 2, record=record, keep=["entered"])
    assert [answer["keep"]["entered"] for answer in answers] == [int(record)] * 2


def test_a_compiled_function_is_compiled_in_a_recorded_cell_too(gang):
    source = """
from torch._dynamo.utils import counters
double = torch.compile(lambda x: (2 * x).relu() + 1, backend="eager")
x = torch.arange(4.0) + rank
y = double(x)
dist.all_reduce(y)
frames = dict(counters["frames"])
"""
    recording, kept = recorded(gang, source, keep=["frames", "y"])
    assert all(keep["frames"] == {"total": 1, "ok": 1} for keep in kept)
    assert kept[0]["y"] == [4.0, 8.0, 12.0, 16.0] and recording.built_ins == (("all_reduce", 16, 2),)


def test_a_write_through_numpy_is_told_as_one(gang):
    source = "x = torch.arange(4.0) + 10 * rank\ndist.all_reduce(x)\nx *= 3\nx.numpy()[1] = 7\ndist.all_reduce(x)\n"
    recording, _ = recorded(gang, source)
    words = {way for index in range(len(recording.steps)) for way in recording.ways(index)}
    assert "changed outside torch" in words and recording.collective == "recorded"
    made = recording.made_of(0, "x")
    assert [(piece.lo, piece.hi) for piece in made if piece.other is Kind.OUTSIDE] == [(1, 2)]


def test_beyond_a_number_of_ops_the_log_stops_and_says_so(gang):
    source = """
from launch.rank._op_log import OpLog
OpLog.__init__.__defaults__ = (20,)
tap.start()
x, b = torch.arange(4.0) + 10 * rank, torch.empty(4)
for _ in range(30):
    x = x + 1
if rank == 0:
    dist.recv(b, 1)
    x += b
else:
    dist.send(x, 0)
"""
    recording, _ = recorded(gang, source)
    assert recording.collective == "recorded" and recording.counts().messages == 1
    assert recording.title == "your run, what ranks did with their data seen for 20 operations"
    assert recording.made_of(0, "x") == []


DTYPES = [
    "torch.bfloat16", "torch.float16", "torch.float64", "torch.complex64", "torch.bool", "torch.uint8", "torch.int16"
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_always_loads(gang, dtype):
    """Whatever the tensors are, beside one with an odd number of bytes; what is sent arrives."""
    source = f"""
several = [torch.ones(shape, dtype={dtype}) for shape in ((), (0,), (3,), (2, 3))]
odd = torch.zeros(7, dtype=torch.uint8)
half = odd[:6].view(torch.bfloat16)
wide = torch.ones(4, 6)[:, ::2].t().contiguous()
dist.broadcast(wide, 0)
dist.broadcast(half, 0)
for x in several:
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
"""
    recording, _ = recorded(gang, source)
    assert len(recording.events) == 12 and recording.start_values() is not None
    assert [recording.values(index) for index in range(len(recording.steps))] and recording.title.startswith("your run")


def test_many_messages_in_fresh_buffers_are_read(gang):
    """Time is measured in the benchmarks; here they are simply all there."""
    source = "for _ in range(400):\n    b = torch.ones(4)\n    dist.send(b, 1) if rank == 0 else dist.recv(b, 0)\n"
    recording, _ = recorded(gang, source)
    assert recording.counts().messages == recording.counts().steps == 400


TRAINING = """
gradients = [torch.rand(1, 2) + rank for _ in range({layers})]
for step in range(2):
    bucket = torch.cat(gradients)
    dist.all_reduce(bucket)
    for old, new in zip(gradients, bucket.split(1)):
        old.copy_(new)
"""


def test_reading_does_not_take_the_square_of_the_number_of_parameters(gang):
    few, many = (lines_run(gang.run(TRAINING.format(layers=layers), 2)) for layers in (20, 160))
    assert many < 4.5 * few  # 8 times as many parameters; what does not depend on them is the same


ROUNDS = """
w, x = torch.ones(4), torch.rand(4) + rank
for _ in range({rounds}):
    g = x * w
    dist.all_reduce(g)
    g /= world_size
    w -= 0.1 * g
"""


def test_reading_does_not_double_with_each_round_that_uses_the_one_before_twice(gang):
    few, many = (lines_run(gang.run(ROUNDS.format(rounds=rounds), 2)) for rounds in (8, 16))
    assert many < 8 * few


def lines_run(answers: list[dict]) -> int:
    """How many lines of launch/replay it takes to read a recording."""
    ran = 0

    def line(_, event, __):
        nonlocal ran
        ran += event == "line"
        return line

    sys.settrace(lambda frame, *_: line if "/replay/" in frame.f_code.co_filename else None)
    try:
        Recording([answer["recording"] for answer in answers])
    finally:
        sys.settrace(None)
    return ran


HOW_STORAGES_ARE_KNOWN = pytest.mark.parametrize("how", ["Known", "Held"])  # Held for torch before 2.10
KNOWN_SO = """
from launch.rank import _snapshots
_meeting, _snapshots._meeting = _snapshots._meeting, _snapshots.{}
tap.start()
"""
AS_BEFORE = "_snapshots._meeting = _meeting\n"


@HOW_STORAGES_ARE_KNOWN
def test_what_came_and_went_is_forgotten_and_its_memory_used_again(gang, how):
    """A weak reference of torch's own keeps its small object between the bytes, and every op gets new memory then."""
    source = """
import resource
x = torch.arange(8192.0)
for _ in range(50):
    x = x + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(5000):
    x = x + 1
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
met = len(tap.recorder.op_log.storages.met)
places = len(tap.recorder.op_log.storages.places)
dist.all_reduce(x)
"""
    recording, kept = recorded(gang, KNOWN_SO.format(how) + source + AS_BEFORE, keep=["grown", "met", "places"])
    for keep in kept:
        assert keep["met"] < 50 < 5000 < keep["places"]
        assert keep["grown"] < 5000 * 8192 * 4 / 10
    assert recording.collective == "all_reduce"


@HOW_STORAGES_ARE_KNOWN
def test_a_storage_in_the_place_of_another_is_not_taken_for_it(gang, how):
    source = """
addresses, numbers = set(), set()
for _ in range(200):
    y = torch.arange(64.0) + rank
    addresses.add(y.untyped_storage()._cdata)
    numbers.add(tap.recorder.op_log.storages.of(y).number)
    view = y[3:].untyped_storage()
    same = tap.recorder.op_log.storages.of(y[3:]).number in numbers
    del y, view
addresses, numbers = len(addresses), len(numbers)
dist.barrier()
"""
    _, kept = recorded(gang, KNOWN_SO.format(how) + source + AS_BEFORE, keep=["addresses", "numbers", "same"])
    for keep in kept:
        assert keep["addresses"] < 200 == keep["numbers"] and keep["same"]
