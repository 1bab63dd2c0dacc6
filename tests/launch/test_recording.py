"""A recorded run is read rightly: its chunks, its sums and copies, its steps, its bytes.

The oracles are the textbook's schedules (`collectives.all_reduce`), which know nothing of recordings, and what torch's
own all_reduce says the result must be.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from collectives import all_reduce
from launch.ranks import Ranks
from launch.replay.recording import Captures, Recording
from tests.launch.programs import EXCHANGES, NAIVE, NAIVES, RINGS, SETUP, WHOLE_RINGS
from tests.launch.search import run

PROGRAMS = [
    *(("ring", name, source) for name, source in RINGS.items()),
    *(("naive", name, source) for name, source in NAIVES.items()),
    *(("whole_ring", name, source) for name, source in WHOLE_RINGS.items()),
    *(("exchange", name, source) for name, source in EXCHANGES.items()),
]
DATA = {
    "origin": "x = (torch.arange(world_size).repeat_interleave(2) + 10 * rank).float()",  # rank 0's chunk 0 is 0
    "rank": "x = torch.ones(2 * world_size) * rank",  # every chunk of a rank alike, rank 0 all zeros
    "ones": "x = torch.ones(2 * world_size)",
    "zeros": "x = torch.zeros(2 * world_size)",
    "one-hot": "x = torch.zeros(2 * world_size); x[rank] = 1",
    "NaN": "x = torch.full((2 * world_size,), float('nan'))",
    "int64": "x = torch.arange(world_size) + 10 * rank",
    "float64": "torch.manual_seed(rank); x = torch.randn(3 * world_size, dtype=torch.float64)",
    "bfloat16": "torch.manual_seed(rank); x = torch.randn(4 * world_size).bfloat16()",
    "large": "torch.manual_seed(rank); x = torch.randn(20_000 * world_size)",  # not kept whole
}


def record(gang, source, ranks, **options) -> tuple[Recording, list[dict]]:
    answers = gang.run(source, ranks, **options)
    assert [answer["error"] for answer in answers] == [""] * ranks
    return Recording([answer["recording"] for answer in answers]), answers


def textbook(algorithm: str, ranks: int):
    return getattr(all_reduce, algorithm)(ranks)


SIZES = [(*program, ranks) for program in PROGRAMS for ranks in ((2, 3, 5) if program[0] == "ring" else (2, 5))]
VIEWS_AND_COPIES = ("chunk views, one scratch", "list of tensors, sums out of place")
KINDS = [
    (*program, data)
    for program in PROGRAMS
    for data in (DATA if program[1] in VIEWS_AND_COPIES else ("rank", "zeros", "float64"))
]


def counted(expected, name: str, ranks: int, nbytes: int):
    """What the run counts, if it is written that way: with blocking calls a pass takes as many steps as it has
    turns."""
    counts = expected.counts(nbytes=nbytes)
    return replace(counts, steps=turns(ranks, counts.steps)) if name.startswith("blocking") else counts


def turns(ranks: int, passes: int) -> int:
    """Rounds of a ring in which even ranks send before they receive and odd ones the other way round, if in each round
    all messages go whose sender and receiver have both come to it."""
    calls = [["send", "recv"] * passes if rank % 2 == 0 else ["recv", "send"] * passes for rank in range(ranks)]
    done, rounds = [0] * ranks, 0
    while any(done[rank] < 2 * passes for rank in range(ranks)):
        heads = [calls[rank][done[rank]] if done[rank] < 2 * passes else "" for rank in range(ranks)]
        going = [r for r in range(ranks) if heads[r] == "send" and heads[(r + 1) % ranks] == "recv"]
        for r in going:
            done[r] += 1
            done[(r + 1) % ranks] += 1
        rounds += 1
    return rounds


def identity(case) -> str:
    algorithm, name, _, last = case
    return f"{algorithm}-{name}-{last}"


@pytest.fixture(scope="module")
def sizes(gang):
    """The recordings of all SIZES. Each program says itself whether its y is the sum."""
    found = {}
    for ranks in {case[-1] for case in SIZES}:
        total = [float(sum(i + 100 * rank for rank in range(ranks))) for i in range(2 * ranks)]
        those = [case for case in SIZES if case[-1] == ranks]
        texts = [f"{SETUP}{source}assert y.tolist() == {total}\n" for _, _, source, _ in those]
        found |= zip(those, run(gang, texts, ranks), strict=True)
    return found


@pytest.mark.parametrize("case", SIZES, ids=identity)
def test_however_it_is_written_it_counts_as_the_textbook_says(sizes, case):
    algorithm, name, _, ranks = case
    recording, expected = sizes[case], textbook(algorithm, ranks)
    assert not isinstance(recording, str), recording
    assert recording.counts() == counted(expected, name, ranks, 2 * 4 * ranks)
    assert recording.collective == "all_reduce" and recording.chunks == expected.chunks
    assert recording.check() is None


@pytest.fixture(scope="module")
def kinds(gang):
    """The recordings of all KINDS, which the same four ranks make one after the other."""
    return dict(zip(KINDS, run(gang, [f"{DATA[data]}\n{source}" for _, _, source, data in KINDS], 4), strict=True))


@pytest.mark.parametrize("case", KINDS, ids=identity)
def test_whatever_the_data(kinds, case):
    algorithm, name, _, _ = case
    recording, expected = kinds[case], textbook(algorithm, 4)
    assert not isinstance(recording, str), recording
    busiest = expected.counts(nbytes=4).busiest
    assert recording.counts() == counted(expected, name, 4, 4 * recording.counts().busiest // busiest)
    assert recording.collective == "all_reduce" and recording.check() is None
    assert recording.title.removesuffix(" of x into y") == f"your run: all_reduce {algorithm}"


@pytest.mark.parametrize("name, source", [*RINGS.items(), *NAIVES.items()])
def test_calls_and_counts_are_told_without_a_replay(gang, name, source):
    """All a right answer's verdict needs: a replay takes ten times as long, and says the same of the calls."""
    captures = Captures([answer["recording"] for answer in gang.run(SETUP + source, 4)])
    calls, counts = captures.events, captures.counts()
    assert len(calls) == 2 * counts.messages and captures.changed == captures.used_before_wait == []
    assert "replay" not in vars(captures)
    recording, replay = Recording(captures), captures.replay
    assert recording.counts() == counts and recording.events == calls and recording.ranks == captures.ranks
    assert [(m.calls, m.step) for m in captures.order.messages] == [(m.calls, m.step) for m in replay.messages]


