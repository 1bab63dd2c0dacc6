"""Chapter 13's model: two blocks of two matrices each, cut for a mesh, and the same blocks in one process.

Left out: the forward pass of the cut blocks, which the chapter writes with the student's own F and G.
"""

import torch
from torch.distributed.device_mesh import DeviceMesh

WIDE, COPIES, PIECES = 64, 2, 4  # numbers in a token; sizes of the mesh's dimensions "data" and "tensor"


def everything(tokens: int) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], torch.Tensor]:
    """All weights, and the tokens of both copies; the same on every rank."""
    torch.manual_seed(5)
    layers = [(torch.randn(WIDE, 4 * WIDE) / 16, torch.randn(4 * WIDE, WIDE) / 32) for _ in range(2)]
    return layers, torch.randn(COPIES * tokens, WIDE)


def my_part(mesh: DeviceMesh, tokens: int) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], torch.Tensor]:
    """This rank's pieces of the weights, A by columns and B by rows, and the `tokens` of its copy."""
    layers, x = everything(tokens)
    t, d = mesh.get_local_rank("tensor"), mesh.get_local_rank("data")
    pieces = [(A.chunk(PIECES, dim=1)[t].clone(), B.chunk(PIECES, dim=0)[t].clone()) for A, B in layers]
    for A, B in pieces:
        A.requires_grad_(), B.requires_grad_()
    return pieces, x.chunk(COPIES)[d].clone().requires_grad_()  # as if an embedding had made x


def unsharded(mesh: DeviceMesh, tokens: int) -> torch.Tensor:
    """The gradients of this rank's pieces, as one process with all weights and tokens computes them."""
    layers, x = everything(tokens)
    leaves = [weight.requires_grad_() for pair in layers for weight in pair]
    y = x
    for A, B in layers:
        y = y + torch.relu(y @ A) @ B
    ((y - x**2) ** 2).mean().backward()
    t = mesh.get_local_rank("tensor")
    return torch.cat([w.grad.chunk(PIECES, dim=1 - i % 2)[t].flatten() for i, w in enumerate(leaves)])
