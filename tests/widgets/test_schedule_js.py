"""js/schedule.js against its oracle: the states and counts that `collectives` computes for the same schedule."""

import pytest

from collectives import CATALOGUE, Cell, Schedule, Transfer, all_reduce
from tests.widgets.conftest import ask
from widgets import _strip
from widgets._packing import pack
from widgets.zoo import _schedules


def pairwise_all_to_all():
    """Two buffers, chunks that land elsewhere than they were read, and local transfers after the messages."""
    ranks = range(3)
    steps = [
        (
            f"distance {d}",
            "",
            [
                Transfer(r, (r + d) % 3, (r + d) % 3, dst_chunk=r, src_buffer="input", dst_buffer="output")
                for r in ranks
            ],
        )
        for d in ranks
    ]
    return Schedule.from_steps("all_to_all", "pairwise", 3, 3, steps, buffers=("input", "output"), result="output")


def awkward():
    """Ranges, two transfers in one message, a copy and a reduction into the same place, locals that read locals."""
    first = [Transfer(0, 1, 0, "reduce", count=3), Transfer(0, 1, 4), Transfer(2, 1, 0, "reduce"), Transfer(1, 0, 2)]
    second = [Transfer(1, 1, 0, dst_chunk=5), Transfer(1, 1, 5, "reduce", dst_chunk=4), Transfer(2, 0, 1)]
    return Schedule.from_steps("all_reduce", "awkward", 3, 6, [("one", "", first), ("two", "", second)])


def barrier():
    steps = [("spread", "", [Transfer(r, (r + d) % 4, 0, "reduce") for r in range(4)]) for d in (1, 2, 1)]
    return Schedule.from_steps("barrier", "dissemination", 4, 1, steps)


def broadcast():
    return Schedule.from_steps(
        "broadcast", "flat", 3, 2, [("send", "", [Transfer(1, r, 0, count=2)]) for r in (0, 2)], root=1
    )


def made():
    """What ranks make themselves: over data, in the middle of a step's local transfers, and sent on; in 64 buffers."""
    first = [
        Transfer(0, 0, 4, "new", count=2, dst_chunk=0),
        Transfer(0, 1, 0, "reduce"),
        Transfer(0, 0, 1, dst_chunk=2),
    ]
    second = [Transfer(0, 1, 1), Transfer(1, 1, 0, "reduce", dst_chunk=1), far(1, 7), Transfer(2, 0, 0, "reduce")]
    third = [Transfer(1, 2, 0, "reduce", src_buffer="b63"), far(2, 3)]
    steps = [("", "", transfers) for transfers in (first, second, third)]
    buffers = ("data", *(f"b{number}" for number in range(1, 64)))
    return Schedule.from_steps("recorded", "recorded", 3, 3, steps, buffers=buffers)


def far(rank, number):
    return Transfer(rank, rank, number, "new", dst_chunk=0, src_buffer="b63", dst_buffer="b63")


def doubling(turns=45):
    """Both ranks add what the other holds, again and again: 2^44 times each in the end."""
    step = ("", "", [Transfer(0, 1, 0, "reduce"), Transfer(1, 0, 0, "reduce")])
    return Schedule.from_steps("recorded", "mine", 2, 1, [step] * turns)


def averaged():
    """Sums that ranks divide: where they are, on the way to another rank, into another chunk."""
    first = [Transfer(1, 0, 0, "reduce"), Transfer(2, 0, 0, "reduce"), Transfer(0, 0, 0), Transfer(0, 2, 1, "reduce")]
    second = [Transfer(0, 1, 0), Transfer(2, 0, 1), Transfer(2, 2, 1, dst_chunk=0)]
    schedule = Schedule.from_steps("recorded", "mine", 3, 2, [("", "", step) for step in (first, second)])
    schedule.ways = [["sum", "sum", "avg", "sum"], ["", "avg", "avg"]].__getitem__
    return schedule


SCHEDULES = {
    "averaged": averaged(),
    "doubling": doubling(),
    "ring 2": all_reduce.ring(ranks=2),
    "ring 5": all_reduce.ring(ranks=5),
    "ring 13": all_reduce.ring(ranks=13),  # more than ten chunks: numbers in base 100
    "tree 27": all_reduce.tree(ranks=27),  # letters beyond z
    "nvls 4": all_reduce.nvls(ranks=4),
    "nvls_tree 2 2": all_reduce.nvls_tree(nodes=2, local=2),
    "swing 8": all_reduce.swing(ranks=8),
    "naive 4": all_reduce.naive(ranks=4),
    "exchange 4": all_reduce.exchange(ranks=4),
    "whole_ring 4": all_reduce.whole_ring(ranks=4),
    "all_to_all 3": pairwise_all_to_all(),
    "awkward": awkward(),
    "barrier": barrier(),
    "broadcast": broadcast(),
    "made": made(),
}

