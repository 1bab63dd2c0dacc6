"""The picture says what happened: in every step of every run the symbols of a cell add up to the numbers it held.

Symbols come from the logs of torch's ops, numbers from the snapshots of the ranks' memory: neither knows the other. The
programs are random ones, right and wrong (`tests.launch.hands`), so most of what is drawn here is nobody's collective.
"""

import random
import sys

import pytest

from launch.replay._torch_ops import Meaning
from tests.launch.search import cases, run

SUMS = {"", "sum", "computed", "changed outside torch", "never filled", "not seen being made"}
SUMS |= {"changed while it was being sent", "left by the library", "changed in a way that was not seen"}


def numbers(text: str):
    """The numbers of a chunk, None if its text does not have them all."""
    return [int(word) for word in text.split()] if text and "..." not in text else None


def added(parts: list[list[int]]) -> list[int]:
    """Element by element; one number stands for as many of the same as the others have."""
    length = max(map(len, parts))
    return [sum(column) for column in zip(*(p * length if len(p) == 1 else p for p in parts), strict=True)]


def disagreements(recording) -> tuple[list, int]:
    """(step, rank, buffer, chunk, symbols, wanted, held) of cells whose numbers are not those of their symbols, and how
    many cells were compared."""
    start, wrong, compared = recording.start().cells, [], 0
    stands_for = {}
    for rank, buffer, chunk, text in recording.start_values():
        if (found := numbers(text)) is not None:
            stands_for.setdefault(start[buffer][rank, chunk].origins[0], found)
    for index, step in enumerate(recording.steps):
        if not {way.partition(" with ")[0] for way in recording.ways(index)} <= SUMS:
            break
        cells = recording.states(index).cells
        held = {(rank, buffer, chunk): numbers(text) for rank, buffer, chunk, text in recording.values(index)}
        for t in step.transfers:
            for i in range(t.count) if t.op == "new" else ():
                stands_for[t.src, t.chunk + i] = held.get((t.dst, t.dst_buffer, t.dst_chunk + i))
        for (rank, buffer, chunk), found in held.items():
            terms = cells[buffer][rank, chunk].terms
            parts = [stands_for.get(origin) for origin, times in terms for _ in range(times)]
            if found is None or not parts or None in parts:
                continue
            compared += 1
            wanted = added(parts)
            if added([wanted, [0] * len(found)]) != added([found, [0] * len(wanted)]):
                wrong.append((index, rank, buffer, chunk, str(cells[buffer][rank, chunk]), wanted, found))
    return wrong, compared


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_symbols_add_up_to_the_numbers(gang, ranks):
    programs = list(cases(random.Random(ranks), 12, ranks))
    texts, total = [case.program.on("ints") for case in programs], 0
    for text, recording in zip(texts, run(gang, texts, ranks), strict=True):
        assert not isinstance(recording, str), f"{recording}\n{text}"
        wrong, compared = disagreements(recording)
        assert not wrong, f"{wrong[0]}\n{text}"
        total += compared
    assert total > len(texts)


ALIASES = """
x = torch.arange(4) + 10 * rank
def f(x):
    y = x.clone()
    c = list(y.chunk(2))
    b = torch.empty_like(c[0])
    for s in range(2):
        a = dist.isend(c[(rank - s) % 2], (rank + 1) % 2)
        dist.recv(b, (rank - 1) % 2)
        a.wait()
        c[(rank - s - 1) % 2] += b
    return y
y = f(x)
y = f(y)
"""


def test_one_name_for_two_tensors_is_told_apart(gang):
    (recording,) = run(gang, [ALIASES], 2)
    assert disagreements(recording)[0] == []