@pytest.mark.parametrize("name", RINGS)
def test_a_ring_is_told_as_the_ring(gang, name):
    """p chunks, first sums then copies, the same transfers as the textbook's up to where chunk 0 starts; one buffer,
    but where the result is put together in a tensor of its own."""
    recording, _ = record(gang, SETUP + RINGS[name], 4)
    out_of_place, turns = "out of place" in name, 2 if name.startswith("blocking") else 1
    assert recording.algorithm == "ring" and recording.buffers == ("parts", "y")[: 1 + out_of_place] or not out_of_place
    assert len(recording.buffers) == 1 + out_of_place
    assert [step.phase for step in recording.steps] == ["reduce"] * 3 * turns + ["copy"] * 3 * turns
    shifts, steps = set(), [*recording.steps]
    for number, theirs in enumerate(all_reduce.ring(4).steps):
        chunks = {(t.src, t.dst): t.chunk for t in theirs.transfers}
        mine = [t for step in steps[number * turns : (number + 1) * turns] for t in step.transfers if t.src != t.dst]
        assert {t.op for t in mine} == {steps[number * turns].phase} and all(t.chunk == t.dst_chunk for t in mine)
        shifts |= {(t.chunk - chunks[t.src, t.dst]) % 4 for t in mine}
    assert len(shifts) == 1


def test_a_sum_that_doubles_with_every_message_still_loads(gang):
    source = """
x = torch.arange(4.) + 10 * rank
for turn in range(60):
    got = torch.empty(4)
    a = dist.isend(x, (rank + 1) % world_size)
    dist.recv(got, (rank - 1) % world_size)
    a.wait()
    x = x + got
"""
    recording, _ = record(gang, source, 2)
    assert len(recording.steps) == 60 and recording.algorithm == "recorded"
    assert dict(recording.states(-1)[0]["x"][0].terms) == {(0, 0): 2**59, (1, 0): 2**59}


def test_steps_know_the_lines_that_caused_them(gang):
    recording, _ = record(gang, SETUP + RINGS["chunk views, one scratch"], 3)
    first, last = recording.steps[0], recording.steps[-1]
    assert (0, 10, "a = dist.isend(chunks[(r - 1 - s) % p], (r + 1) % p)") in first.sources
    assert {line for _, line, _ in first.sources} == {10, 11} and {line for _, line, _ in last.sources} == {15, 16}
    assert first.caption == (
        "What arrives is added: rank 0 sends chunk 2 to rank 1, rank 1 sends chunk 0 to rank 2, "
        "rank 2 sends chunk 1 to rank 0."
    )


