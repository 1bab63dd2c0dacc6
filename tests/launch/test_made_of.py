"""What a recording says a variable is made of gives the numbers that the variable has.

Each program leaves `x` as it was; what it does with the sum of all ranks' `x` is in other variables.
"""

import numpy as np
import pytest

from launch.replay._numbers import decoded
from launch.replay.provenance import Kind
from launch.replay.recording import Recording

ROWS = 600  # more than an op is followed through


def recorded(gang, source: str, names, ranks: int) -> tuple[Recording, list[dict]]:
    answers = gang.run(source, ranks, keep=["x", *names])
    assert [answer["error"] for answer in answers] == [""] * ranks
    return Recording([answer["recording"] for answer in answers]), answers


def told(gang, source: str, names, ranks: int = 2) -> dict[str, list]:
    """By name, what rank 0's variable is said to be made of. Of all ranks the numbers are compared."""
    recording, answers = recorded(gang, source, names, ranks)
    x = [np.ravel(answer["keep"]["x"]) for answer in answers]
    for rank, answer in enumerate(answers):
        for name in names:
            held = np.ravel(answer["keep"][name])
            made = recording.made_of(rank, name)
            assert [made[0].lo, made[-1].hi] == [0, len(held)]
            for part in (part for part in made if part.other is None):
                wanted = sum(n * x[r][at : at + part.hi - part.lo] for r, at, n in part.terms)
                assert np.array_equal(held[part.lo : part.hi], wanted), (rank, name, part)
    return {name: recording.made_of(0, name) for name in names}


TYPES = [("bfloat16", "float32"), ("bfloat16", "float64"), ("float16", "float32"), ("int32", "int64")]
TURNED = {
    "there and back": "s",
    "copies": "s.expand(2, 8).contiguous()",
    "windows": "s.unfold(0, 4, 2).contiguous()",
    "a row for each column": "s.view(2, 4).t().contiguous()",
    "a part": "s[1:5]",
    "columns beside each other": "torch.cat([s.view(2, 4), s.view(2, 4)], 1)",
    "with the rank's own": "s + x",
    "the larger one": "torch.maximum(s, s)",
}
WIDE = """
x = (torch.arange(8) + 10 * rank).to(torch.{narrow})
s = x.clone()
dist.all_reduce(s)
s = s.to(torch.{wide})
y = ({turned}).to(torch.{narrow})
"""


@pytest.mark.parametrize("how, types", zip(TURNED, 2 * TYPES, strict=True))
def test_numbers_of_a_wider_type_are_the_same_when_they_are_narrow_again(gang, how, types):
    narrow, wide = types
    made = told(gang, WIDE.format(narrow=narrow, wide=wide, turned=TURNED[how]), ["y"])["y"]
    assert not any(part.other for part in made) and len(made[0].terms) == 2


IN_VARIABLES = """
x = (torch.arange(8) + 10 * rank).to(torch.{narrow})
s = x.clone()
dist.all_reduce(s)
wide = s.to(torch.{wide})
wide += x
y = wide.to(torch.{narrow})
dist.all_reduce(y)
into = torch.empty(4, 3, dtype=torch.{wide})
into[:, 1] = wide[:4]
part = into[:, 1].to(torch.{narrow})
there_and_back = wide.expand(2, 8).contiguous().to(torch.{narrow})
"""


@pytest.mark.parametrize("narrow, wide", TYPES)
def test_so_are_those_of_variables_and_of_parts_of_them(gang, narrow, wide):
    names = ["y", "part", "there_and_back"]
    made = told(gang, IN_VARIABLES.format(narrow=narrow, wide=wide), names)
    assert all(len(part.terms) == 2 and part.other is None for name in names for part in made[name])


FUNCTIONAL = {
    "waited for by hand": ("fc.wait_tensor(fc.all_reduce(x, 'sum', dist.group.WORLD)).clone()", 1),
    "waited for by its first use": ("fc.all_reduce(x, 'sum', dist.group.WORLD) * 2", 2),
    "a DTensor made whole": ("DTensor.from_local(x, init_device_mesh('cpu', (2,)), [Partial()]).full_tensor() * 1", 1),
}


@pytest.mark.parametrize("how", FUNCTIONAL)
def test_a_functional_collective_is_followed_and_not_accused(gang, how):
    source = "import torch.distributed._functional_collectives as fc\n"
    source += "from torch.distributed.tensor import DTensor, Partial, init_device_mesh\n"
    source += f"x = torch.arange(4.0) + 10 * rank\ny = {FUNCTIONAL[how][0]}\ny = y.clone()\n"
    recording, answers = recorded(gang, source, ["y"], 2)
    times = FUNCTIONAL[how][1]
    for rank, answer in enumerate(answers):
        assert answer["keep"]["y"] == [times * (2 * i + 10) for i in range(4)]
        assert [part.terms for part in recording.made_of(rank, "y")] == [((0, 0, times), (1, 0, times))]
    assert recording.used_before_wait == []


MIXED = """
x = torch.arange({rows} * 2.0).view({rows}, 2) + 10000 * rank
s = x.clone()
dist.all_reduce(s)
beside = torch.cat([s, x], 1)
between = torch.stack([s[:, 0], x[:, 0]], 1)
into = torch.zeros({rows}, 4)
into[:, :2] = s
into[:, 2:] = x
zeroed, filled = s.clone(), s.clone()
zeroed[:, 0].zero_()
filled[:, 0].fill_(1)
turned = s.roll(1, 1)
moved = s.roll(1)
"""
NAMES = ["beside", "between", "into", "zeroed", "filled", "turned", "moved"]


def test_rows_too_many_to_follow_lose_no_rank(gang):
    """Nothing is claimed of them but that data of both ranks are in it."""
    made = told(gang, MIXED.format(rows=ROWS), NAMES)
    assert [part.terms for part in made.pop("moved")] == [((0, 1199, 1), (1, 1199, 1)), ((0, 0, 1), (1, 0, 1))]
    for name, parts in made.items():
        assert parts[-2 if name in ("zeroed", "filled") else -1].other is Kind.COMPUTED, name  # the last is s's own


def test_fewer_rows_are_followed(gang):
    made = told(gang, MIXED.format(rows=4), NAMES)
    assert all(part.other in (None, Kind.ZERO, Kind.COMPUTED) for parts in made.values() for part in parts)
    assert sum(part.other is Kind.COMPUTED for parts in made.values() for part in parts) == 4  # ones are no data


@pytest.mark.filterwarnings("error")
def test_what_memory_held_before_is_read_without_a_warning():
    """0x7fa00000, the half of an address, is a nan that numpy warns of."""
    assert np.isnan(decoded(b"\0\0\xa0\x7f" * 3, "float32")).all()
