"""Attempts at size_a_run."""

BODY = """
def size_a_run(model, tokens, gpus, tensor, chip):
    psi, layers, hidden = model
    machine, flops, inside, between, near, far = chip
    ranks, leave = gpus / tensor, gpus / machine - 1
    kept = {kept}
    summed = {calls} * layers * {ring} * tensor * tokens * hidden * 2
    sent = {thrice} * (ranks - 1) / ranks * {cut} * 2
    nic = sent * {share}
    fsdp = max(sent / inside, nic / between) + {latency}
    compute = {operations} * psi * tokens / flops
    seconds = {seconds}
    mfu = {mfu}
    return {returned}
"""
GOOD = {
    "kept": "16 * psi / gpus + 2 * layers * hidden * tokens",
    "calls": "6",
    "ring": "2 * (tensor - 1) / tensor",
    "thrice": "3",
    "cut": "psi / tensor",
    "share": "tensor / machine",
    "latency": "3 * layers * (leave * far + (ranks - 1 - leave) * near)",
    "operations": "8",
    "seconds": "max(compute + summed / inside, fsdp)",
    "mfu": "6 * psi * tokens / flops / seconds",
    "returned": "kept / 1e9, summed / 1e9, nic / 1e9, fsdp, seconds, mfu",
}

RIGHT = {
    "a list": BODY.format(**GOOD | {"returned": "[kept / 1e9, summed / 1e9, nic / 1e9, fsdp, seconds, mfu]"}),
    "a tensor": BODY.format(
        **GOOD | {"returned": "torch.tensor([kept / 1e9, summed / 1e9, nic / 1e9, fsdp, seconds, mfu])"}
    ),
    "piece by piece": """
def size_a_run(model, tokens, gpus, tensor, chip):
    psi, layers, hidden = model
    mine = psi / gpus
    kept = mine * (2 + 2 + 4 + 4 + 4) + layers * 2 * hidden * tokens
    sent_inside = layers * (2 + 2 + 2) * 2 * (tensor - 1) * 2 * tokens * hidden
    shard, others = 2 * mine, gpus // tensor - 1
    sent = 3 * others * shard
    through_a_nic = sent / (chip[0] / tensor)
    hidden_time = sent / chip[2] if sent / chip[2] > through_a_nic / chip[3] else through_a_nic / chip[3]
    machines = gpus // chip[0]
    for call in "gather", "gather again", "reduce_scatter":
        hidden_time += layers * ((machines - 1) * chip[5] + (others + 1 - machines) * chip[4])
    step = (2 + 2 + 4) * psi * tokens / chip[1] + sent_inside / chip[2]
    step = hidden_time if hidden_time > step else step
    return kept / 1e9, sent_inside / 1e9, through_a_nic / 1e9, hidden_time, step, 6 * psi * tokens / step / chip[1]
""",
}

WRONG = {
    "every machine keeps the whole model": (
        BODY.format(**GOOD | {"kept": "16 * psi / tensor + 2 * layers * hidden * tokens"}),
        "the GB that a GPU keeps",
    ),
    "no activations": (BODY.format(**GOOD | {"kept": "16 * psi / gpus"}), "the GB that a GPU keeps"),
    "nothing is recomputed": (BODY.format(**GOOD | {"calls": "4"}), "the GB sent in the tensor group"),
    "an all_reduce is N": (BODY.format(**GOOD | {"ring": "1"}), "the GB sent in the tensor group"),
    "plain data parallel": (BODY.format(**GOOD | {"thrice": "2"}), "the GB through one NIC"),
    "FSDP of the whole model": (BODY.format(**GOOD | {"cut": "psi"}), "the GB through one NIC"),
    "one ring through one NIC": (BODY.format(**GOOD | {"share": "1"}), "the GB through one NIC"),
    "all one after the other": (
        BODY.format(**GOOD | {"seconds": "compute + summed / inside + fsdp"}),
        "the seconds of a step",
    ),
    "all is hidden": (
        BODY.format(**GOOD | {"seconds": "max(compute, summed / inside, fsdp)"}),
        "the seconds of a step",
    ),
    "no latency": (BODY.format(**GOOD | {"latency": "0"}), "the seconds of FSDP"),
    "one call for all layers": (
        BODY.format(**GOOD | {"latency": "3 * (leave * far + (ranks - 1 - leave) * near)"}),
        "the seconds of FSDP",
    ),
    "every hop leaves its machine": (
        BODY.format(**GOOD | {"latency": "3 * layers * (ranks - 1) * far"}),
        "the seconds of FSDP",
    ),
    "2 operations": (BODY.format(**GOOD | {"operations": "2"}), "no  on 2 ranks"),  # the seconds, or the MFU alone
    "counts what is recomputed": (BODY.format(**GOOD | {"mfu": "compute / seconds"}), "the MFU"),
    "bytes": (BODY.format(**GOOD | {"returned": "kept, summed, nic, fsdp, seconds, mfu"}), "no  on 2 ranks"),
}
