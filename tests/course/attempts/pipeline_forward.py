"""Attempts at pipeline_forward."""

LOOP = """
def pipeline_forward(x, stage):
    out, sending = x.clone(), []
    for row in out:
        if rank > 0:
            dist.recv(row, rank - 1)
{0}
    for handle in sending:
        handle.wait()
    return out
"""

RIGHT = {
    "by the cases": """
def pipeline_forward(x, stage):
    handles, out = [], torch.empty_like(x)
    for i in range(len(x)):
        if rank == 0:
            y = stage(x[i])
        else:
            arriving = torch.empty_like(x[i])
            dist.recv(arriving, src=rank - 1)
            y = stage(arriving)
        if rank == world_size - 1:
            out[i] = y
        else:
            handles.append(dist.isend(y, dst=rank + 1))
    for handle in handles:
        handle.wait()
    if rank == world_size - 1:
        return out
""",
    "all receives at the start": """
def pipeline_forward(x, stage):
    rows = x.clone()
    arriving = [dist.irecv(row, rank - 1) for row in rows] if rank else []
    handles = []
    done = []
    for i, row in enumerate(rows):
        if rank:
            arriving[i].wait()
        done.append(stage(row))
        if rank + 1 < world_size:
            handles.append(dist.isend(done[-1], rank + 1))
    [handle.wait() for handle in handles]
    return torch.stack(done)
""",
    "into a copy": """
def pipeline_forward(x, stage):
    out = x.clone()
    sending = []
    for i in range(x.shape[0]):
        if rank > 0:
            dist.irecv(out[i], rank - 1).wait()
        out[i] = stage(out[i])
        if rank < world_size - 1:
            sending.append(dist.isend(out[i], rank + 1))
    for each in sending:
        each.wait()
    return out
""",
}

WRONG = {
    "one after the other": (
        """
def pipeline_forward(x, stage):
    out = x.clone()
    for i in range(len(x)):
        if rank > 0:
            dist.recv(out[i], rank - 1)
        out[i] = stage(out[i])
        if rank < world_size - 1:
            dist.send(out[i], rank + 1)
    return out
""",
        "send each row on as soon as it is through your stage, with isend",
    ),
    "the whole batch at once": (
        """
def pipeline_forward(x, stage):
    out = x.clone()
    if rank > 0:
        dist.recv(out, rank - 1)
    out = stage(out)
    if rank < world_size - 1:
        dist.send(out, rank + 1)
    return out
""",
        "stage takes one micro-batch, which is one row of x",
    ),
    "all rows, then all sends": (
        """
def pipeline_forward(x, stage):
    rows = list(x.clone())
    if rank > 0:
        for row in rows:
            dist.recv(row, rank - 1)
    rows = [stage(row) for row in rows]
    if rank < world_size - 1:
        for row in rows:
            dist.send(row, rank + 1)
    return torch.stack(rows)
""",
        "send each row on as soon as it is through your stage",
    ),
    "the last one sends, too": (
        LOOP.format("        row.copy_(stage(row))\n        sending.append(dist.isend(row, (rank + 1) % world_size))"),
        "rank",
    ),
    "never waited for": (
        """
def pipeline_forward(x, stage):
    out = x.clone()
    for row in out:
        if rank > 0:
            dist.recv(row, rank - 1)
        row.copy_(stage(row))
        if rank < world_size - 1:
            dist.isend(row, rank + 1)
    return out
""",
        "wait",
    ),
    "the stage is forgotten on rank 0": (
        LOOP.format(
            "            row.copy_(stage(row))\n"
            "        if rank < world_size - 1: sending.append(dist.isend(row, rank + 1))"
        ),
        "these are the rows without rank 0's stage: send on, or keep, what stage(row) returns",
    ),
    "what the last stage returns is not kept": (
        LOOP.format(
            "        done = stage(row)\n        if rank < world_size - 1: sending.append(dist.isend(done, rank + 1))"
        ),
        "these are the rows without rank 3's stage",
    ),
    "a list of one buffer": (
        """
def pipeline_forward(x, stage):
    done, sending, row = [], [], x[0].clone()
    for micro_batch in x:
        if rank == 0:
            row = micro_batch
        else:
            dist.recv(row, rank - 1)
        out = stage(row)
        if rank < world_size - 1:
            sending.append(dist.isend(out, rank + 1))
        else:
            row.copy_(out)
        done.append(row)
    for handle in sending:
        handle.wait()
    return torch.stack(done)
""",
        "every row is the last one",
    ),
    "two rows at once": (
        """
def pipeline_forward(x, stage):
    out, sending = x.clone(), []
    for i in range(0, len(x), 2):
        rows = out[i:i + 2]
        if rank > 0:
            dist.recv(rows, rank - 1)
        for row in rows:
            row.copy_(stage(row))
        if rank < world_size - 1:
            sending.append(dist.isend(rows, rank + 1))
    for handle in sending:
        handle.wait()
    return out
""",
        "right result, but rank 0 sends 6 numbers in one message (line 10), where 3 are asked",
    ),
    "one buffer for all rows": (
        """
def pipeline_forward(x, stage):
    out, sending, row = torch.empty_like(x), [], torch.empty_like(x[0])
    for i in range(len(x)):
        row.copy_(x[i])
        if rank > 0:
            dist.recv(row, rank - 1)
        row.copy_(stage(row))
        out[i] = row
        if rank < world_size - 1:
            sending.append(dist.isend(row, rank + 1))
    for handle in sending:
        handle.wait()
    return out
""",
        "rank 0 wrote to the tensor of its send (line 10) before that was over",
    ),
}