def test_values_are_those_of_the_run(gang):
    recording, _ = record(gang, "x = torch.arange(3.) + 10 * rank\n" + RINGS["slices, new scratch each step"], 3)
    start = {(rank, chunk): text for rank, _, chunk, text in recording.start_values()}
    assert start == {(rank, chunk): str(10 * rank + chunk) for rank in range(3) for chunk in range(3)}
    held = dict(start)
    for index in range(len(recording.steps)):
        cells = recording.states(index).cells["y"]
        held.update({(rank, chunk): text for rank, _, chunk, text in recording.values(index)})
        for (rank, chunk), text in held.items():
            assert text == str(sum(n * (10 * r + c) for (r, c), n in cells[rank, chunk].terms)), (
                "the symbols tell the numbers"
            )


def test_what_is_only_written_over_is_stale_unless_nobody_had_filled_it(gang):
    """Rank 0's number goes to the others, into x, which had a number, or into memory that nobody has filled."""
    source = "x = torch.tensor([10. * rank])\n" + (
        "if rank == 0:\n    dist.send(x, 1)\n    dist.send(x, 2)\nelif rank == 1:\n    dist.recv(x, 0)\n"
        "else:\n    x = torch.empty(1)\n    dist.recv(x, 0)\n"
    )
    recording, _ = record(gang, source, 3)
    assert recording.start_values() == [(0, "x", 0, "0")]
    assert recording.stale_values() == [(1, "x", 0, "10")]


def test_a_stuck_rank_without_the_variable_has_no_stale_value(gang):
    """As one whose first call was refused before it was recorded."""
    source = "x = torch.tensor([10. * rank])\nif rank == 0: dist.send(x, 1)\nif rank == 1: dist.recv(x, 0)"
    runs = [answer["recording"] for answer in gang.run(source, 3)]
    assert Recording(Captures(runs, stuck=((2, None, "recv", 3),))).stale_values() == [(1, "x", 0, "10")]


def test_events_carry_names_values_and_times(gang):
    recording, _ = record(gang, SETUP + RINGS["rows of a matrix"], 2)
    send, receive = recording.events[:2]
    assert (send.rank, send.op, send.peer, send.bytes, send.line) == (0, "send", 1, 8, 8)
    assert send.code == "req = dist.isend(rows[(rank - s) % world_size], (rank + 1) % world_size)"
    assert send.before == [[0.0, 1.0]] and receive.after == [[102.0, 103.0]]
    assert send.dtype == "float32" and send.shape == [[2]] and send.group == (0, 1)
    assert min(event.start for event in recording.events) == 0
    assert send.start <= send.issued and receive.start <= receive.wait <= receive.end


def test_the_same_program_gives_the_same_recording(gang):
    def told(recording):
        return (
            repr(recording),
            [(step.phase, step.caption, step.transfers, step.sources) for step in recording.steps],
            [recording.values(index) for index in range(len(recording.steps))],
            recording.start_values(),
            [(e.rank, e.op, e.peer, e.line, e.after) for e in recording.events],
        )

    runs = [told(record(gang, SETUP + RINGS["blocking, odd and even"], 5)[0]) for _ in range(3)]
    assert all(run == runs[0] for run in runs)


def test_chunks_of_unequal_size_are_chunks(gang):
    source = "x = torch.arange(10.) + 100 * rank\n" + RINGS["chunk views, one scratch"]
    source = source.replace("list(acc.chunk(p))", "list(acc.tensor_split(p))")
    source = source.replace("dist.irecv(buf,", "dist.irecv(buf[:len(chunks[(r - 2 - s) % p])],")
    source = source.replace("+= buf", "+= buf[:len(chunks[(r - 2 - s) % p])]")
    recording, _ = record(gang, source, 4)
    assert list(recording.chunk_bytes) == [12, 12, 8, 8] and recording.check() is None
    assert recording.collective == "all_reduce" and recording.counts().total_bytes == 6 * 40


@pytest.mark.parametrize("how", ["torch.maximum({}, buf)", "torch.minimum({}, buf)", "{} * buf"])
def test_other_reductions_are_reductions(gang, how):
    source = RINGS["slices, new scratch each step"]
    source = source.replace(
        "y[j * n:(j + 1) * n] += buf", "y[j * n:(j + 1) * n] = " + how.format("y[j * n:(j + 1) * n]")
    )
    recording, _ = record(gang, "torch.manual_seed(rank); x = torch.randn(12)\n" + source, 4)
    assert recording.algorithm == "ring" and [step.phase for step in recording.steps] == ["reduce"] * 3 + ["copy"] * 3


