"""Mismatches are refused before gloo sees them; what gloo does with each unguarded is in the comment.

Real ranks in every case. The later of two ranks that disagree is the one that raises, so a test asks that somebody
raised, that both ranks and both lines are named, and that nobody came out with a wrong number.
"""

import pytest

from launch.rank._ops import Cut
from launch.rank.guard import Guard
from launch.shared.flight_recorder import Board, Fingerprint
from tests.launch.forked import HAS_ALL_TO_ALL, TORCH

FAULTS = {
    # gloo: all hang
    "op": ("if rank == 2:\n    dist.broadcast(x, 0)\nelse:\n    dist.all_reduce(x)", "broadcast", "all_reduce"),
    # gloo: wrong numbers on three ranks, the fourth hangs
    "elements": ("dist.all_reduce(x[:2] if rank == 2 else x)", "count 2", "count 4"),
    # gloo: connections reset
    "dtype": ("dist.all_reduce(x.double() if rank == 2 else x)", "float64", "float32"),
    # gloo: wrong numbers, no error
    "reduce op": ("op = dist.ReduceOp.MAX if rank == 2 else dist.ReduceOp.SUM\ndist.all_reduce(x, op)", "MAX", "SUM"),
    # gloo: some end with wrong data, others hang
    "root": ("dist.broadcast(x, 2 if rank == 2 else 0)", "src 2", "src 0"),
    # gloo: hangs
    "list and single": (
        "out = torch.zeros(16)\nif rank == 2:\n    dist.all_gather(list(out.chunk(4)), x)\n"
        "else:\n    dist.all_gather_single(out, x)",
        "all_gather",
        "all_gather_single",
    ),
    "reduce_scatter sizes": (
        "n = 8 if rank == 2 else 4\ndist.reduce_scatter_single(torch.zeros(n // 4), torch.zeros(n))",
        "count 2",
        "count 1",
    ),
}


# gloo: 20 bytes are cut into 10 and 10, so that one element of the three comes with the bytes of two
@pytest.mark.parametrize("name, y, x", [("input", 6, 5), ("output", 5, 6)])
def test_what_cannot_be_cut_evenly_is_refused_on_the_rank_that_has_it(gang, name, y, x):
    source = f"""
y, x = (torch.zeros({y}), torch.ones({x})) if rank == 1 else (torch.zeros(6), torch.ones(6))
dist.all_to_all_single(y, x)
"""
    other, mine = [answer["error"] for answer in gang.run(source, 2, record=False, stuck=True)]
    cut = f"ValueError: all_to_all_single cannot cut its {name} of 5 elements into 2 equal pieces: "
    assert mine == cut + f"give {name}_split_sizes, or a multiple of 2"
    assert other == "hung"  # until the driver frees it


# gloo: SIGSEGV
@pytest.mark.parametrize("y, x", [("torch.tensor(0.)", "torch.ones(2)"), ("torch.zeros(1)", "torch.tensor(1.)")])
def test_a_tensor_without_dimensions_ends_no_rank(gang, y, x):
    answers = gang.run(f"dist.reduce_scatter_single({y}, {x})", 2, record=False, stuck=True)
    said = "ValueError: reduce_scatter_single needs tensors with a dimension: "
    assert [answer["error"].partition("torch.")[0] for answer in answers] == [said, said]


ROWS_ARE_CUT = pytest.mark.skipif(TORCH >= (2, 14), reason="from torch 2.14 on it refuses such rows itself")


@pytest.mark.parametrize(
    "x, y, split",
    [
        pytest.param((3, 2), (3, 2), "None, None", marks=ROWS_ARE_CUT),  # no whole rows
        ((2, 3), (6,), "None, None"),  # rows of another width
        pytest.param((2, 3), (3, 2), "None, None", marks=ROWS_ARE_CUT),
        ((2, 3), (6,), "[3, 3], [1, 1]"),
        ((2, 3), (6,), "None, [1, 1]"),
    ],
)
def test_pieces_of_as_many_elements_pass_whatever_their_rows(gang, x, y, split):
    source = f"""
y = torch.zeros({y})
dist.all_to_all_single(y, torch.arange(6.).reshape({x}) + 10 * rank, {split})
y = y.flatten()
"""
    answers = gang.run(source, 2, record=False, keep=["y"])
    first, second = ([*range(3), *range(10, 13)], [*range(3, 6), *range(13, 16)])
    assert [answer["keep"]["y"] for answer in answers] == [first, second]


