"""The exercise of the interview: the size of a training run, from its model, its mesh and its chip."""

from course.exercises.exercise import Exercise, nobody

BY_THE_BOOK = """
def _trial_sized(model, tokens, gpus, tensor, chip):
    (psi, layers, hidden), (machine, flops, inside, between) = model, chip
    kept = 16 * psi / gpus + 2 * layers * hidden * tokens
    summed = 6 * layers * 2 * (tensor - 1) / tensor * (tensor * tokens) * hidden * 2
    copies = gpus / tensor
    data = 3 * (copies - 1) / copies * psi / tensor * 2
    nic = data * tensor / machine
    compute = 8 * psi * tokens / flops
    seconds = max(compute + summed / inside, data / inside, nic / between)
    sizes = [kept / 1e9, summed / 1e9, nic / 1e9]
    return torch.tensor([*sizes, seconds, 6 * psi * tokens / flops / seconds], dtype=torch.float64)
def _trial_numbers(sized):
    if isinstance(sized, (list, tuple)) and all(isinstance(each, (int, float, torch.Tensor)) for each in sized):
        return torch.tensor([float(each) for each in sized], dtype=torch.float64)
    return sized.double() if isinstance(sized, torch.Tensor) else sized
"""

RUN = ", ".join(
    [
        "1e9 * int(torch.randint(7, 400, ()))",
        "int(torch.randint(16, 130, ()))",
        "1024 * int(torch.randint(2, 16, ()))",
        "256 * int(torch.randint(2, 40, ()))",
        "576 * int(torch.randint(1, 9, ()))",
        "2 ** int(torch.randint(1, 4, ()))",
        "8 * int(torch.randint(1, 10, ()))",
        "1e12 * int(torch.randint(300, 2300, ()))",
        "1e9 * int(torch.randint(100, 1000, ()))",
        "1e9 * int(torch.randint(10, 100, ()))",
    ]
)
"""Weights, layers, hidden size; tokens, GPUs, tensor group; GPUs per machine, operations and bytes a second."""

EXERCISES = (
    Exercise(
        name="size_a_run",
        asks="returns five numbers for one GPU and one step: GB kept (weights, gradients, Adam, layer inputs), GB "
        "sent in "
        "its tensor group, GB through one NIC, seconds, MFU; the function itself sends nothing",
        lines=10,
        x=f"torch.tensor([{RUN}]).to(dtype)",
        expected="_trial_sized(x[:3].tolist(), *x[3:6].tolist(), x[6:].tolist())",
        in_place=False,
        needs=nobody,
        setup=BY_THE_BOOK,
        call="_trial_numbers({name}(x[:3].tolist(), *x[3:6].tolist(), x[6:].tolist()))",
        parts=lambda p: {
            "the GB that a GPU keeps": 1,
            "the GB sent in the tensor group": 1,
            "the GB through one NIC": 1,
            "the seconds of a step": 1,
            "the MFU": 1,
        },
        allowed=frozenset(),
        rtol=1e-6,
        hints=(
            "Memory: the weights are cut by tensor and again by the FSDP group, so each GPU has psi / gpus of them, 16 "
            "bytes each. Add layers * hidden * tokens numbers of 2 bytes.",
            "The tensor group: 6 * layers all_reduces, each of tensor * tokens * hidden numbers of 2 bytes. A ring "
            "sends "
            "2 * (tensor - 1) / tensor of that. The FSDP group has gpus / tensor ranks: two all_gathers and a "
            "reduce_scatter of psi / tensor numbers of 2 bytes, and each sends (ranks - 1) / ranks of that.",
            "Computing takes 8 * psi * tokens / flops seconds. Add the tensor group's bytes / inside. Meanwhile FSDP "
            "sends: all its bytes / inside, and a NIC's share / between. The step takes the longest of the three.",
            "MFU: 6 * psi * tokens / flops, divided by the seconds of the step.",
        ),
        world_sizes=(2, 2, 2),
        dtypes=("float64", "float64", "float64"),
        more=(2,),
    ),
)
