"""Four numbers decide: what is kept, what each group sends, what is computed; and what can be hidden behind what.

Two mistakes: to count all_reduce as N, where a ring sends 2 (p - 1)/p N; and to add the seconds of FSDP, which sends
while the GPU computes.
Another way: per machine. Its GPUs take in the whole model once for each gather, whatever the mesh, and share the NICs.
"""


def size_a_run(model, tokens, gpus, tensor, chip):
    """GB kept, GB sent in the tensor group, GB through one NIC, seconds, MFU: of one GPU in one step."""
    (psi, layers, hidden), (machine, flops, inside, between) = model, chip
    kept = 16 * psi / gpus + 2 * layers * hidden * tokens
    summed = 6 * layers * 2 * (tensor - 1) / tensor * (tensor * tokens) * hidden * 2
    ranks = gpus / tensor
    fsdp = 3 * (ranks - 1) / ranks * psi / tensor * 2
    nic = fsdp * tensor / machine
    compute = 8 * psi * tokens / flops
    seconds = max(compute + summed / inside, fsdp / inside, nic / between)
    return kept / 1e9, summed / 1e9, nic / 1e9, seconds, 6 * psi * tokens / flops / seconds