@pytest.mark.parametrize(
    "x, y, split, said",
    [
        ((2, 3), (4, 3), "[2, 2], [1, 1]", "sends 1 row to rank 0 in all_to_all_single #1, but rank 0 expects 2"),
        ((4, 3), (2, 3), "None, None", "sends 2 rows to rank 0 in all_to_all_single #1, but rank 0 expects 1"),
        ((4,), (2,), "None, None", "sends 2 elements to rank 0 in all_to_all_single #1, but rank 0 expects 1"),
        ((2, 2), (2, 3), "[1, 1], [1, 1]", "sends 2 elements to rank 0 in all_to_all_single #1, but rank 0 expects 3"),
        ((0, 3), (2, 3), "[1, 1], [0, 0]", "sends 0 rows to rank 0 in all_to_all_single #1, but rank 0 expects 1"),
    ],
)
def test_pieces_that_do_not_fit_are_counted_in_rows_where_these_are_alike(gang, x, y, split, said):
    answers = gang.run(f"dist.all_to_all_single(torch.zeros({y}), torch.zeros({x}), {split})", 2, record=False)
    assert answers[0]["error"] == f"MismatchError: rank 0 {said}"


def test_pieces_of_a_call_that_torch_has_refused_meet_no_later_call(tmp_path):
    """torch 2.15 refuses wrong split sizes in the call, earlier ones in its wait; the next call has its number then."""
    memory = Board(tmp_path / "board", 2).memory
    mark = Fingerprint(1, 0, 1, 0, -1, -1, -1, 1, "collective", "all_to_all_single", "", "float32", "")
    zero, one = Guard(memory, 0), Guard(memory, 1)
    zero.collective(mark, (0, 1))
    zero.splits(mark, (0, 1), Cut((1, 1), (1, 1), (1, 1)))
    zero.retract(mark)
    one.splits(mark, (0, 1), Cut((2, 2), (2, 2), (1, 1)))


# gloo: dist.all_to_all_single(x, x) leaves [10, 11, 12, 13] on rank 1 in some runs, for [2, 3, 12, 13]
@pytest.mark.parametrize("y", ["whole[1:5]", "whole[:4]", "whole[4:]", "whole[1:5].view(2, 2)"])
def test_an_all_to_all_single_into_its_own_input_is_refused(gang, y):
    source = f"whole = torch.arange(8.) + 10 * rank\ndist.all_to_all_single({y}, whole[1:5])"
    for answer in gang.run(source, 2, record=False):
        assert answer["error"].startswith("ValueError: all_to_all_single cannot write into its own input: ")


GAPS = {
    # gloo: sums the first three elements of the first row; of one that is expanded, memory that is not its own
    "a column": "dist.all_reduce(x[:, 0])",
    "columns": "dist.broadcast(x[:, 1:], 0)",
    "on one rank": "dist.broadcast(x[:, 0] if rank else torch.ones(3), 0)",
    "every second row": "dist.reduce(x[::2], 0)",
    "expanded": "dist.all_reduce(torch.ones(1).expand(3))",
    "scattered into": "dist.scatter(x[:, 0], [torch.ones(3), torch.ones(3)] if rank == 0 else None)",
    "scattered": "dist.scatter(torch.ones(3), list(x[:, :2].unbind(1)) if rank == 0 else None)",
    "reduced and scattered into": "dist.reduce_scatter(x[:, 0], [torch.ones(3), torch.ones(3)])",
    "exchanged into": "dist.all_to_all_single(x[:2, 0], torch.ones(2))",
}


@pytest.mark.parametrize("call", GAPS)
def test_a_view_with_gaps_is_refused_where_gloo_takes_memory_as_it_lies(gang, call):
    source = f"x = torch.arange(9.).view(3, 3) + 10 * rank\n{GAPS[call]}"
    answers = gang.run(source, 2, record=False, keep=["x"], stuck=True)
    said = [answer["error"] for answer in answers if answer["error"].startswith("ValueError: ")]
    assert said and all(
        "needs a tensor in one piece of memory, not this view: y = x.contiguous()" in error for error in said
    )
    for rank, answer in enumerate(answers):
        if answer["error"] != "hung":  # on the rank that has it right; the driver would free it
            assert answer["keep"]["x"] == [[10 * rank + 3 * row + column for column in range(3)] for row in range(3)]


