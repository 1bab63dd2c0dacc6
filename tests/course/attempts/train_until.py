"""Attempts at train_until."""

LOOP = """
def train_until(epoch, goal):
    epochs = 0
    while True:
        loss = torch.tensor(epoch())
        epochs += 1
        {decide}
            return epochs
"""


def decided(*lines):
    return LOOP.format(decide="\n        ".join(lines))


RIGHT = {
    "the mean": decided("dist.all_reduce(loss)", "if loss / world_size < goal:"),
    "a share of each": """
def train_until(epoch, goal):
    epochs, mean = 0, torch.tensor(float("inf"))
    while mean >= goal:
        epochs, mean = epochs + 1, torch.tensor([epoch() / world_size], dtype=torch.float64)
        dist.all_reduce(mean)
    return epochs
""",
    "counting in numpy": """
import numpy as np
def train_until(epoch, goal):
    for epochs in np.arange(1, 1000):
        total = torch.tensor([epoch()])
        dist.all_reduce(total)
        if total.item() < goal * world_size:
            return epochs
""",
    "counting": """
def train_until(epoch, goal):
    for epochs in range(1, 1000):
        total = torch.tensor([epoch()])
        dist.all_reduce(total)
        if total.item() < goal * dist.get_world_size():
            return epochs
""",
}

WRONG = {
    "as many epochs as there are ranks and two": (
        """
def train_until(epoch, goal):
    for i in range(world_size + 2):
        loss = torch.tensor(epoch())
        dist.all_reduce(loss)
    return world_size + 2
""",
        "the number that it returns is ",
    ),
    "each by its own loss": (decided("if loss < goal:"), "wait"),
    "the sum": (decided("dist.all_reduce(loss)", "if loss < goal:"), "until the sum of the losses was"),
    "the largest": (decided("dist.all_reduce(loss, dist.ReduceOp.MAX)", "if loss < goal:"), "the largest loss"),
    "the smallest": (decided("dist.all_reduce(loss, dist.ReduceOp.MIN)", "if loss < goal:"), "the smallest loss"),
    "until it is not above": (
        decided("dist.all_reduce(loss)", "if loss / world_size <= goal:"),
        "no  on 2 ranks, float64: rank 0: the number that it returns is 8 and should be 9: it stopped one epoch",
    ),
    "counted from 0": (
        decided("dist.all_reduce(loss)", "if loss / world_size < goal:").replace("return epochs", "return epochs - 1"),
        "it ran the right number of epochs and returns one fewer",
    ),
    "by the mean of the epoch before": (
        """
def train_until(epoch, goal):
    epochs, mean = 0, goal
    while mean >= goal:
        before = mean if epochs else None
        loss = torch.tensor(epoch())
        dist.all_reduce(loss)
        epochs, mean = epochs + 1, goal if before is None else last
        last = loss / world_size
    return epochs
""",
        "it ran one epoch too many",
    ),
    "rank 0 decides by the mean, and alone": (
        decided("dist.all_reduce(loss)", "if rank == 0 and loss / world_size < goal:"),
        "wait",
    ),
    "returns nothing": (
        decided("dist.all_reduce(loss)", "if loss / world_size < goal:").replace("return epochs", "return"),
        "it returned NoneType",
    ),
    "returns the loss": (
        decided("dist.all_reduce(loss)", "if loss / world_size < goal:").replace("return epochs", "return loss"),
        "it returned Tensor",
    ),
}
