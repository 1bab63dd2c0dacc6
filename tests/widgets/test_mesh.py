"""The Mesh: groups, calls and bytes against what ranks called, and the groups of a shape by brute force."""

import re
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tests.pictures.scenes import mesh
from widgets import Mesh


def call(rank, op, group, nbytes, start, peer=None):
    return SimpleNamespace(rank=rank, op=op, group=tuple(group), bytes=nbytes, start=start, peer=peer)


def run(*events, ranks=4):
    return SimpleNamespace(events=list(events), ranks=ranks, network=None)


def drawn(widget):
    """By panel, {ranks of one colour}: from the boxes in the picture, by their hue and place."""
    found = []
    for part in re.split(r'(?=<g data-step=")', widget.pictures["wide"])[1:]:
        groups = re.findall(r'<g data-ends="([\d ]+)"><path class="rd-full rs-h(\d)" d="([^"]*)"/></g>', part)
        for ends, _, path in groups:
            assert path.count("M") == len(ends.split())
        found.append([tuple(map(int, ends.split())) for ends, _, _ in groups])
    return found


@pytest.mark.parametrize("shape", [(8,), (2, 4), (3, 2), (2, 2, 4), (2, 2, 2, 2)])
def test_the_groups_of_a_shape_are_those_ranks_of_which_one_index_differs(shape):
    table = np.arange(np.prod(shape)).reshape(shape)
    expected = []
    for dim in range(len(shape)):
        others = product(*(range(long) for number, long in enumerate(shape) if number != dim))
        expected.append(sorted(tuple(np.moveaxis(table, dim, -1)[place].tolist()) for place in others))
    assert drawn(Mesh(shape=shape)) == expected


