"""What a rank holds, on real ranks: programs whose tensors can be counted by hand."""

import pytest

from course.held import UPDATE, _last_step
from tests.launch.forked import Gang

N = 4 * 24  # bytes of all weights below

ADAM = """
from course.held import held
def train(cut):
    w = torch.ones(24)
    mine = w.chunk(world_size)[rank].clone() if cut else w
    adam = torch.optim.Adam([mine])
    for step in range(2):
        grad = torch.ones(24)
        if cut:
            mine.grad = torch.empty_like(mine)
            dist.reduce_scatter_single(mine.grad, grad)
            del grad
            adam.step()
            dist.all_gather_single(w, mine)
        else:
            mine.grad = grad
            dist.all_reduce(grad)
            adam.step()
kept = held(lambda: train(False)), held(lambda: train(True))
"""

GATHERED = """
from course.held import held
model = torch.nn.Linear(24, 1, bias=False)
adam = torch.optim.Adam(model.parameters())
model(torch.ones(24)).sum().backward()
adam.step()
adam.zero_grad()
def step():
    for keep in False, True, True:
        whole = torch.empty(24 * world_size)
        dist.all_gather_single(whole, model.weight.detach().flatten())
        (held_on if keep else []).append(whole.view(world_size, 24))  # a view keeps the memory
        del whole
    model(torch.ones(24)).sum().backward()
    dist.all_reduce(model.weight.grad)
    held_on.pop()
    adam.step()
held_on = []
kept = held(step, adam)
other = held(lambda: dist.all_reduce(torch.ones(2)))
"""


@pytest.fixture(scope="module")
def gang():
    with Gang() as gang:
        yield gang


def kept(gang, source, ranks, name="kept"):
    found = gang.run(source, ranks, record=False, keep=(name,))
    assert [each["error"] for each in found] == [""] * ranks
    assert all(each["keep"] == found[0]["keep"] for each in found)
    return found[0]["keep"][name]


def test_whole_and_cut(gang):
    """What is cut is held beside the whole: the shard of the weights, and the sum's shard while all of it is there."""
    whole, cut = kept(gang, ADAM, 4)
    assert whole == [["all_reduce", N, N, 2 * N], ["update", N, N, 2 * N]]
    more = N + N // 4
    assert cut == [
        ["reduce_scatter", more, more, N // 2],
        ["update", more, N // 4, N // 2],
        ["all_gather", more, N // 4, N // 2],
    ]


def test_what_is_gathered_counts_until_it_is_freed(gang):
    moments = kept(gang, GATHERED, 2)
    gathers = [["all_gather", N + 2 * N * many, 0, 2 * N] for many in (1, 1, 2)]
    assert moments == [*gathers, ["all_reduce", 5 * N, N, 2 * N], ["update", 3 * N, N, 2 * N]]


def test_only_what_this_run_uses_counts(gang):
    assert kept(gang, GATHERED, 2, "other") == [["all_reduce", 0, 8, 0]]


def test_the_last_step_begins_after_the_gathers_of_the_one_before():
    names = "R U G G R R U G G".replace("G", "all_gather").replace("U", UPDATE).split()
    assert [name for name, *_ in _last_step([(name, 1, 2, 3) for name in names])] == names[4:]
    assert len(_last_step([("all_gather", 1, 2, 3), (UPDATE, 1, 2, 3)])) == 2
