"""Attempts at size_a_run."""

BODY = """
def size_a_run(psi, layers, hidden, tokens, gpus, flops, inside, between):
    ranks = gpus / 8
    kept = {kept}
    tensor = {calls} * layers * {ring} * tokens * hidden * 2
    fsdp = {thrice} * (ranks - 1) / ranks * {cut} * 2
    compute = {operations} * psi * tokens / 8 / flops
    seconds = {seconds}
    return {returned}
"""
GOOD = {
    "kept": "16 * psi / gpus",
    "calls": "4",
    "ring": "7 / 4",
    "thrice": "3",
    "cut": "psi / 8",
    "operations": "6",
    "seconds": "max(compute + tensor / inside, fsdp / between)",
    "returned": "kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds, compute / seconds",
}

RIGHT = {
    "a list": BODY.format(**GOOD | {"returned": "[kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds, compute / seconds]"}),
    "a tensor": BODY.format(
        **GOOD | {"returned": "torch.tensor([kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds, compute / seconds])"}
    ),
    "piece by piece": """
def size_a_run(psi, layers, hidden, tokens, gpus, flops, inside, between):
    mine = psi / gpus
    kept = mine * (2 + 2 + 4 + 4 + 4)
    activation = 2 * tokens * hidden
    sent_inside = layers * (2 + 2) * 14 * activation / 8
    machines = gpus // 8
    shard, others = 2 * mine, machines - 1
    sent_between = 3 * others * shard
    at_full_speed = (2 + 4) * psi * tokens / (8 * flops)
    step = at_full_speed + sent_inside / inside
    if sent_between / between > step:
        step = sent_between / between
    return kept / 1e9, sent_inside / 1e9, sent_between / 1e9, step, 6 * psi * tokens / 8 / step / flops
""",
}

WRONG = {
    "not written": (
        "def size_a_run(psi, layers, hidden, tokens, gpus, flops, inside, between):\n    ...\n",
        "not written yet",
    ),
    "every machine keeps the whole model": (
        BODY.format(**GOOD | {"kept": "16 * psi / 8"}),
        "the GB that a GPU keeps",
    ),
    "weights in 2 bytes alone": (BODY.format(**GOOD | {"kept": "2 * psi / gpus"}), "the GB that a GPU keeps"),
    "the forward pass alone": (BODY.format(**GOOD | {"calls": "2"}), "the GB sent in the tensor group"),
    "an all_reduce is N": (BODY.format(**GOOD | {"ring": "1"}), "the GB sent in the tensor group"),
    "plain data parallel": (BODY.format(**GOOD | {"thrice": "2"}), "the GB sent in the FSDP group"),
    "FSDP of the whole model": (BODY.format(**GOOD | {"cut": "psi"}), "the GB sent in the FSDP group"),
    "all one after the other": (
        BODY.format(**GOOD | {"seconds": "compute + tensor / inside + fsdp / between"}),
        "the seconds of a step",
    ),
    "all is hidden": (
        BODY.format(**GOOD | {"seconds": "max(compute, tensor / inside, fsdp / between)"}),
        "the seconds of a step",
    ),
    "2 operations": (BODY.format(**GOOD | {"operations": "2"}), "no  on 2 ranks"),  # the seconds, or the MFU alone
    "MFU upside down": (
        BODY.format(**GOOD | {"returned": "kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds, seconds / compute"}),
        "the MFU",
    ),
    "bytes": (BODY.format(**GOOD | {"returned": "kept, tensor, fsdp, seconds, compute / seconds"}), "no  on 2 ranks"),
    "four numbers": (
        BODY.format(**GOOD | {"returned": "kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds"}),
        "no  on 2 ranks",
    ),
}
