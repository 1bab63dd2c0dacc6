"""The checkpoint is all that a later attempt has: the weights, the momentum, and the step to go on with.

Two mistakes: to save over the old file, which leaves half a file if the process dies meanwhile; and to save the weights
alone, so that the momentum begins anew.
Another way: one file for each checkpoint, `f"{path}.{number}"`, and the last whole one is loaded.
"""

import os

import torch
import torch.distributed as dist


def survive(path, w, m, step):
    """Nine steps, also if this function is killed and called again: it goes on from the last checkpoint."""
    begin = 0
    if os.path.exists(path):
        saved = torch.load(path)
        begin = saved["step"]
        w.copy_(saved["w"])
        m.copy_(saved["m"])
    for number in range(begin, 9):
        step(number, w, m)
        if dist.get_rank() == 0 and number % 3 == 2:
            torch.save({"w": w, "m": m, "step": number + 1}, path + ".new")
            os.replace(path + ".new", path)