@pytest.mark.skipif(not HAS_ALL_TO_ALL, reason="gloo has no all_to_all before torch 2.13")
def test_views_with_gaps_pass_where_they_are_copied_and_those_without_everywhere(gang):
    source = """
x = torch.arange(4.).view(2, 2) + 10 * rank
gathered, exchanged, pieces = torch.zeros(2, 2), torch.zeros(2, 2), torch.zeros(2)
dist.all_gather(list(gathered.unbind(1)), x[:, 0])
dist.all_to_all(list(exchanged.unbind(1)), list(x.unbind(1)))
dist.reduce_scatter(pieces, list(x.unbind(1)))
summed = x.clone()
dist.all_reduce(summed.t())
row, one = x.clone(), x.clone()
dist.all_reduce(row[1])
dist.all_reduce(one[:1, :1])
"""
    names = ["gathered", "exchanged", "pieces", "summed", "row", "one"]
    mine, other = (answer["keep"] for answer in gang.run(source, 2, record=False, keep=names))
    assert mine["gathered"] == other["gathered"] == [[0, 10], [2, 12]]
    assert (mine["exchanged"], other["exchanged"]) == ([[0, 10], [2, 12]], [[1, 11], [3, 13]])
    assert (mine["pieces"], other["pieces"]) == ([10, 14], [12, 16])
    assert mine["summed"] == other["summed"] == [[10, 12], [14, 16]]
    assert (mine["row"], other["row"]) == ([[0, 1], [14, 16]], [[10, 11], [14, 16]])
    assert (mine["one"], other["one"]) == ([[10, 1], [2, 3]], [[10, 11], [12, 13]])


# gloo: the pieces as if none were transposed; sums of pieces that are with others that are not
@pytest.mark.parametrize(
    "call",
    [
        "dist.scatter(y, [piece.t() for piece in x] if rank == 0 else None)",
        "dist.scatter(y.t(), list(x) if rank == 0 else None)",
        "dist.reduce_scatter(y, [piece.t() for piece in x])",
        "dist.reduce_scatter(y.t(), list(x))",
        "dist.all_to_all_single(y.t(), x[0])",
    ],
)
def test_tensors_of_one_call_that_lie_in_different_orders_are_refused(gang, call):
    source = f"x = torch.arange(8.).view(2, 2, 2) + 10 * rank\ny = torch.zeros(2, 2)\n{call}"
    error = gang.run(source, 2, record=False, stuck=True)[0]["error"]
    assert error.startswith(f"ValueError: {call[5 : call.index('(')]} needs all its tensors in one memory layout")


# gloo: x as it was before it was transposed
@pytest.mark.parametrize("call", ["broadcast({}, 0)", "all_reduce({})", "reduce({}, 1)"])
def test_ranks_whose_tensors_lie_in_different_orders_are_told(gang, call):
    source = f"x = torch.arange(4.).view(2, 2) + 10 * rank\ndist.{call.format('x if rank else x.t()')}"
    answers = gang.run(source, 2, record=False, keep=["x"])
    said = [answer["error"] for answer in answers if answer["error"].startswith("MismatchError: ")]
    op = call.partition("(")[0]
    assert said and all(f"rank 0 calls {op} #1 (line 2; order 1,0)" in error for error in said)
    assert all(f"rank 1 calls {op} #1 (line 2; order as usual)" in error for error in said)


