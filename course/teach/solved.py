"""The solutions of the exercises' variants, each told as what differs from the chapter's: for lecturers.

`solution("shift-2")` is the text of a cell. A pair is a piece of our solution and what is in its place; a piece that is
not there is an error, so that no variant drifts away from its chapter. No student's copy has this module.

Left out: what a solution explains of itself, which is the chapter's task.
"""

import ast
from pathlib import Path

from course.exercises.variants import edited
from course.teach import solved_later

SOLUTIONS = Path(__file__).parents[1] / "solutions"

MAXIMUM = (
    (
        "chunks[(rank - 2 - step) % world_size] += arriving",
        "mine = chunks[(rank - 2 - step) % world_size]\n        torch.maximum(mine, arriving, out=mine)",
    ),
)
AROUND = (
    "right, left = (rank + 1) % world_size, (rank - 1) % world_size",
    "rank = -rank % world_size  # the place on a ring that runs to the left\n"
    "    right, left = -(rank + 1) % world_size, -(rank - 1) % world_size",
)
OWN = (
    "    rank, world_size = dist.get_rank(), dist.get_world_size()\n",
    "    rank, world_size = dist.get_rank(), dist.get_world_size()\n    own = x.clone()\n",
)

Pairs = tuple[tuple[str, str], ...]
CHANGED: dict[str, Pairs] = {
    "pass_it_on-2": (
        ("if rank > 0:\n        dist.recv(x, rank - 1)", "if rank < world_size - 1:\n        dist.recv(x, rank + 1)"),
        ("if rank < world_size - 1:\n        dist.send(x, rank + 1)", "if rank > 0:\n        dist.send(x, rank - 1)"),
    ),
    "pass_it_on-3": (
        (
            "if rank > 0:\n        dist.recv(x, rank - 1)",
            "if rank != 1:\n        dist.recv(x, (rank - 1) % world_size)",
        ),
        (
            "if rank < world_size - 1:\n        dist.send(x, rank + 1)",
            "if rank != 0:\n        dist.send(x, (rank + 1) % world_size)",
        ),
    ),
    "my_share-2": (
        ("min(rank, left_over)", "max(0, rank - world_size + left_over)"),
        ("(rank < left_over)", "(rank >= world_size - left_over)"),
    ),
    "my_share-3": (("    base, left", "    rank = world_size - 1 - rank\n    base, left"),),
    "running_sum-2": (
        ("if rank > 0:", "if rank < world_size - 1:"),
        ("rank - 1)", "rank + 1)"),
        ("if rank < world_size - 1:\n        dist.send(x, rank + 1)", "if rank > 0:\n        dist.send(x, rank - 1)"),
    ),
    "running_sum-3": (
        ("        x += so_far\n", ""),
        (
            "dist.send(x, rank + 1)",
            "dist.send(x if rank == 0 else so_far + x, rank + 1)\n    x.copy_(so_far) if rank > 0 else x.zero_()",
        ),
    ),
    "shift-2": (("(rank + 1)", "(rank - 1)"), ("recv(arriving, (rank - 1)", "recv(arriving, (rank + 1)")),
    "shift-3": (
        ("    arriving = torch.empty_like(x)\n", "    left, right = torch.empty_like(x), torch.empty_like(x)\n"),
        (
            "    sending = dist.isend(x, (rank + 1) % world_size)\n    dist.recv(arriving, (rank - 1) % world_size)\n"
            "    sending.wait()\n    return arriving",
            "    sending = [dist.isend(x, (rank + 1) % world_size), dist.isend(x, (rank - 1) % world_size)]\n"
            "    dist.recv(left, (rank - 1) % world_size)\n    dist.recv(right, (rank + 1) % world_size)\n"
            "    for handle in sending:\n        handle.wait()\n    return left + right",
        ),
    ),
    "swap-2": (
        ("dist.get_rank() ^ 1", "dist.get_world_size() - 1 - dist.get_rank()"),
        ("partner >= dist.get_world_size()", "partner == dist.get_rank()"),
    ),
    "swap-3": (
        (
            "    partner = dist.get_rank() ^ 1\n    if partner >= dist.get_world_size():\n",
            "    rank, half = dist.get_rank(), dist.get_world_size() // 2\n"
            "    partner = rank + half if rank < half else rank - half\n    if rank >= 2 * half:\n",
        ),
    ),
    "dissemination_barrier-2": (
        ("(rank + distance)", "(rank - distance)"),
        ("recv(news, (rank - ", "recv(news, (rank + "),
    ),
    "dissemination_barrier-3": (
        (
            "    distance = 1\n    while distance < world_size:\n"
            "        sending = dist.isend(here, (rank + distance) % world_size)\n"
            "        dist.recv(news, (rank - distance) % world_size)\n        sending.wait()\n"
            "        distance *= 2  # the sender had heard of as many ranks as I had",
            "    if rank:\n        dist.send(here, 0)\n        dist.recv(news, 0)\n        return\n"
            "    for other in range(1, world_size):\n        dist.recv(news, other)\n"
            "    for other in range(1, world_size):\n        dist.send(here, other)",
        ),
    ),
    "flat_gather-2": (
        ("rank != 0", "rank != world_size - 1"),
        ("dist.send(x, 0)", "dist.send(x, world_size - 1)"),
        ("chunks[0]", "chunks[rank]"),
        ("range(1, world_size)", "range(world_size - 1)"),
    ),
    "flat_gather-3": (("whole.chunk(world_size)", "whole.chunk(world_size)[::-1]"),),
    "tree_broadcast-2": (
        ("    distance = 1\n", "    rank = world_size - 1 - rank  # counted from the last\n    distance = 1\n"),
        ("dist.send(x, rank + distance)", "dist.send(x, world_size - 1 - (rank + distance))"),
        ("dist.recv(x, rank - distance)", "dist.recv(x, world_size - 1 - (rank - distance))"),
    ),
    "tree_broadcast-3": (
        ("    distance = 1\n", "    rank = (rank - 1) % world_size  # counted from rank 1\n    distance = 1\n"),
        ("dist.send(x, rank + distance)", "dist.send(x, (rank + distance + 1) % world_size)"),
        ("dist.recv(x, rank - distance)", "dist.recv(x, (rank - distance + 1) % world_size)"),
    ),
    "ring_all_gather-2": (("torch.cat(chunks)", "torch.stack(chunks, dim=1).flatten()"),),
    "ring_all_gather-3": (("torch.cat(chunks)", "torch.cat(chunks[rank:] + chunks[:rank])"),),
    "pairwise_reduce_scatter-2": (("chunks = x.chunk(world_size)", "chunks = x.chunk(world_size)[::-1]"),),
    "pairwise_reduce_scatter-3": (("total += arriving", "total = torch.maximum(total, arriving)"),),
    "pairwise_all_to_all-2": (
        ("outgoing, result = x.chunk(world_size)", "outgoing, result = x.chunk(world_size)[::-1]"),
    ),
    "pairwise_all_to_all-3": (("result.chunk(world_size)", "result.chunk(world_size)[::-1]"),),
    "uneven_all_to_all-2": (("return result", "return torch.cat(result.split(incoming.tolist())[::-1])"),),
    "uneven_all_to_all-3": (
        (
            "dist.all_to_all_single(result, x,",
            "x = torch.cat(x.split(counts[::-1])[::-1])\n    dist.all_to_all_single(result, x,",
        ),
    ),
    "ring_reduce_scatter-2": (("rank - 1 - step", "rank - step"), ("rank - 2 - step", "rank - 1 - step")),
    "ring_reduce_scatter-3": MAXIMUM,
    "ring_all_reduce-2": MAXIMUM,
    "ring_all_reduce-3": (AROUND,),
    "ring_any_length-2": (("mine += arriving", "torch.maximum(mine, arriving, out=mine)"),),
    "ring_any_length-3": (AROUND,),
    "all_reduce_many-2": (("all_reduce(bucket)", "all_reduce(bucket, dist.ReduceOp.MAX)"),),
    "all_reduce_many-3": (("t.copy_(part.view_as(t))", "t.copy_(part.view_as(t) - t)"),),
    "two_shot_all_reduce-2": (
        ("chunks[rank] += inbox[peer]", "torch.maximum(chunks[rank], inbox[peer], out=chunks[rank])"),
    ),
    "two_shot_all_reduce-3": (
        OWN,
        (
            "work += [dist.irecv(chunks[peer], peer) for peer in others]\n    for w in work:\n        w.wait()",
            "work += [dist.irecv(chunks[peer], peer) for peer in others]\n    for w in work:\n        w.wait()\n"
            "    x -= own",
        ),
    ),
    "tree_reduce-2": (
        ("    arriving =", "    rank = world_size - 1 - rank  # counted from the last\n    arriving ="),
        ("dist.send(x, rank - distance)", "dist.send(x, world_size - 1 - (rank - distance))"),
        ("dist.recv(arriving, rank + distance)", "dist.recv(arriving, world_size - 1 - (rank + distance))"),
    ),
    "tree_reduce-3": (("x += arriving", "torch.maximum(x, arriving, out=x)"),),
    "recursive_doubling_all_reduce-2": (("x += arriving", "torch.maximum(x, arriving, out=x)"),),
    "recursive_doubling_all_reduce-3": (("distance = 1", "distance = 2"),),
    "halving_reduce_scatter-2": (
        (
            "mine, theirs = rank // distance * distance, partner // distance * distance",
            "mine, theirs = ((world_size - 1 - each) // distance * distance for each in (rank, partner))",
        ),
    ),
    "halving_reduce_scatter-3": (
        (
            "chunks[mine : mine + distance] += arriving",
            "kept = chunks[mine : mine + distance]\n        torch.maximum(kept, arriving, out=kept)",
        ),
    ),
    "halving_doubling_all_reduce-2": (("keep += arriving", "torch.maximum(keep, arriving, out=keep)"),),
    "halving_doubling_all_reduce-3": (
        OWN,
        (
            "dist.send(kept, partner)\n        receiving.wait()",
            "dist.send(kept, partner)\n        receiving.wait()\n    x -= own",
        ),
    ),
    "bruck_all_gather-2": (("rank, 0).flatten()", "rank, 0).T.flatten()"),),
    "bruck_all_gather-3": (("rank, 0).flatten()", "rank, 0).flip(0).flatten()"),),
    "hierarchical_all_reduce-2": (
        ("(chunk, x, group=inside)", "(chunk, x, dist.ReduceOp.MAX, group=inside)"),
        ("(chunk, group=between)", "(chunk, dist.ReduceOp.MAX, group=between)"),
    ),
    "hierarchical_all_reduce-3": (("dist.all_gather_single(x, chunk, group=inside)", "return chunk"),),
    "rail_broadcast-2": (
        ('get_local_rank("machine") == 0', 'get_local_rank("machine") == 1'),
        ("group=between, group_src=0", "group=between, group_src=1"),
    ),
    "rail_broadcast-3": (
        ("    chunk = ", "    last = len(chunks) - 1\n    chunk = "),
        ('get_local_rank("gpu") == 0', 'get_local_rank("gpu") == last'),
        ("group=inside, group_src=0", "group=inside, group_src=last"),
    ),
}


def solution(key: str) -> str:
    """Our solution of a variant, without the chapter's words about its own. LookupError if a piece is not there."""
    name = key.rpartition("-")[0]
    text = (SOLUTIONS / f"{name}.py").read_text(encoding="utf-8")
    for docstring in _docstrings(text):
        text = text.replace(docstring, "", 1)
    text = edited(text, *(CHANGED | solved_later.CHANGED)[key])
    return text.lstrip("\n")


def _docstrings(text: str) -> list[str]:
    """As they stand, with what is around them on their lines."""
    lines, found = text.splitlines(keepends=True), []
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and body and ast.get_docstring(node):
            found.append("".join(lines[body[0].lineno - 1 : body[0].end_lineno]))
    return found