PLAY = """async (meta, records, path) => {
    const { decode, Run } = await import("/js/schedule.js");
    const { baseOf } = await import("/js/labels.js");
    const { amount } = await import("/js/captions.js");
    const run = new Run(decode(meta, new DataView(Uint8Array.from(records).buffer)));
    return path.map((step) => {
        run.seek(step);
        return {
            symbols: run.cells.map((cell) => cell.symbol),
            contributors: run.cells.map((cell) => cell.contributors),
            numbers: run.cells.map((cell) => cell.number(baseOf(run.schedule))),
            sent: [...run.sent], received: [...run.received], messages: run.messages, 
            steps: run.done.slice(0, run.step).filter(({ count }) => count.length).length,
            told: amount(run.schedule, Math.max(...run.sent)),
        };
    });
}"""


def play(page, schedule, path, nbytes=None):
    data, meta = pack(schedule)
    assert len(data) == 16 * sum(len(step.transfers) for step in schedule.steps)
    return ask(page, PLAY, meta | {"nbytes": nbytes}, list(data), [*path])


def cells_after(schedule, step):
    state = schedule.states(step - 1) if step else schedule.start()
    return [cell for name in schedule.buffers for rank in range(schedule.ranks) for cell in state[rank][name]]


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_state_equals_the_oracle_on_the_way_there_and_back(modules, name):
    schedule = SCHEDULES[name]
    stride = 1 if schedule.ranks < 10 else 9
    there = range(0, len(schedule.steps) + 1, stride)
    path = [*there, *reversed(there), len(schedule.steps), 0]
    base = 10 if schedule.chunks <= 10 else 100
    for step, seen in zip(path, play(modules, schedule, path), strict=True):
        expected = cells_after(schedule, step)
        assert seen["symbols"] == [str(cell) for cell in expected]
        assert seen["contributors"] == [list(cell.contributors) for cell in expected]
        totals = [sum(n * (r * base + c) for (r, c), n in cell.terms) for cell in expected]
        divided = [len(cell.terms) if cell.sign == "avg" else 1 for cell in expected]
        totals = [total // by for total, by in zip(totals, divided, strict=True)]
        assert seen["numbers"] == [str(total) if cell else "" for cell, total in zip(expected, totals, strict=True)]


@pytest.mark.parametrize("name", SCHEDULES)
def test_counts_equal_the_oracle_and_going_back_undoes_them(modules, name):
    schedule = SCHEDULES[name]
    end, back = play(modules, schedule, [len(schedule.steps), 0])
    counts = schedule.counts(nbytes=schedule.chunks)  # one byte per chunk: the browser counts in chunks
    assert (end["steps"], end["messages"]) == (counts.steps, counts.messages)
    assert (end["sent"], end["received"]) == (list(counts.sent), list(counts.received))
    assert back["messages"] == back["steps"] == 0 and set(back["sent"] + back["received"]) == {0}


@pytest.mark.parametrize("collective", CATALOGUE)
def test_every_algorithm_of_four_ranks_ends_as_the_oracle_says(modules, collective):
    for schedule in _schedules(collective, 4):
        (end,) = play(modules, schedule, [len(schedule.steps)])
        assert end["symbols"] == [str(cell) for cell in cells_after(schedule, len(schedule.steps))], schedule


def test_amounts_are_multiples_of_N_or_bytes(modules):
    ring = all_reduce.ring(ranks=4)
    assert play(modules, ring, [6])[0]["told"] == "1.5 N"
    assert play(modules, ring, [6], nbytes=64_000_000)[0]["told"] == "96 MB"
    uneven = Schedule.from_steps("send_recv", "", 2, 2, [("", "", [Transfer(0, 1, 1)])], chunk_bytes=[100, 7])
    assert play(modules, uneven, [1])[0]["told"] == "7 B"


def test_values_of_a_real_run_stand_until_they_are_overwritten(modules):
    schedule = Schedule.from_steps(
        "send_recv", "", 2, 1, [("", "", [Transfer(0, 1, 0)]), ("", "", [Transfer(1, 0, 0)])]
    )
    schedule.values = lambda i: [(1, "data", 0, "3.25")] if i == 0 else []
    schedule.start_values = lambda: [(0, "data", 0, "2.5")]
    after = [state["numbers"] for state in play(modules, schedule, [0, 1, 2, 1])]
    assert after == [["2.5", "10"], ["2.5", "3.25"], ["3.25", "3.25"], ["2.5", "3.25"]]


def test_the_words_of_what_is_new_and_the_signs_of_what_is_reduced_stand_apart():
    first = [Transfer(0, 1, 0, "reduce"), Transfer(1, 1, 5, "new", dst_chunk=0), Transfer(1, 0, 0)]
    second = [Transfer(0, 0, 6, "new", dst_chunk=0), Transfer(1, 1, 7, "new", dst_chunk=0)]
    steps = [("", "", transfers) for transfers in (first, second, first[::2])]
    schedule = Schedule.from_steps("recorded", "recorded", 2, 1, steps)
    data, meta = pack(schedule)
    assert [data[at + 14] for at in range(0, len(data), 16)] == [128, 64, 0, 64, 64, 128, 0]
    assert meta["signs"] is None
    assert meta["made"] == [["", "computed", ""], ["computed", "computed"], None]
    said = [["max", "changed outside torch", ""], ["computed", "changed outside torch"], ["product", ""]]
    schedule.ways = said.__getitem__
    assert pack(schedule)[1]["signs"] == [["max", "", ""], None, ["×", ""]]
    assert pack(schedule)[1]["made"] == [["", "changed outside torch", ""], said[1], None]
    ring = pack(all_reduce.ring(ranks=3))[1]
    assert [ring[name] for name in ("made", "signs", "values", "start_values")] == [None] * 4


@pytest.mark.parametrize(("way", "held"), [("sum", "a0+b5"), ("max", "max(a0,b5)")])
def test_the_still_picture_asks_only_what_reduces_how_it_does(way, held):
    steps = [("", "", [Transfer(1, 1, 5, "new", dst_chunk=0)]), ("", "", [Transfer(1, 0, 0, "reduce")])]
    schedule = Schedule.from_steps("recorded", "recorded", 2, 1, steps)
    schedule.ways = [["changed outside torch"], [way]].__getitem__
    assert f">{held}<" in _strip.svg(schedule)


def test_more_buffers_than_a_byte_has_room_for_are_refused():
    def of(count):
        return Schedule.from_steps("recorded", "recorded", 2, 1, [], buffers=[f"b{n}" for n in range(count)])

    assert len(pack(of(64))[1]["buffers"]) == 64
    with pytest.raises(ValueError) as error:
        pack(of(65))
    assert str(error.value).startswith("recorded recorded has 65 buffers, more than a browser can play (64); ")


def test_a_library_s_call_changes_cells_but_counts_no_messages(modules):
    """As `Recording.counts` has it: what a built-in collective sends cannot be seen."""
    own, library = [Transfer(0, 1, 0, "reduce")], [Transfer(1, 0, 0)]
    schedule = Schedule.from_steps(
        "recorded", "recorded", 2, 1, [("copy", "", own), ("broadcast (built-in)", "", library, (), True)]
    )
    end = play(modules, schedule, [2])[0]
    assert end["symbols"] == ["a0+b0", "a0+b0"]
    assert (end["steps"], end["messages"], end["sent"]) == (1, 1, [1, 0])


def test_a_second_buffer_may_be_numbered_on(modules):
    """A Recording's start numbers the chunks of buffers that differ on: they are beyond `chunks`."""
    start = all_reduce.ring(ranks=2).start().cells["data"]
    start = {"x": start, "y": start.copy()}
    for rank in range(2):
        for chunk in range(2):
            start["y"][rank, chunk] = Cell(((rank, chunk + 2),))
    steps = [("", "", [Transfer(0, 1, 0, "reduce", src_buffer="y", dst_buffer="x")])]
    schedule = Schedule.from_steps("recorded", "recorded", 2, 2, steps, buffers=("x", "y"), start=start)
    assert play(modules, schedule, [1])[0]["symbols"] == [str(cell) for cell in cells_after(schedule, 1)]
    assert "a2+b0" in map(str, cells_after(schedule, 1))


SAY_START = """async (start) => {
    const { sentence } = await import("/js/captions.js");
    return sentence({ start, ranks: 4 }, { step: 0 }).split(" data;")[0];
}"""


@pytest.mark.parametrize(
    "start, words",
    [
        (["own"], "Every rank holds its own"),
        ([[], "own"], "Every rank holds its own"),  # a recording whose first buffer is the one that is filled
        ([[[0, 0, 0, 0]], [[2, 0, 2, 0], [2, 1, 2, 1]]], "2 ranks of 4 hold"),
        ([[], [[3, 0, 3, 0]]], "Only rank 3 holds"),
    ],
)
def test_who_holds_data_at_the_start_is_asked_of_every_buffer(modules, start, words):
    assert modules.evaluate(SAY_START, start) == words


LABELS = """async ([sign, rooms]) => {
    const { labelOf } = await import("/js/labels.js");
    const { Cell } = await import("/js/cell.js");
    const cell = new Cell([0, 2 ** 20, 2 * 2 ** 20], null, sign);
    return rooms.map((room) => labelOf(cell, "symbols", { room, short: false }, { ranks: 128, chunks: 1 }, 0));
}"""


@pytest.mark.parametrize(
    "sign, labels",
    [
        ("+", ["a0+b0+c0", "a+b+c", "3/128", "Σ3", ""]),
        ("max", ["max(a0,b0,c0)", "max(a,b,c)", "3/128", "max", ""]),
        ("×", ["a0×b0×c0", "a×b×c", "3/128", "×", ""]),
        (",", ["a0,b0,c0", "a,b,c", "3/128", ",", ""]),
    ],
)
def test_a_label_gets_shorter_and_never_claims_another_operation(modules, sign, labels):
    """In just the room that each form takes; the sum's `a+b+c` and `3/128` are as long as each other."""
    rooms = [len(label) for label in labels]
    found = modules.evaluate(LABELS, [sign, rooms])
    assert found == [labels[1] if len(label) == len(labels[1]) else label for label in labels]