TEMPORARIES = {
    "a copy of what arrived is handed on": """
if rank > 0: dist.recv(x, rank - 1)
if rank < p - 1: dist.send(x{copy}, rank + 1)
""",
    "a shift, twice": """
for _ in range(2):
    w = dist.isend(x{copy}, (rank + 1) % p)
    dist.recv(x, (rank - 1) % p)
    w.wait()
""",
    "a halo, twice": """
for _ in range(2):
    w = dist.isend(x[-2:-1]{copy}, (rank + 1) % p)
    dist.recv(x[:1], (rank - 1) % p)
    w.wait()
    w = dist.isend(x[1:2]{copy}, (rank - 1) % p)
    dist.recv(x[-1:], (rank + 1) % p)
    w.wait()
""",
    "a stencil": """
w = dist.isend(x[-2:-1]{copy}, (rank + 1) % p)
dist.recv(x[:1], (rank - 1) % p)
w.wait()
x[1:-1] = x[:-2] + x[2:]
""",
    "moved on by one": """
w = dist.isend(x[-1:]{copy}, (rank + 1) % p)
dist.recv(x[:1], (rank - 1) % p)
w.wait()
x[1:] = x[:-1].clone()
""",
    "a name gets other memory": """
t = torch.from_numpy(x.numpy().copy())
w = dist.isend(t, (rank + 1) % p)
dist.recv(x, (rank - 1) % p)
w.wait()
t = torch.from_numpy((x{copy}).numpy().copy())
x[:1] = t[1:2]
""",
    "turned where it is": """
w = dist.isend(x[-1:]{copy}, (rank + 1) % p)
dist.recv(x[:1], (rank - 1) % p)
w.wait()
x[:] = x.roll(1)
""",
    "two parts change places": """
y = torch.empty_like(x)
y[:1] = x[:1]
w = dist.isend(x[1:]{copy}, (rank + 1) % p)
dist.recv(y[1:], (rank - 1) % p)
w.wait()
y = torch.cat([y[1:2], y[:1], y[2:]])
""",
    "rows beside what they were": """
m, y = torch.tensor([False, True, True]), torch.empty_like(x)
for _ in range(2):
    w = dist.isend(x{copy}, (rank + 1) % p)
    dist.recv(y, (rank - 1) % p)
    w.wait()
    x = torch.where(m, x + y, x)
a = torch.index_add(y, 0, torch.tensor([2, 0, 2]), x)
b = y.scatter_add(0, torch.arange(2), x[:2])
c = y.index_copy(0, torch.tensor([1]), a[2:])
""",
    "changed by numpy before it is sent": """
b = torch.zeros_like(x)
if rank == 1: dist.send(x{copy}, 0)
if rank == 0:
    dist.recv(b, 1)
    x.numpy()[:] += b.numpy()
    dist.send(x{copy}, p - 1)
if rank == p - 1: dist.recv(b, 0)
""",
}
COPIES = (
    ".clone()",
    ".detach().clone()",
    "[:].contiguous().clone()",
    " + 0",
    " * 1",
    ".to(torch.int32).to(torch.int64)",
)


def test_what_the_picture_has_wrong_is_put_right(gang, monkeypatch):
    """An op that is told in two parts, of which each is drawn as if it were the last."""

    def chosen(meaning, out, ins, numbers):
        return meaning._elementwise("sum", out, [(ins[2], 1)]) and meaning._elementwise("sum", out, [(ins[1], 1)])

    monkeypatch.setattr(Meaning, "_chosen", chosen)
    text = "p = world_size\nx = torch.arange(3) + 10 * rank + 1\ny, b = x.clone(), torch.empty_like(x)\n"
    text += "for s in range(1, p):\n    w = dist.isend(x, (rank + s) % p)\n    dist.recv(b, (rank - s) % p)\n"
    text += "    w.wait()\n    y = torch.where(torch.tensor([True] * 3), y + b, y)\n"
    (recording,) = run(gang, [text], 3)
    wrong, compared = ends_apart(recording)
    assert not wrong and compared, wrong
    assert "changed in a way that was not seen" in recording.ways(len(recording.steps) - 1)


