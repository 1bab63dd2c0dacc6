"""Programs of the shapes that public tutorials have run in a `%%ranks` cell, are recorded and can be played.

Written here in our own words after PyTorch's tutorials on distributed applications, DDP, FSDP, tensor parallel, both
together, pipelines, torch.compile and mixtures of experts: each sets up its own group, as a script started by torchrun
does.
"""

from typing import NamedTuple

import pytest

from launch.shared.processes import free_port
from tests.launch.forked import TORCH

BEGIN = """
import os
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

def setup(rank, size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("gloo", rank=rank, world_size=size)

class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""


class Program(NamedTuple):
    """`messages` are those that carry numbers; `steps_add_up`: no sum goes where one is already, which `check` would
    take for a mistake."""

    code: str
    built_ins: set[str]
    ranks: int = 2
    messages: int = 0
    steps_add_up: bool = True


PROGRAMS = {
    "a message": Program(
        """
def run(rank, size):
    box = torch.zeros(1)
    if rank == 0:
        box += 7
        dist.send(tensor=box, dst=1)
    elif rank == 1:
        dist.recv(tensor=box, src=0)
    print(f"rank {rank} of {size} holds {box[0]}")
run(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
""",
        set(),
        messages=1,
    ),
    "a group of its own": Program(
        """
def run(rank, size):
    pair = dist.new_group([0, 1])
    mine = torch.ones(1)
    if rank < 2:
        dist.all_reduce(mine, op=dist.ReduceOp.SUM, group=pair)
run(rank, world_size)
""",
        {"all_reduce"},
    ),
    "gradients averaged by hand": Program(
        """
torch.manual_seed(0)
model = Toy()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    optimizer.zero_grad()
    model(torch.randn(5, 6)).pow(2).mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad.data)
        parameter.grad.data /= float(dist.get_world_size())
    optimizer.step()
""",
        {"all_reduce"},
    ),
    "DDP with a checkpoint": Program(
        """
import tempfile
model = DistributedDataParallel(Toy())
path = os.path.join(tempfile.gettempdir(), f"toy.{os.getppid()}.checkpoint")
if rank == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
model.load_state_dict(torch.load(path, weights_only=True))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
nn.MSELoss()(model(torch.randn(9, 6)), torch.randn(9, 4)).backward()
optimizer.step()
if rank == 0:
    os.remove(path)
""",
        {"all_gather", "broadcast", "barrier", "all_reduce"},
    ),
    "FSDP2 layer by layer": Program(
        """
from torch.distributed.fsdp import fully_shard
model = Toy()
for layer in model.children():
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(3):
    model(torch.randn(3, 6)).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    optimizer.zero_grad()
""",
        {"all_gather_single", "reduce_scatter_single", "all_reduce"},
    ),
    "tensor parallel": Program(
        """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
model = parallelize_module(Toy(), mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)
for step in range(2):
    torch.manual_seed(step)
    model(torch.rand(5, 6)).sum().backward()
    optimizer.step()
""",
        {"scatter", "broadcast", "all_reduce"},
    ),
}

PROGRAMS |= {
    "FSDP of the first kind": Program(
        """
