"""A deep model whose backward pass takes as long as that of a large one on a GPU, on a laptop that computes nothing.

What overlaps with what is seen only where computing takes time, and two cores that compute for eight ranks have none
to give. So the backward pass of each layer here computes its small gradient and then sleeps, as a process does that
waits for its GPU. `gradients_of` runs what a student hangs on such a pass (the exercise `overlapped_average`).

Left out: the time of a forward pass and of the optimizer. What is all-reduced hides behind the backward pass alone.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist


class _Busy(torch.autograd.Function):
    """Hands its input on; its backward pass hands the gradient on that many seconds later."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(ctx.seconds)
        return grads[0], None


class Layer(torch.nn.Module):
    """tanh(x @ weight), and `seconds` for the backward pass."""

    def __init__(self, width: int, seconds: float):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
        self.seconds = seconds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Busy.apply(torch.tanh(x @ self.weight), self.seconds)


def deep(layers: int = 16, width: int = 256, seconds: float = 0.025) -> torch.nn.Sequential:
    """Layers of width x width parameters (256 KiB by default), the same on every rank."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*[Layer(width, seconds) for _ in range(layers)])


def _begun() -> int:
    """How many collectives this process has begun."""
    return dist.distributed_c10d._get_default_group()._get_sequence_number_for_group()


def gradients_of(x: torch.Tensor, average: Callable | None = None) -> torch.Tensor:
    """The gradients of two backward passes of a small model, for the input x and for 2 x, one after the other.

    average(model) may hang hooks on its parameters, and returns what is called after each pass; TypeError if it does
    not. RuntimeError if the gradients of all layers but the first are there and no collective has begun.
    """
    torch.manual_seed(0)
    sizes = [(x.numel(), 3), (3, 4), (4, 1)]
    layers = [torch.nn.Linear(*size, dtype=x.dtype) for size in sizes]
    model = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1], torch.nn.Tanh(), layers[2])
    begun: list[int] = []  # how many collectives had, when the gradients of the first layer came: the last ones
    for p in layers[0].parameters():
        p.register_post_accumulate_grad_hook(lambda p: begun.append(_begun()))
    finish, found = average(model) if average else None, []
    if average and not callable(finish):
        what = "nothing" if finish is None else f"a {type(finish).__name__}"
        raise TypeError(f"it should return a function, which is called after each backward pass, and returned {what}")
    for data in (x, 2 * x):
        model.zero_grad()
        begun[:] = [_begun()]
        model(data).square().sum().backward()
        if average and begun[0] == begun[1]:
            raise RuntimeError(
                "the backward pass is at the first layer and no all_reduce has begun: start each in the hook of its "
                "parameter"
            )
        if finish:
            finish()
        found += [p.grad.flatten() for p in model.parameters()]
    return torch.cat(found).detach()
