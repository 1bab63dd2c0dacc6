"""The solutions of the variants of chapters 10 to 19 and of the interview; see solved.py."""

CHANGED: dict[str, tuple[tuple[str, str], ...]] = {
    "distributed_mean-2": (("[x.sum()", "[x.square().sum()"),),
    "distributed_mean-3": (("[x.sum()", "[x.abs().sum()"),),
    "distributed_argmax-2": (("else world_size)", "else -1)"), ("ReduceOp.MIN", "ReduceOp.MAX")),
    "distributed_argmax-3": (("x.max()", "x.min()"), ("(value, dist.ReduceOp.MAX)", "(value, dist.ReduceOp.MIN)")),
    "distributed_softmax-2": (("return powers / total", "return x - largest - torch.log(total)"),),
    "distributed_softmax-3": (("    largest =", "    x = -x\n    largest ="),),
    "clip_norm-2": (
        ("squares = x.square().sum()", "norm = x.abs().max()"),
        ("dist.all_reduce(squares)\n    norm = squares.sqrt()", "dist.all_reduce(norm, dist.ReduceOp.MAX)"),
    ),
    "clip_norm-3": (
        ("squares = x.square().sum()", "norm = x.abs().sum()"),
        ("dist.all_reduce(squares)\n    norm = squares.sqrt()", "dist.all_reduce(norm)"),
    ),
    "same_bits_sum-2": (("return total.to", "return (total / dist.get_world_size()).to"),),
    "same_bits_sum-3": (("x.double()", "x.double() * (-1) ** dist.get_rank()"),),
    "bucketed_average-2": (("reversed(grads)", "grads"),),
    "bucketed_average-3": (
        (
            "        held.append(grad)\n        if sum(grad.numel() for grad in held) >= cap:\n",
            "        if held and sum(each.numel() for each in held) + grad.numel() > cap:\n",
        ),
        ("            held = []\n", "            held = []\n        held.append(grad)\n"),
    ),
    "overlapped_average-2": (("            bucket /= dist.get_world_size()\n", ""),),
    "overlapped_average-3": (
        (
            "        held.append(p)\n        if sum(p.numel() for p in held) >= cap:\n            leave()\n",
            "        if held and sum(each.numel() for each in held) + p.numel() > cap:\n            leave()\n"
            "        held.append(p)\n",
        ),
    ),
    "zero1_step-2": (
        ("m.mul_(0.9).add_(g / world_size)", "g /= world_size\n    m.mul_(0.9).add_(g)"),
        ("- 0.1 * m)", "- 0.1 * (g + 0.9 * m))"),
    ),
    "zero1_step-3": (("(g / world_size)", "(g / world_size + 0.1 * w.chunk(world_size)[rank])"),),
    "gathered-2": (("return piece", "return piece / world_size"),),
    "gathered-3": (
        ("return whole", "return whole.view(world_size, -1).flip(0).flatten()"),
        ("grad.contiguous()", "grad.view(world_size, -1).flip(0).flatten()"),
    ),
    "muon_updates-2": (("return whole", "return whole.flip(0)"),),
    "muon_updates-3": (("return whole", "return whole.transpose(1, 2)"),),
    "f_and_g-2": (("return G.apply(piece(F.apply(x)))", "return G.apply(piece(F.apply(x))) / dist.get_world_size()"),),
    "f_and_g-3": (("piece(F.apply(x)))", "piece(F.apply(x)) * (-1) ** dist.get_rank())"),),
    "vocab_parallel_loss-2": ((".mean()", ".sum()"),),
    "vocab_parallel_loss-3": (
        ("dist.get_rank() * columns", "(dist.get_world_size() - 1 - dist.get_rank()) * columns"),
    ),
    "pipeline_forward-2": (
        (
            "if rank > 0:\n            dist.recv(row, rank - 1)",
            "if rank < world_size - 1:\n            dist.recv(row, rank + 1)",
        ),
        (
            "if rank < world_size - 1:\n            sending.append(dist.isend(row, rank + 1))",
            "if rank > 0:\n            sending.append(dist.isend(row, rank - 1))",
        ),
    ),
    "pipeline_forward-3": (
        (
            "if rank < world_size - 1:\n            sending.append(dist.isend(row, rank + 1))\n"
            "        done.append(row)",
            "sending.append(dist.isend(row, (rank + 1) % world_size))",
        ),
        (
            "    for handle",
            "    for row in x if rank == 0 else ():\n        done.append(torch.empty_like(row))\n"
            "        dist.recv(done[-1], world_size - 1)\n    for handle",
        ),
        ("return torch.stack(done)", "return torch.stack(done) if rank == 0 else None"),
    ),
    "one_f_one_b-2": (("dist.get_world_size() - dist.get_rank()", "dist.get_rank() + 1"),),
    "one_f_one_b-3": (
        ("dist.get_world_size() - dist.get_rank()", "2 * (dist.get_world_size() - dist.get_rank()) - 1"),
    ),
    "split_backward-2": (("    order =", "    r = p - 1 - r\n    order ="),),
    "moe-2": (("    order =", "    choice = dist.get_world_size() - 1 - choice\n    order ="),),
    "moe-3": (("return y", "return x - y"),),
    "exchange-2": (
        (
            "return Exchange.apply(x, goes, comes)",
            "return torch.cat(Exchange.apply(x, goes, comes).split(comes)[::-1])",
        ),
    ),
    "exchange-3": (
        ("return Exchange.apply(x,", "x = torch.cat(x.split(goes[::-1])[::-1])\n    return Exchange.apply(x,"),
    ),
    "to_heads-2": (
        (
            "torch.stack(x.chunk(dist.get_world_size(), dim=1))",
            "x.unflatten(0, (dist.get_world_size(), -1)).contiguous()",
        ),
        ("out.flatten(0, 1)", "torch.cat(list(out), dim=1)"),
    ),
    "to_heads-3": (
        (
            "torch.stack(x.chunk(dist.get_world_size(), dim=1))",
            "torch.stack([x[:, r :: dist.get_world_size()] for r in range(dist.get_world_size())])",
        ),
    ),
    "ring_attention-2": (
        (
            "        now =",
            "        if (rank - step) % world_size > rank:  # of a later rank\n"
            "            scores = torch.full_like(scores, -torch.inf)\n        now =",
        ),
    ),
    "ring_attention-3": (
        (
            "        now =",
            "        if (rank - step) % world_size < rank:  # of an earlier rank\n"
            "            scores = torch.full_like(scores, -torch.inf)\n        now =",
        ),
    ),
    "ring_sum-2": (
        ("from jax import lax", "import jax.numpy as jnp\nfrom jax import lax"),
        ("total = total + mine", "total = jnp.maximum(total, mine)"),
    ),
    "ring_sum-3": (("total = mine", "total = 0 * mine"),),
    "redistribute-2": (
        ("return x.chunk(world_size)[rank]", "return x.chunk(world_size, dim=1)[rank]"),
        (
            "x.new_empty(len(x) // world_size, *x.shape[1:])\n        dist.reduce_scatter_single(mine, x)",
            "x.new_empty(x.shape[1] // world_size, len(x))\n        dist.reduce_scatter_single(mine, "
            "x.T.contiguous())\n"
            "        mine = mine.T",
        ),
        (
            "x.new_empty(len(x) * world_size, *x.shape[1:])\n        dist.all_gather_single(whole, x)\n"
            "        return whole",
            "x.new_empty(x.shape[1] * world_size, len(x))\n        dist.all_gather_single(whole, x.T.contiguous())\n"
            "        return whole.T",
        ),
    ),
    "redistribute-3": (("(mine, x)", "(mine, x, dist.ReduceOp.MAX)"),),
    "train_until-2": (("(loss)\n", "(loss, dist.ReduceOp.MAX)\n"), ("loss / dist.get_world_size() <", "loss <")),
    "train_until-3": (("(loss)\n", "(loss, dist.ReduceOp.MIN)\n"), ("loss / dist.get_world_size() <", "loss <")),
    "bad_rank-2": (
        (
            "        others = [last[other] for other in call.group if other != rank]\n"
            "        same = [other for other in others if (other.group, other.number) == (call.group, call.number)]\n"
            "        if call.over or same and all(other.shape != call.shape for other in same):\n"
            "            return rank",
            "        others = [call.shape for other in logs if other != rank for call in logs[other]]\n"
            '        if call.over:\n            return "left"\n'
            '        if call.shape not in others:\n            return "shape"\n    return "skipped"',
        ),
    ),
    "neighbours_first-2": (("machines.argsort(stable=True)", "(-machines).argsort(stable=True)"),),
    "neighbours_first-3": (
        ("machines.argsort(stable=True)", "len(machines) - 1 - machines.flip(0).argsort(stable=True)"),
    ),
    "survive-2": (("dist.get_rank() == 0", "dist.get_rank() == dist.get_world_size() - 1"),),
    "survive-3": (
        ("begin = 0", "begin = 8"),
        ("range(begin, 9)", "range(begin, -1, -1)"),
        ("number % 3 == 2", "number % 3 == 0"),
        ("number + 1}", "number - 1}"),
    ),
    "grad_norm-2": (
        (
            "torch.stack([grad.square().sum() for grad in cut]).sum()",
            "torch.stack([grad.abs().max() for grad in cut]).max()",
        ),
        ("(squares, group=group)", "(squares, dist.ReduceOp.MAX, group=group)"),
        (
            "(squares + sum(grad.square().sum() for grad in copies)).sqrt()",
            "torch.stack([squares, *(grad.abs().max() for grad in copies)]).max()",
        ),
    ),
    "grad_norm-3": (
        ("torch.stack([grad.square().sum() for grad in cut])", "torch.stack([grad.abs().sum() for grad in cut])"),
        (
            "(squares + sum(grad.square().sum() for grad in copies)).sqrt()",
            "squares + sum(grad.abs().sum() for grad in copies)",
        ),
    ),
    "bytes_per_step-2": (
        (
            "[4 * (activations + norm), 4 * (copies + cut + loss)]",
            "[activations + 4 * norm, 2 * (copies + cut) + 4 * loss]",
        ),
    ),
    "bytes_per_step-3": (("norm, loss = 1, 1\n", "norm = 1\n"), ("4 * (copies + cut + loss)", "16 * (copies + cut)")),
    "train_step-2": (("scale * p.grad", "(scale * p.grad + 0.1 * p)"),),
    "train_step-3": (
        (
            "        for p in w.values():\n            p -= 0.5 * scale * p.grad\n",
            "        for key, p in w.items():\n            if is_cut(key):\n                p -= 0.5 * scale * p.grad\n"
            "",
        ),
    ),
    "size_a_run-2": (
        ("2 * layers * hidden * tokens", "34 * layers * hidden * tokens"),
        ("6 * layers * 2", "4 * layers * 2"),
        ("8 * psi", "6 * psi"),
    ),
    "size_a_run-3": (("max(compute + summed / nvlink, fsdp)", "compute + summed / nvlink + fsdp"),),
}
