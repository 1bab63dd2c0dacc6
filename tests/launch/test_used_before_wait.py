"""What a rank does to the tensor of a call before the wait for it is over: told from the op log, not from luck."""

import pytest

from launch.replay.recording import Recording

CELL = """
x = torch.arange(4.0) + 10 * rank
work = dist.all_reduce(x, async_op=True)
{meanwhile}
work.wait()
{afterwards}
"""
FUNCTIONAL = """
import torch.distributed._functional_collectives as fc
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
x = torch.arange(8.0)
y = {use}
"""
RIGHT = [
    "fc.wait_tensor(fc.all_reduce(x, 'sum', dist.group.WORLD)).clone()",
    "fc.all_reduce(x, 'sum', dist.group.WORLD) + 1",
    "distribute_tensor(x, init_device_mesh('cpu', (2,)), [Shard(0)]).full_tensor() + 1",
]
USES = {"y = x + 1": False, "x /= 4": True, "y = x.sum().item()": False, "x[1] = 7.0": True, "y = x[2:] * 2": False}
NONE = [
    "y = torch.ones(4) * rank",  # its own work
    "y = torch.zeros_like(x), torch.empty_like(x), torch.randn_like(x), x.new_zeros(3)",  # x is but the pattern
    "y = x[1:], x.view(2, 2), x.chunk(2), x.detach(), x.reshape(-1)",  # other names for the same memory
    "y = x.shape, x.numel(), work.is_completed()",
]


def hurried(gang, meanwhile: str, afterwards: str = "") -> list:
    answers = gang.run(CELL.format(meanwhile=meanwhile, afterwards=afterwards), 2)
    assert not any(answer["error"] for answer in answers)
    recording = Recording([answer["recording"] for answer in answers])
    assert recording.title.endswith(", used before wait" if recording.used_before_wait else "(built-in)")
    return recording.used_before_wait


@pytest.mark.parametrize("use", USES)
def test_who_uses_a_tensor_before_the_wait_is_told(gang, use):
    assert hurried(gang, use) == [(rank, "all_reduce", 3, 5, USES[use]) for rank in range(2)]


@pytest.mark.parametrize("meanwhile", NONE)
def test_who_leaves_it_alone_is_not(gang, meanwhile):
    assert hurried(gang, meanwhile) == []


ROWS = """
x = torch.zeros(4, 2)
if rank == 0:
    dist.send(torch.ones(2), 1)
else:
    work = dist.irecv(x[1], 0)
    {use}
    work.wait()
"""


@pytest.mark.parametrize("use, told", {"x[::2] += 1": [], "x[:, 0] += 1": [(1, "recv", 6, 8, True)]}.items())
def test_rows_beside_the_one_that_comes_are_free(gang, use, told):
    answers = gang.run(ROWS.format(use=use), 2)
    assert Recording([answer["recording"] for answer in answers]).used_before_wait == told


def test_scattered_memory_that_the_call_does_not_touch_is_free(gang):
    source = """
x = torch.zeros(600, 2, 64) + rank
if rank == 0:
    work = dist.isend(x[300, 0], 1)
    x[:, 1] += 1
    work.wait()
else:
    dist.recv(x[300, 0], 0)
"""
    recording = Recording([answer["recording"] for answer in gang.run(source, 2)])
    assert "changed before wait" not in recording.title


@pytest.mark.parametrize("use", USES)
def test_after_the_wait_it_may_be_used(gang, use):
    assert hurried(gang, "pass", afterwards=use) == []


@pytest.mark.parametrize("use", RIGHT)
def test_what_waits_for_itself_is_not_accused(gang, use):
    answers = gang.run(FUNCTIONAL.format(use=use), 2)
    assert not any(answer["error"] for answer in answers)
    assert Recording([answer["recording"] for answer in answers]).used_before_wait == []
