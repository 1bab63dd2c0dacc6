"""Four numbers decide: what is kept, what each group sends, what is computed; and what can be hidden behind what.

Two mistakes: to count all_reduce as N, where a ring sends 2 (p - 1)/p N; and to add the seconds of FSDP, which travels
while the GPU computes.
Another way: per token. Then the tokens cancel in the tensor group's share, and only FSDP's depends on them.
"""


def size_a_run(psi, layers, hidden, tokens, gpus, flops, inside, between):
    """GB kept, GB sent in the tensor group and in the FSDP group, seconds, MFU: of one GPU in one step."""
    ranks = gpus / 8
    kept = 16 * psi / gpus
    tensor = 4 * layers * 2 * 7 / 8 * tokens * hidden * 2
    fsdp = 3 * (ranks - 1) / ranks * psi / 8 * 2
    compute = 6 * psi * tokens / 8 / flops
    seconds = max(compute + tensor / inside, fsdp / between)
    return kept / 1e9, tensor / 1e9, fsdp / 1e9, seconds, compute / seconds
