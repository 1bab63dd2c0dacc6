"""Four numbers decide: what is kept, what each group sends, what is computed; and what can be hidden behind what.

Two mistakes: to count bytes and forget the latency of 240 calls round 512 ranks; and to add the seconds of FSDP, which
sends while the GPU computes.
Another way: per machine. Its GPUs take in the whole model once for each gather, whatever the mesh, and share the NICs.
"""


def size_a_run(model, tokens, gpus, tensor, chip):
    """GB kept, GB sent in the tensor group, GB through one NIC, seconds of FSDP, of the step, MFU."""
    (psi, layers, hidden), (machine, flops, nvlink, nic, near, far) = model, chip
    ranks, leave = gpus / tensor, gpus / machine - 1
    kept = 16 * psi / gpus + 2 * layers * hidden * tokens
    summed = 6 * layers * 2 * (tensor - 1) / tensor * (tensor * tokens) * hidden * 2
    per_group = 3 * (ranks - 1) / ranks * psi / tensor * 2
    nic_bytes = per_group * tensor / machine
    latency = 3 * layers * (leave * far + (ranks - 1 - leave) * near)
    fsdp = max(per_group / nvlink, nic_bytes / nic) + latency
    compute = 8 * psi * tokens / flops
    seconds = max(compute + summed / nvlink, fsdp)
    return kept / 1e9, summed / 1e9, nic_bytes / 1e9, fsdp, seconds, 6 * psi * tokens / flops / seconds