def test_tensors_that_lie_in_the_same_order_everywhere_pass(gang):
    source = """
x = torch.arange(8.).view(2, 2, 2) + 10 * rank
sent, summed, scattered, reduced = x[0].clone(), x[0].clone(), torch.zeros(2, 2), torch.zeros(2, 2)
dist.broadcast(sent.t(), 0)
dist.all_reduce(summed.t())
dist.scatter(scattered.t(), [piece.t() for piece in x] if rank == 0 else None)
dist.reduce_scatter(reduced.t(), [piece.t() for piece in x])
image = torch.arange(16.).view(1, 2, 2, 4).to(memory_format=torch.channels_last)
dist.all_reduce(image)
image = image.flatten()
"""
    names = ["sent", "summed", "scattered", "reduced", "image"]
    mine, other = (answer["keep"] for answer in gang.run(source, 2, record=False, keep=names))
    assert mine["sent"] == other["sent"] == [[0, 1], [2, 3]]
    assert mine["summed"] == other["summed"] == [[10, 12], [14, 16]]
    assert (mine["scattered"], other["scattered"]) == ([[0, 1], [2, 3]], [[4, 5], [6, 7]])
    assert (mine["reduced"], other["reduced"]) == ([[10, 12], [14, 16]], [[18, 20], [22, 24]])
    assert mine["image"] == other["image"] == [2 * n for n in range(16)]


# gloo: [12, 14] on rank 1 for [14, 16], when rank 0 writes into the piece that is to be added up next
def test_a_reduce_scatter_into_a_piece_that_is_not_read_yet_is_refused(gang):
    source = "x = torch.arange(4.) + 10 * rank\npieces = list(x.chunk(2))\ndist.reduce_scatter(pieces[{0}], pieces)"
    source += "\nmine = pieces[{0}]"
    first, _ = gang.run(source.format("1 - rank"), 2, record=False, stuck=True)
    assert first["error"].startswith("ValueError: reduce_scatter cannot write into a piece of its input ")
    for read in ("rank", "0"):
        answers = gang.run(source.format(read), 2, record=False, keep=["mine"])
        assert [answer["keep"]["mine"] for answer in answers] == [[10, 12], [14, 16]]


# gloo: rank 1 gets [1, 3] in some runs, for [2, 3]
def test_a_scatter_into_the_piece_of_another_rank_is_refused(gang):
    source = "x = torch.arange(4.)\ndist.scatter(x[{}], list(x.chunk(2)) if rank == 0 else None)"
    first, _ = gang.run(source.format("1:3"), 2, record=False, stuck=True)
    assert first["error"].startswith("ValueError: scatter cannot write into a piece of its input ")
    own = gang.run(source.format(":2"), 2, record=False, keep=["x"])
    assert [answer["keep"]["x"] for answer in own] == [[0, 1, 2, 3], [2, 3, 2, 3]]


@pytest.mark.parametrize(
    "call, both", [("scatter(x, [x, x] if rank == 0 else None)", [0, 1]), ("reduce_scatter(x, [x, x])", [10, 12])]
)
def test_a_tensor_that_is_every_piece_and_the_output_passes(gang, call, both):
    answers = gang.run(f"x = torch.arange(2.) + 10 * rank\ndist.{call}", 2, record=False, keep=["x"])
    assert [answer["keep"]["x"] for answer in answers] == [both, both]


def test_two_halves_of_one_tensor_share_no_memory(gang):
    source = "x = torch.arange(8.) + 10 * rank\ndist.all_to_all_single(x[4:], x[:4])"
    answers = gang.run(source, 2, record=False, keep=["x"])
    assert [answer["keep"]["x"][4:] for answer in answers] == [[0, 1, 10, 11], [2, 3, 12, 13]]


@pytest.mark.parametrize("call", ["all_to_all_single(x, x)", "all_reduce(x[:, 0])", "broadcast(x[:, 0], 0)"])
def test_a_rank_alone_may_do_what_would_be_nonsense_with_others(gang, call):
    (answer,) = gang.run(f"x = torch.arange(4.).view(2, 2)\ndist.{call}", 1, record=False, keep=["x"])
    assert (answer["error"], answer["keep"]["x"]) == ("", [[0, 1], [2, 3]])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_collective_that_does_not_fit_is_refused(gang, fault):
    source, mine, others = FAULTS[fault]
    answers = gang.run("x = torch.arange(4.) + 10 * rank\n" + source, 4, record=False, keep=["x"])
    said = [answer["error"] for answer in answers if answer["error"].startswith("MismatchError: ")]
    assert said
    for sentence in said:
        assert mine in sentence and others in sentence and sentence.count("line ") == 2 and "rank 2" in sentence