@pytest.mark.parametrize("op, words", [("MAX", "the maximum"), ("MIN", "the minimum"), ("PRODUCT", "the product")])
def test_what_is_no_sum_is_said(gang, op, words):
    by_hand = {"MAX": "torch.maximum({0}, {1})", "MIN": "torch.minimum({0}, {1})", "PRODUCT": "{0} * {1}"}[op]
    source = "torch.manual_seed(rank); x = torch.randn(4)\nbuf = torch.empty(4)\n"
    source += "dist.send(x, 0) if rank else dist.recv(buf, 1)\n"
    source += f"if rank == 0:\n    x[:] = {by_hand.format('x', 'buf')}\ndist.all_reduce(x, op=dist.ReduceOp.{op})\n"
    recording, _ = record(gang, source, 2)
    by_message, built_in = recording.steps
    assert by_message.caption == f"Each rank keeps {words} of what arrives and what it has: rank 1 sends to rank 0."
    assert built_in.caption.endswith(f"cannot be seen. It takes {words}.")
    assert [{*recording.ways(index)} - {""} for index in (0, 1)] == [{op.lower()}] * 2
    plain, _ = record(gang, SETUP + "dist.all_reduce(x)", 2)
    assert plain.steps[0].caption.endswith("cannot be seen.") and {*plain.ways(0)} == {"sum"}


def test_wrong_programs_are_told_as_they_are(gang):
    """A ring that is off by one chunk in its second half: the counts are right, the proof fails where the fault is."""
    source = RINGS["chunk views, one scratch"].replace("chunks[(r - s) % p]", "chunks[(r + 1 - s) % p]")
    source = source.replace("dist.irecv(chunks[(r - 1 - s) % p]", "dist.irecv(chunks[(r - s) % p]")
    recording, _ = record(gang, SETUP + source, 4)
    assert recording.counts() == all_reduce.ring(4).counts(nbytes=32)
    assert recording.collective == "recorded"


def test_broadcast_and_reduce_are_recognised_with_their_root(gang):
    broadcast = "x = torch.ones(2) * 7 if rank == 1 else torch.zeros(2)\n" + (
        "[dist.send(x, r) for r in range(3) if r != 1] if rank == 1 else dist.recv(x, 1)"
    )
    recording, _ = record(gang, broadcast, 3)
    assert (recording.collective, recording.root) == ("broadcast", 1)
    reduce, _ = record(gang, SETUP + NAIVE.split("    for dst")[0] + "else:\n    dist.send(y, 0)\n", 3)
    assert (reduce.collective, reduce.root) == ("reduce", 0)


BLOCKS = {
    "reduce_scatter": """
out = x[rank * n:(rank + 1) * n].clone()
buf = torch.empty_like(out)
for s in range(1, world_size):
    to, source = (rank + s) % world_size, (rank - s) % world_size
    work = dist.isend(x[to * n:(to + 1) * n], to)
    dist.recv(buf, source)
    work.wait()
    out += buf
""",
    "scatter": """
out = torch.empty(n, dtype=x.dtype)
if rank == 0:
    [dist.send(x[r * n:(r + 1) * n], r) for r in range(1, world_size)]
else:
    dist.recv(out, 0)
""",
}


@pytest.mark.parametrize("collective", BLOCKS)
@pytest.mark.parametrize(
    "data", [SETUP, "n = 2\nx = torch.ones(n * world_size) * (rank + 1)\n"], ids=["origin", "alike"]
)
def test_a_block_in_a_buffer_of_its_own_is_recognised(gang, collective, data):
    recording, _ = record(gang, data + BLOCKS[collective], 3)
    assert (recording.collective, recording.result) == (collective, "out")
    assert recording.check() is None
    wrong = BLOCKS[collective].replace("x[to * n:(to + 1) * n]", "x[:n]").replace("x[r * n:(r + 1) * n]", "x[:n]")
    assert record(gang, data + wrong, 3)[0].collective == "recorded"


def test_sends_of_one_rank_stand_one_after_the_other_if_it_waits_for_each(gang):
    source = "x = torch.ones(2) * rank\n"
    each = source + "[dist.send(x, r) for r in (1, 2)] if rank == 0 else dist.recv(x, 0)"
    together = source + (
        "w = [dist.isend(x, r) for r in (1, 2)] if rank == 0 else [dist.irecv(x, 0)]\n[work.wait() for work in w]"
    )
    assert record(gang, each, 3)[0].counts().steps == 2
    assert record(gang, together, 3)[0].counts().steps == 1