def test_calls_of_a_run_are_told_by_op_and_by_how_their_groups_lie():
    rows, columns, world = [(0, 1), (2, 3)], [(0, 2), (1, 3)], range(4)
    events = [call(rank, "all_reduce", rows[rank // 2], 100, turn) for turn in range(3) for rank in range(4)]
    events += [call(rank, "all_reduce", columns[rank % 2], 5, 10) for rank in range(4)]
    events += [call(rank, "all_reduce", world, 7, 20) for rank in range(4)]
    events += [call(0, "broadcast", (0, 3), 9, 30, peer=0), call(3, "broadcast", (0, 3), 9, 30, peer=0)]
    widget = Mesh(run(*events), shape=(2, 2), names=("data", "tensor"))
    assert [(kind.op, kind.along, kind.calls, kind.bytes) for kind in widget.kinds] == [
        ("all_reduce", "along tensor", 3, 300),
        ("all_reduce", "along data", 1, 5),
        ("all_reduce", "among all ranks", 1, 7),
        ("broadcast", "in other groups", 1, 9),
    ]
    assert drawn(widget) == [rows, columns, [(0, 1, 2, 3)], [(0, 3)]]
    assert widget.told[1] == "all_reduce in 2 groups along tensor: ranks 0, 1 and ranks 2, 3; 3 calls, 300 B a rank."
    assert widget.headline == (
        "Each rank has 3 calls along tensor, 300 B; 1 call along data, 5 B; 1 call among all ranks, 7 B; "
        "1 call in other groups, 9 B"
    )


def test_a_message_is_a_group_of_two_unless_it_names_one_and_counts_once():
    pair = [call(0, "send", range(4), 8, 0, peer=3), call(3, "recv", range(4), 8, 0, peer=0)]
    (kind,) = Mesh(run(*pair), shape=(2, 2)).kinds
    assert (kind.op, kind.groups) == ("send", [(0, 3)])
    named = [call(0, "send", (0, 2), 8, 0, peer=2), call(2, "send", (0, 2), 8, 0, peer=0)]
    (kind,) = Mesh(run(*named), shape=(2, 2), names=("data", "tensor")).kinds
    assert (kind.groups, kind.along, kind.calls, kind.bytes) == ([(0, 2)], "along data", 1, 8)


def test_what_leaves_its_machine_is_marked_and_told_apart():
    widget = mesh()
    assert widget.headline == "One all_reduce in 3 steps: only 250 kB of each rank's 1 MB cross between machines"
    widget = mesh(collective="")  # not proved to be one
    assert widget.headline == "Over the slow links between machines: 250 kB a rank. Inside a machine: 2 MB"
    panels = re.split(r'(?=<g data-step=")', widget.pictures["wide"])[1:]
    assert [len(re.findall('<path class="rd-line rd-slow"', panel)) for panel in panels] == [0, 4, 0]
    assert [line.rpartition(", ")[2] for line in widget.told[1:]] == [
        "inside a machine.",
        "over the slow links.",
        "inside a machine.",
    ]
    assert repr(widget) == "Mesh(machine 2, gpu 4; reduce_scatter_single, all_reduce, all_gather_single)"
    assert widget.takes_part[5] == (
        "Rank 5: reduce_scatter_single with ranks 4, 5, 6, 7, as number 1; all_reduce with ranks 1, 5, as number 1; "
        "all_gather_single with ranks 4, 5, 6, 7, as number 1."
    )


@pytest.mark.parametrize(
    "groups, shape", [([(0, 2, 4), (1, 3, 5)], (3, 2)), ([(0, 1, 2), (3, 4, 5)], (2, 3)), ([range(6)], (6,))]
)
def test_a_shape_that_was_not_given_follows_from_the_groups(groups, shape):
    events = [call(rank, "all_reduce", group, 4, 0) for group in groups for rank in group]
    assert Mesh(run(*events, ranks=6)).shape == shape


def test_what_is_saved_beside_it_is_the_whole_picture():
    one, two = mesh().fallback(), mesh().fallback()
    assert one == two and len(one) < 20_000


@pytest.mark.parametrize(
    "make, error, words",
    [
        (Mesh, ValueError, "Mesh needs a run or a shape"),
        (lambda: Mesh(7), TypeError, "Mesh draws a run that knows its groups"),
        (lambda: Mesh(run(SimpleNamespace(op="send"))), TypeError, "not one that was loaded"),
        (lambda: Mesh(run()), ValueError, "no rank called torch.distributed in this run"),
        (lambda: Mesh(shape=(9, 9)), ValueError, "Mesh draws up to 64 ranks"),
        (lambda: Mesh(run(call(0, "all_reduce", range(4), 4, 0)), shape=(2, 3)), ValueError, "6 places for 4 ranks"),
        (lambda: Mesh(shape=(2, 4), names=("gpu",)), ValueError, "one for each dimension of the mesh, 2; got 1"),
        (lambda: Mesh(shape=(2, 4), local=3), ValueError, "so it divides 8; got 3"),
        (lambda: Mesh(run(*(call(0, f"op{k}", range(4), 4, k) for k in range(9)))), ValueError, "9 kinds of calls"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


def test_a_rank_is_followed_through_its_groups(show):
    page = show(mesh())
    page.focus(".rs-scrub input")
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    assert page.inner_text(".rs-detail") == mesh().takes_part[5]
    lit = page.locator(".rs-drawing [data-ends].rd-lit").evaluate_all(
        "(nodes) => nodes.map((node) => node.dataset.ends)"
    )
    assert {*lit} == {"4 5 6 7", "1 5"}
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".rs-where") == "Step 3 of 3." and page.inner_text(".rs-sentence") == mesh().told[3]


@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize("make", [mesh, lambda: Mesh(shape=(2, 2, 8), names=("pipeline", "data", "tensor"), local=8)])
def test_it_fits(show, page, make, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(make())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sides = "(nodes) => nodes.map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    ends = page.locator(".rs-drawing :is(text, path)").evaluate_all(sides)
    box = page.locator(".rs-drawing").bounding_box()
    assert min(left for left, _ in ends) >= box["x"] and max(right for _, right in ends) <= box["x"] + box["width"]
