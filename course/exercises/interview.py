"""The exercise of the interview: the size of a training run, from six numbers about it and three about its GPUs."""

from course.exercises.exercise import Exercise, nobody

BY_THE_BOOK = """
def _trial_sized(psi, layers, hidden, tokens, gpus, flops, inside, between):
    copies = gpus / 8
    tensor = 4 * layers * 2 * 7 / 8 * tokens * hidden * 2
    data = 3 * (copies - 1) / copies * psi / 8 * 2
    compute = 6 * psi * tokens / 8 / flops
    seconds = max(compute + tensor / inside, data / between)
    sizes = [16 * psi / gpus / 1e9, tensor / 1e9, data / 1e9]
    return torch.tensor([*sizes, seconds, compute / seconds], dtype=torch.float64)
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
        "2048 * int(torch.randint(2, 16, ()))",
        "8 * int(torch.randint(2, 200, ()))",
        "1e12 * int(torch.randint(300, 2300, ()))",
        "1e9 * int(torch.randint(100, 1000, ()))",
        "1e9 * int(torch.randint(10, 100, ()))",
    ]
)
"""Weights, layers, hidden size, tokens; GPUs; operations and bytes a second."""

EXERCISES = (
    Exercise(
        name="size_a_run",
        asks="it returns five numbers, for one GPU and one step: the GB of weights, gradients and Adam that it keeps, "
        "the GB that it sends in its tensor group, and in its FSDP group, the seconds of the step, and the MFU; "
        "nothing is sent",
        lines=10,
        x=f"torch.tensor([{RUN}]).to(dtype)",
        expected="_trial_sized(*x.tolist())",
        in_place=False,
        needs=nobody,
        setup=BY_THE_BOOK,
        call="_trial_numbers({name}(*x.tolist()))",
        parts=lambda p: {
            "the GB that a GPU keeps": 1,
            "the GB sent in the tensor group": 1,
            "the GB sent in the FSDP group": 1,
            "the seconds of a step": 1,
            "the MFU": 1,
        },
        allowed=frozenset(),
        rtol=1e-6,
        hints=(
            "It keeps 16 bytes for each weight that is on this GPU: weights are cut by 8, and again by the FSDP group, "
            "so each of the gpus has psi / gpus of them.",
            "The tensor group: four all_reduces for each layer, each of tokens * hidden numbers of 2 bytes, and a ring "
            "of 8 sends 2 * 7/8 of that. The FSDP group has gpus / 8 ranks: two all_gathers and a reduce_scatter of "
            "psi / 8 numbers of 2 bytes, and each sends (ranks - 1) / ranks of that.",
            "Computing takes 6 * psi * tokens operations on 8 GPUs. What the tensor group sends comes on top. FSDP "
            "sends meanwhile: the longer of the two is the step.",
            "MFU: the seconds in which the GPUs compute, at full speed, divided by the seconds of the step.",
        ),
        world_sizes=(2, 2, 2),
        dtypes=("float64", "float64", "float64"),
        more=(2,),
    ),
)