@pytest.mark.parametrize("what", TEMPORARIES)
def test_a_temporary_is_drawn_as_it_was_when_it_was_made(gang, what):
    head = "p = world_size\nx = torch.arange(3) + 10 * rank + 1\n"
    texts = [head + TEMPORARIES[what].format(copy=copy) for copy in COPIES]
    total = 0
    for text, recording in zip(texts, run(gang, texts, 3), strict=True):
        assert not isinstance(recording, str), f"{recording}\n{text}"
        assert disagreements(recording)[0] == [], text
        wrong, compared = ends_apart(recording)
        assert not wrong, f"{wrong}\n{text}"
        total += compared
    assert total


AFTER_THE_MESSAGES = """
total, seen = x.clone(), [x]
if rank == 0:
    for r in range(1, p):
        seen.append(torch.empty_like(x))
        dist.recv(seen[-1], r)
    {own}
    for each in seen: total += each
else:
    dist.send(x, 0)
"""
OWN = {
    "the root adds its own twice": AFTER_THE_MESSAGES.format(own="pass"),
    "it doubles its own first": AFTER_THE_MESSAGES.format(own="total *= 2"),
}


@pytest.mark.parametrize("what", OWN)
def test_what_a_rank_did_with_its_own_data_between_is_in_the_picture(gang, what):
    (recording,) = run(gang, ["p = world_size\nx = torch.arange(3) + 10 * rank + 1\n" + OWN[what]], 3)
    for wrong, compared in (disagreements(recording), ends_apart(recording)):
        assert not wrong and compared, wrong


def test_the_place_of_a_variable_whose_name_went_on_to_other_memory(gang):
    """The buffer `y` shows x's numbers at first and others at last; `x` itself is in no buffer by then."""
    text = "x = torch.arange(3) + 10 * rank + 1\ny = x\nfor s in range(2):\n    b = torch.empty_like(x)\n"
    text += "    w = dist.isend(y, (rank + 1) % 3)\n    dist.recv(b, (rank - 1) % 3)\n    w.wait()\n    y = y + b\n"
    (recording,) = run(gang, [text], 3)
    wrong, compared = ends_apart(recording)
    assert not wrong and compared, wrong
    assert [recording.place_of(0, name) for name in "xy"] == [None, ("y", 0, 1)]
    assert recording.place_of(0, "x", first=True) == ("y", 0, 1)


def test_a_mean_by_hand_is_drawn_as_one_whatever_the_data_were_made_of(gang):
    text = "p = world_size\ng = torch.arange(4.) * 4 + 100 * rank\nif rank:\n    dist.send(g, 0); dist.recv(g, 0)\n"
    text += "else:\n    b = torch.empty_like(g)\n    for r in range(1, p): dist.recv(b, r); g += b\n"
    text += "    for r in range(1, p): dist.send(g, r)\ng /= p\n"
    (recording,) = run(gang, [text], 4)
    assert recording.title == "your run: all_reduce naive (average)" and recording.check() is None
    assert {str(recording.states(-1).cells["g"][rank, 0]) for rank in range(4)} == {"avg(a0,b0,c0,d0)"}


UNSEEN = {
    "before the first message": "threading.Thread(target=lambda: x.mul_(3))",
    "between two": "threading.Thread(target=lambda: rank == 2 and s == 2 and c[i].mul_(3))",
}


@pytest.mark.parametrize("when", UNSEEN)
def test_a_change_by_a_thread_comes_before_the_message_that_carries_it(gang, when):
    change = [f"t = {UNSEEN[when]}", "t.start()", "t.join()"]
    ring = [
        "i = (rank - s - 1) % p",
        "w = dist.isend(c[(rank - s) % p], (rank + 1) % p)",
        "dist.recv(b, (rank - 1) % p)",
        "w.wait()",
        "c[i].add_(b) if s < p - 1 else c[i].copy_(b)",
        *(change if when == "between two" else ()),
    ]
    text = "import threading\np = world_size\nx = torch.arange(8) + 10 * rank + 1\nc = x.chunk(p)\n"
    text += "b = torch.empty_like(c[0])\n" + "\n".join(change if when != "between two" else []) + "\n"
    text += "for s in range(2 * (p - 1)):\n    " + "\n    ".join(ring) + "\n"
    (recording,) = run(gang, [text], 4)
    wrong, compared = disagreements(recording)
    assert not wrong and compared, wrong
    wrong, compared = ends_apart(recording)
    assert not wrong and compared, wrong
    assert (recording.collective == "all_reduce") == (when == "before the first message")