# gloo: a send of 32 bytes into 16 aborts the receiver's process; of 16 into 32 it fills half and says nothing
@pytest.mark.parametrize("sent, received", [(8, 4), (4, 8)])
def test_a_message_of_another_size_is_refused(gang, sent, received):
    source = f"""
if rank == 0:
    dist.send(torch.ones({sent}), 1)
else:
    dist.recv(torch.zeros({received}), 0)
"""
    answers = gang.run(source, 2, record=False)
    said = [answer["error"] for answer in answers if "MismatchError" in answer["error"]]
    assert said
    for sentence in said:
        assert f"rank 0 calls send #1 (line 3; count {sent * 4})" in sentence
        assert f"rank 1 calls recv #1 (line 5; count {received * 4})" in sentence


def test_a_message_of_another_type_is_refused(gang):
    source = "dist.send(torch.ones(4), 1) if rank == 0 else dist.recv(torch.zeros(4, dtype=torch.int32), 0)"
    answers = gang.run(source, 2, record=False)
    assert any("float32" in answer["error"] and "int32" in answer["error"] for answer in answers)


def test_right_programs_are_never_refused(gang):
    """Rounds with ranks out of step, sub-groups, tags, receives from any source, uneven all_to_all, objects."""
    source = """
import random
random.seed(rank)
group = dist.new_group([0, 2, 3])
for n in range(60):
    x = torch.ones(random.Random(n).randint(1, 50)) * rank
    dist.all_reduce(x)
    if rank in (0, 2, 3):
        dist.broadcast(x, 2, group=group)
    a = dist.isend(torch.ones(n % 7 + 1), (rank + 1) % 4, tag=1)
    b = dist.isend(torch.ones(n % 3 + 1), (rank + 1) % 4, tag=2)
    dist.recv(torch.zeros(n % 3 + 1), (rank - 1) % 4, tag=2)
    dist.recv(torch.zeros(n % 7 + 1), (rank - 1) % 4, tag=1)
    a.wait(), b.wait()
    if rank == 0:
        for _ in range(3):
            dist.recv(torch.zeros(5), tag=3)
    else:
        dist.send(torch.zeros(5), 0, tag=3)
    split = [1, 2, 3, 4]
    dist.all_to_all_single(torch.zeros(4 * split[rank]), torch.zeros(10), [split[rank]] * 4, split)
    dist.gather_object(n, [None] * 4 if rank == 0 else None)
"""
    answers = gang.run(source, 4, record=False)
    assert [answer["error"] for answer in answers] == [""] * 4


def test_groups_that_ranks_make_in_another_order_are_refused(gang):
    """torch would connect ranks 0, 2 and 3 under the name that rank 1 gives to another group."""
    source = """
a, b = [0, 1], [0, 1, 2, 3]
for members in (a, b) if rank == 1 else (b, a):
    dist.new_group(members)
"""
    answers = gang.run(source, 4, record=False)
    said = [answer["error"] for answer in answers if answer["error"].startswith("MismatchError: ")]
    assert said
    for sentence in said:
        assert "rank 1 calls new_group([0,1]) (line 4)" in sentence and "new_group([0,1,2,3]) (line 4)" in sentence


@pytest.mark.skipif(TORCH >= (2, 14), reason="torch hangs in the group that follows one that only some ranks made")
def test_groups_made_in_one_order_are_never_refused(gang):
    """By pairs, by some ranks alone, destroyed and made again, of the same members, as a mesh, in a new world."""
    source = """
from torch.distributed.device_mesh import init_device_mesh
x = torch.ones(4)
for _ in range(3):
    groups = [dist.new_group(members) for members in ([0, 1], [2, 3], [0, 2], [1, 3], [0, 1])]
    dist.all_reduce(x, group=groups[rank // 2])
    dist.destroy_process_group(groups[rank // 2])
    if rank < 2:
        local = dist.new_group([0, 1], use_local_synchronization=True, group_desc="two")
        dist.all_reduce(x, group=local)
        dist.destroy_process_group(local)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
dist.all_reduce(x, group=mesh.get_group("tp"))
subgroup, _ = dist.new_subgroups(2)
dist.barrier(subgroup)
dist.barrier()
"""
    answers = gang.run(source, 4, record=False)
    assert [answer["error"] for answer in answers] == [""] * 4
