"""The exercise of the interview: the size of a training run, from its model, its mesh and its chip."""

from course.exercises.exercise import Exercise, nobody

BY_THE_BOOK = """
def _trial_sized(model, tokens, gpus, tensor, chip):
    (psi, layers, hidden), (machine, flops, nvlink, nic, near, far) = model, chip
    kept = 16 * psi / gpus + 2 * layers * hidden * tokens
    summed = 6 * layers * 2 * (tensor - 1) / tensor * (tensor * tokens) * hidden * 2
    copies = gpus / tensor
    per_group = 3 * (copies - 1) / copies * psi / tensor * 2
    nic_bytes = per_group * tensor / machine
    away = gpus / machine - 1
    fsdp = max(per_group / nvlink, nic_bytes / nic) + 3 * layers * (away * far + (copies - 1 - away) * near)
    compute = 8 * psi * tokens / flops
    seconds = max(compute + summed / nvlink, fsdp)
    sizes = [kept / 1e9, summed / 1e9, nic_bytes / 1e9]
    return torch.tensor([*sizes, fsdp, seconds, 6 * psi * tokens / flops / seconds], dtype=torch.float64)
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
        "(8, 16, 24, 32, 48, 64, 72)[int(torch.randint(0, 7, ()))]",
        "1e12 * int(torch.randint(300, 2300, ()))",
        "1e9 * int(torch.randint(100, 1000, ()))",
        "1e9 * int(torch.randint(10, 100, ()))",
        "1e-7 * int(torch.randint(5, 50, ()))",
        "1e-6 * int(torch.randint(5, 30, ()))",
    ]
)
"""Weights, layers, hidden size; tokens, GPUs, tensor group; GPUs per machine, operations a second, bytes a second and
latency inside and between machines."""

EXERCISES = (
    Exercise(
        name="size_a_run",
        asks="returns six numbers for one GPU and one step: GB kept (weights, gradients, Adam, layer inputs), GB "
        "sent in its tensor group, GB through one NIC, seconds of FSDP, seconds of the step, MFU; the function itself "
        "sends nothing",
        lines=11,
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
            "the seconds of FSDP": 1,
            "the seconds of a step": 1,
            "the MFU": 1,
        },
        allowed=frozenset(),
        rtol=1e-6,
        hints=(
            "The tensor group: 2 all_reduces per layer forward, 2 forward again, 2 backward, each of tensor * tokens * "
            "hidden numbers of 2 bytes. A ring sends 2 * (tensor - 1) / tensor of that.",
            "A machine takes in tensor * per_group bytes, through as many NICs as it has GPUs. Of the ranks - 1 hops "
            "of a call gpus / machine - 1 take far seconds, the others near. Seconds: the slower of per_group / nvlink "
            "and nic_bytes / nic, plus 3 * layers calls.",
            "The computing waits for the tensor group: add summed / nvlink to compute. FSDP sends meanwhile, so the "
            "step takes the longer of the two.",
        ),
        world_sizes=(2, 2, 2),
        dtypes=("float64", "float64", "float64"),
        more=(2,),
    ),
)