import functools
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
policy = functools.partial(size_based_auto_wrap_policy, min_num_params=30)
model = FullyShardedDataParallel(Toy(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
optimizer = torch.optim.Adadelta(model.parameters())
seen = torch.zeros(2)
for _ in range(2):
    loss = model(torch.randn(3, 6)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    seen += torch.tensor([loss.item(), 3.0])
dist.all_reduce(seen, op=dist.ReduceOp.SUM)
""",
        {"all_gather", "reduce_scatter_single", "all_reduce"},
    ),
    "FSDP over tensor parallel": Program(
        """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
model = parallelize_module(Toy(), mesh["tp"], {"first": ColwiseParallel(), "second": RowwiseParallel()})
on_cpu = {"device_mesh": mesh["dp"], "device_id": torch.device("cpu")}
model = FullyShardedDataParallel(model, use_orig_params=True, **on_cpu)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, foreach=True)
torch.manual_seed(mesh["dp"].get_local_rank())
model(torch.randn(5, 6)).sum().backward()
optimizer.step()
""",
        {"all_gather", "reduce_scatter_single", "scatter", "broadcast", "all_reduce"},
        ranks=4,
    ),
    "DDP compiled": Program(
        """
model = DistributedDataParallel(Toy())
step = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    step(torch.randn(5, 6)).pow(2).mean().backward()
    optimizer.step()
""",
        {"all_gather", "broadcast", "all_reduce"},
        steps_add_up=False,
    ),
    "functional collectives compiled": Program(
        """
import torch.distributed._functional_collectives as functional
@torch.compile(backend="aot_eager", fullgraph=True)
def spread(x):
    total = functional.all_reduce(2 * x, "sum", dist.group.WORLD)
    return functional.all_gather_tensor(total, 0, dist.group.WORLD).sum()
assert spread(torch.ones(4) * (rank + 1)).item() == 4 * 2 * 6
""",
        {"all_gather_single", "all_reduce"},
    ),
    "a compiled function that waits": Program(
        """
@torch.compile(backend="aot_eager")
def overlapped(x):
    work = dist.all_reduce(x, async_op=True)
    y = 3 * torch.ones(4)
    work.wait()
    return x + y
assert overlapped(torch.ones(4) * (rank + 1)).tolist() == [6, 6, 6, 6]
""",
        {"all_reduce"},
    ),
    "a mesh of two dimensions": Program(
        """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
whole = torch.arange(16.0).view(4, 4)
tiles = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
assert tiles.redistribute(mesh, [Replicate(), Shard(0)]).to_local().shape == (2, 4)
assert tiles.full_tensor().equal(whole)
mine = torch.full((3,), float(rank))
dist.all_reduce(mine, group=mesh.get_group("columns"))
assert mine[0] == 1 + 4 * (rank // 2)
""",
        {"scatter", "all_gather_single", "all_reduce"},
        ranks=4,
    ),
    "a pipeline": Program(
        """
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
torch.manual_seed(0)
stage = PipelineStage(nn.Linear(6, 6), rank, world_size, torch.device("cpu"))
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
x, target, losses = torch.randn(8, 6), torch.randn(8, 6), []
if rank == 0:
    schedule.step(x)
elif rank == world_size - 1:
    schedule.step(target=target, losses=losses)
    assert len(losses) == 4
else:
    schedule.step()
""",
        {"all_reduce"} if TORCH >= (2, 15) else set(),  # first they agree on who knows the shapes
        ranks=3,
        messages=4 * 2 * 2,  # of each microbatch over both borders, there and back
        steps_add_up=False,
    ),
    "experts": Program(
        """
tokens = torch.randn(5, 4)
counts = torch.tensor([[1, 2, 2], [3, 1, 1], [1, 1, 3]][rank])  # tokens for the expert of each rank
coming = torch.empty_like(counts)
dist.all_to_all_single(coming, counts)
inbox = tokens.new_empty(int(coming.sum()), 4)
dist.all_to_all_single(inbox, tokens, coming.tolist(), counts.tolist())
back = torch.empty_like(tokens)
dist.all_to_all_single(back, 2 * inbox, counts.tolist(), coming.tolist())
assert back.equal(2 * tokens)
""",
        {"all_to_all_single"},
        ranks=3,
    ),
}
PLAYED = """
from widgets import Player, Timeline
run = launch.recording()
player, timeline = Player(run), Timeline(run)
run.save("{folder}/run.json"); player.save_html("{folder}/run.html")
again = collectives.load("{folder}/run.json")
assert again.counts() == run.counts() and len(again.steps) == len(run.steps) and again.title == run.title
assert len(player.schedule.buffers) <= 12 and not run.unmatched and not run.dropped
assert not {steps_add_up} or run.check() is None
messages = sum(event.op == "send" and event.dtype == "float32" for event in run.events)
answer = (sorted({{op for op, _, _ in run.built_ins}}), len(run.events), messages, player.summary())
"""


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_records_and_plays(notebook, tmp_path, name):
    program = PROGRAMS[name]
    own = f"setup(rank, world_size, '{free_port()}')\n"
    cell = BEGIN + own + program.code + "dist.destroy_process_group()\n"
    notebook.run("%ranks stop")
    ran = notebook.run(f"%%ranks {program.ranks} --bare --record\n{cell}")
    assert not ran.error, ran.traceback
    assert "launch/rank" not in ran.stderr, "torch.compile has looked into the recorder"
    played = notebook.run("import collectives\n" + PLAYED.format(folder=tmp_path, steps_add_up=program.steps_add_up))
    assert not played.error, played.traceback
    ops, events, messages, summary = notebook.value("answer")
    assert set(ops) == program.built_ins and events > 0 and summary.startswith("your run")
    assert messages == program.messages


def test_torchruns_environment_is_there(notebook):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    ran = notebook.run(f"%%ranks 2\nimport os\n[os.environ[name] for name in {names}]")
    assert "rank 1: ['1', '1', '2', '2']" in ran.stdout + ran.result + str(ran.displays)


def test_a_second_process_group_is_told_the_way(notebook):
    notebook.run("%ranks stop")
    ran = notebook.run("%%ranks 2\n" + BEGIN + "setup(rank, world_size, '1')")
    said = "every rank has a process group already: leave out this call, or have none made with %%ranks --bare"
    assert ran.traceback.splitlines()[-1] == f"ranks 0-1: {said}"


def test_a_group_may_be_made_destroyed_and_made_again(notebook, tmp_path):
    """The tap must not keep the first group alive: its store would keep the port."""
    notebook.run("%ranks stop")
    # Nobody may ask at the port while rank 0's last store still answers there: that is torch's race, not ours.
    again = (
        f"import pathlib, time\ngone = pathlib.Path('{tmp_path}/gone')\n"
        "for turn in range(3):\n"
        f"    setup(rank, world_size, '{free_port()}')\n    dist.all_reduce(torch.ones(1))\n"
        "    dist.barrier()\n    dist.destroy_process_group()\n"
        "    if rank == 0: gone.with_suffix(f'.{turn}').touch()\n"
        "    while not gone.with_suffix(f'.{turn}').exists(): time.sleep(0.01)\n"
    )
    ran = notebook.run("%%ranks 3 --bare --record\n" + BEGIN + again)
    assert not ran.error and notebook.value("len(launch.recording().built_ins)") == 6


def test_a_long_training_is_read_in_seconds_and_its_beginning_plays(notebook):
    notebook.run("%ranks stop")
    code = "g = [torch.ones(n) * rank for n in range(1, 9)]\n"
    code += "for _ in range(60):\n    for x in g:\n        dist.all_reduce(x.clone())\n"
    assert not notebook.run(f"%%ranks 2 --record\n{code}").error
    told = notebook.value(
        "(lambda p: (p.summary(), len(p.schedule.buffers)))(__import__('widgets').Player(launch.recording()))"
    )
    assert told[0].endswith("of 480, 2 ranks, 12 steps") and told[1] == 12
    assert notebook.value("launch.recording().part(100, 101).title").endswith("steps 100 to 101 of 480")
