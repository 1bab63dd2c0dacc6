"""Programs of the shapes that public tutorials have run in a `%%ranks` cell, are recorded and can be played.

Written here in our own words after PyTorch's tutorials on distributed applications, DDP, FSDP2 and tensor parallel:
each sets up its own group from the environment, as a script started by torchrun does.
"""

import pytest

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

PROGRAMS = {  # name: (code, what its built-ins are)
    "a message": (
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
    ),
    "a group of its own": (
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
    "gradients averaged by hand": (
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
    "DDP with a checkpoint": (
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
    "FSDP2 layer by layer": (
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
    "tensor parallel": (
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
PLAYED = """
from widgets import Player, Timeline
run = launch.recording()
player, timeline = Player(run), Timeline(run)
run.save("{folder}/run.json"); run.save_trace("{folder}/run.trace.json"); player.save_html("{folder}/run.html")
again = collectives.load("{folder}/run.json")
assert again.counts() == run.counts() and len(again.steps) == len(run.steps) and again.title == run.title
assert run.check() is None and len(player.schedule.buffers) <= 12 and not run.lonely and not run.dropped
answer = (sorted({{op for op, _, _ in run.built_ins}}), len(run.events), run.counts().messages, player.summary())
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("number, name", list(enumerate(PROGRAMS)), ids=lambda part: str(part))
def test_it_runs_records_and_plays(notebook, tmp_path, number, name):
    code, built_ins = PROGRAMS[name]
    own = f"setup(rank, world_size, '{23456 + number}')\n"
    cell = BEGIN + own + code + "dist.destroy_process_group()\n"
    notebook.run("%ranks stop")
    ran = notebook.run(f"%%ranks 2 --bare --record\n{cell}")
    assert not ran.error, ran.traceback
    played = notebook.run("import collectives\n" + PLAYED.format(folder=tmp_path))
    assert not played.error, played.traceback
    ops, events, messages, summary = notebook.value("answer")
    assert set(ops) == built_ins and events > 0 and summary.startswith("your run")
    assert messages == (1 if name == "a message" else 0)


def test_torchruns_environment_is_there(notebook):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    ran = notebook.run(f"%%ranks 2\nimport os\n[os.environ[name] for name in {names}]")
    assert "rank 1: ['1', '1', '2', '2']" in ran.stdout + ran.result + str(ran.displays)


def test_a_second_process_group_is_told_the_way(notebook):
    notebook.run("%ranks stop")
    ran = notebook.run("%%ranks 2\n" + BEGIN + "setup(rank, world_size, '23470')")
    assert ran.evalue.endswith("The ranks have a process group already; %%ranks --bare leaves it to the cell.")


def test_a_group_may_be_made_destroyed_and_made_again(notebook):
    """The tap must not keep the first group alive: its store would keep the port."""
    notebook.run("%ranks stop")
    again = "for _ in range(3):\n    setup(rank, world_size, '23471')\n    dist.all_reduce(torch.ones(1))\n"
    again += "    dist.barrier()\n    dist.destroy_process_group()\n"
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