def test_the_own_part_of_a_built_in_has_its_own_numbers(gang):
    text = (
        "x, m, y = torch.arange(6) + 10 * rank, torch.empty(2, dtype=torch.int64), torch.empty(6, dtype=torch.int64)\n"
    )
    (recording,) = run(gang, [text + "dist.reduce_scatter_single(m, x)\ndist.all_gather_single(y, m)\n"], 3)
    wrong, compared = disagreements(recording)
    assert not wrong and compared > 12, wrong


def test_what_a_reduce_leaves_on_other_ranks_is_not_their_own_data(gang):
    text = "x = torch.arange(3) + 100 * rank\ny = x.clone()\ndist.reduce(y, 1)\n"
    (recording,) = run(gang, [text], 4)
    assert "left by the library" in recording.ways(len(recording.steps) - 1)
    for wrong, compared in (disagreements(recording), ends_apart(recording)):
        assert not wrong and compared, wrong
    told = recording.as_if(reduce="binomial")
    assert not any("left by the library" in told.ways(index) for index in range(len(told.steps)))


def test_no_symbol_stands_for_a_part_of_a_number(gang):
    text = "x = torch.arange(4.) + 10 * rank + 1\nb = torch.empty(4)\nw = dist.isend(x, 1 - rank)\n"
    (recording,) = run(gang, [text + "dist.recv(b, 1 - rank)\nw.wait()\nx += b\nx.untyped_storage()[3] = 7\n"], 2)
    assert recording.cuts("x") == [0, 4, 16]


def ends_apart(recording) -> tuple[list, int]:
    """(rank, buffer, chunk, symbols, numbers) of what variables hold at the end and do not hold in the picture; and how
    many were compared."""
    start, wrong, compared = {}, [], 0
    for rank, buffer, chunk, text in recording.start_values():
        start.setdefault(recording.start().cells[buffer][rank, chunk].origins[0], numbers(text))
    for rank, memory in recording._captures.replay.variables.items():
        snapshots = recording._captures.order.ranks[rank].snapshots
        for name in memory.left:
            buffer, first, count = recording.place_of(rank, name) or ("", 0, 0)
            at = 0
            for chunk in range(first, first + count):
                whole = memory.last(name)[0].span
                cuts = recording.cuts(buffer)
                first_byte = whole.lo + at
                at += cuts[chunk + 1] - cuts[chunk]
                part = whole._replace(lo=first_byte, hi=whole.lo + at)
                held = snapshots.value(part, memory.last_snapshot, "int64")
                cell = recording.states(-1).cells[buffer][rank, chunk]
                parts = [start.get(origin) for origin, times in cell.terms for _ in range(times)]
                if parts and None not in parts:
                    compared += 1
                    if added(parts) != held.tolist():
                        wrong.append((rank, buffer, chunk, str(cell), held.tolist()))
    return wrong, compared


if __name__ == "__main__":  # python -m tests.launch.test_observed SEED PROGRAMS
    from tests.launch.forked import Gang

    with Gang() as started:
        for p in (2, 3, 4):
            many = list(cases(random.Random(int(sys.argv[1]) + p), int(sys.argv[2]), p))
            sources = [each.program.on("ints") for each in many]
            found = [disagreements(r) for r in run(started, sources, p) if not isinstance(r, str)]
            cells = sum(compared for _, compared in found)
            print(f"{p} ranks: {len(found)} programs, {cells} cells, {sum(map(bool, (w for w, _ in found)))} disagree")