def test_what_is_sent_on_comes_later_also_when_it_was_computed(gang):
    """A pipeline: what rank 1 sends was computed from what it received, by arithmetic nobody can guess."""
    source = """
x = torch.randn(4)
if rank > 0:
    dist.recv(x, rank - 1)
h = torch.tanh(x) * 3
if rank < world_size - 1:
    dist.send(h, rank + 1)
"""
    recording, _ = record(gang, source, 4)
    assert recording.counts().steps == 3


def test_a_built_in_is_its_effect_and_counts_nothing(gang):
    recording, _ = record(gang, SETUP + "dist.all_reduce(x)\ndist.barrier()", 3)
    first, second = recording.steps
    assert (first.phase, second.phase) == ("all_reduce (built-in)", "barrier (built-in)")
    assert len(first.transfers) == 6 and {t.op for t in first.transfers} == {"reduce"} and not second.transfers
    assert recording.counts().messages == recording.counts().total_bytes == recording.counts().steps == 0
    assert recording.built_ins == (("all_reduce", 24, 3), ("barrier", 0, 3))
    assert recording.collective == "all_reduce" and recording.check() is None
    assert first.sources[0] == (0, 3, "dist.all_reduce(x)")


def test_built_ins_and_messages_stand_in_the_order_of_the_program(gang):
    source = (
        SETUP
        + RINGS["batch_isend_irecv"]
        + "dist.all_reduce(x)\nz = torch.zeros(2 * n)\n"
        + ("dist.reduce_scatter_single(z[:n], x)\n")
    )
    recording, _ = record(gang, source, 2)
    assert [step.phase for step in recording.steps if step.transfers][:3] == [
        "reduce",
        "copy",
        "all_reduce (built-in)",
    ]
    assert recording.steps[-1].phase == "reduce_scatter_single (built-in)"


HEALTHY = {
    "the same sum twice": "x = torch.ones(4) + rank\ndist.all_reduce(x)\ndist.all_reduce(x)",
    "one sum of many messages": """
g, got = torch.zeros(4), torch.empty(4)
for i in range(3):
    if rank == 0:
        dist.send(torch.arange(4.0) + 7 * i, 1)
    else:
        dist.recv(got, 0)
        g += got
""",
    "a split of 0": """
x, y, split = torch.arange(2.0) + 10 * rank, torch.empty(2), [2, 0] if rank == 0 else [0, 2]
dist.all_to_all_single(y, x, split, split)
""",
}


@pytest.mark.parametrize("source", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_program_that_is_no_one_collective_passes_the_check(gang, source):
    recording, _ = record(gang, source, 2)
    assert recording.collective == "recorded" and recording.check() is None
    assert all(transfer.count > 0 for step in recording.steps for transfer in step.transfers)


def test_a_message_without_its_other_side_is_said(gang):
    source = "w = dist.isend(torch.ones(2), 1) if rank == 0 else None"
    recording, _ = record(gang, source, 2)
    assert recording.unmatched == ((0, "send", 1, 1),) and not recording.steps


def test_nothing_recorded_is_an_empty_schedule(gang):
    recording, _ = record(gang, "x = 1", 2)
    assert recording.ranks == 2 and len(recording.steps) == 0 and recording.events == []
    assert recording.counts().messages == 0 and repr(recording).startswith("Recording(recorded, ranks=2")


def test_counts_takes_no_n(gang):
    recording, _ = record(gang, SETUP + NAIVE, 2)
    with pytest.raises(TypeError, match="without nbytes"):
        recording.counts(nbytes=8)


def test_a_run_too_long_to_be_kept_whole_says_so_wherever_it_is_read(gang):
    source = "x = torch.ones(1)\ntap.start(limit=5)\nfor _ in range(8):\n    dist.all_reduce(x)\n"
    recording, answers = record(gang, source, 2)
    assert recording.title == "your run: all_reduce (built-in), first 5 calls of every rank"
    assert repr(recording).endswith("events=10, dropped=6)")
    assert recording.part(1, 2).title == f"{recording.title}, steps 1 to 2 of 5"
    ranks = object.__new__(Ranks)  # without processes: their captures are there already
    ranks.supervisor = SimpleNamespace(notices=[], size=2)
    ranks._keep({rank: answer["recording"] for rank, answer in enumerate(answers)})
    assert ranks.supervisor.notices == [
        "the recording kept the first 5 calls of every rank; 6 later ones were left out"
    ]
