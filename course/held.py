"""`held(run)`: what this rank holds in memory while it trains, by kind, as measured: the bars of chapter 12's picture.

Whenever `run()` begins a collective, and when its optimizer has stepped, the bytes of living tensors are added up.
Parameters, and what an all_gather has brought, are weights; `.grad`, and what goes into or comes out of a reduction,
are gradients; the optimizer's averages are its state. Memory that several tensors share counts once, and what has been
freed does not count.

Left out: activations, what exists only between two calls, and single numbers such as Adam's count of steps; calls with
`async_op=True`. Ranks import this module.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._distributed_c10d import Work
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode

CALLS = {"allreduce_": "all_reduce", "_reduce_scatter_base_": "reduce_scatter", "_allgather_base_": "all_gather"}
UPDATE = "update"

Moment = tuple[str, int, int, int]
"""The call that begins, or UPDATE; then bytes of weights, of gradients and of the optimizer's state."""


def held(run: Callable[[], Any], *optimizers: Optimizer) -> list[Moment]:
    """Calls `run()` and returns the moments of its last step.

    An optimizer that `run` makes has no state before its first step, so let it take two. Name one that exists already.
    """
    with _Watch(optimizers) as watch:
        run()
    return _last_step(watch.moments)


def _last_step(moments: list[Moment]) -> list[Moment]:
    """What follows the last update but one; gathers right after that belong to the step before."""
    updates = [at for at, moment in enumerate(moments) if moment[0] == UPDATE]
    if len(updates) < 2:
        return moments
    start = updates[-2] + 1
    while moments[start][0] == "all_gather":
        start += 1
    return moments[start:]


class _Watch(TorchDispatchMode):
    def __init__(self, optimizers):
        super().__init__()
        self.optimizers, self.modules = {*optimizers}, set()
        self.given: dict[str, list[StorageWeakRef]] = {"weights": [], "gradients": []}  # to calls
        self.moments: list[Moment] = []

    def __enter__(self):
        self.hooks = [
            register_module_forward_pre_hook(lambda module, _: self.modules.add(module)),
            register_optimizer_step_post_hook(lambda optimizer, *_: self._stepped(optimizer)),
        ]
        return super().__enter__()

    def __exit__(self, *raised):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*raised)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        call = CALLS.get(func._schema.name.removeprefix("c10d::"))
        if not call:
            return func(*args, **kwargs or {})
        given = self.given["weights" if call == "all_gather" else "gradients"]
        given += [StorageWeakRef(tensor.untyped_storage()) for tensor in _tensors(args)]
        self._note(call)
        copies = [_copied(argument) for argument in args]
        made = func(*copies, **kwargs or {})
        Work.unbox(made[-1] if isinstance(made, tuple) else made).wait()
        for tensor, copy in zip(_tensors(args), _tensors(copies), strict=True):
            tensor.copy_(copy)
        return made

    def _stepped(self, optimizer) -> None:
        self.optimizers.add(optimizer)
        self._note(UPDATE)

    def _note(self, call: str) -> None:
        of = [*self.optimizers]
        state = [t for o in of for parts in o.state.values() for t in _tensors(parts.values()) if t.dim()]
        weights = [p for o in of for group in o.param_groups for p in group["params"]]
        weights += [p for module in self.modules for p in module.parameters(recurse=False)]
        gradients = [p.grad for p in weights if p.grad is not None]
        seen: set[int] = set()
        kept = self._bytes(state, [], seen)
        of_weights = self._bytes(weights, self.given["weights"], seen)
        of_gradients = self._bytes(gradients, self.given["gradients"], seen)
        self.moments.append((call, of_weights, of_gradients, kept))

    def _bytes(self, tensors: list, given: list[StorageWeakRef], seen: set[int]) -> int:
        """Of the storages of these tensors, and of those that calls were given and that are still there."""
        alive = (torch.UntypedStorage._new_with_weak_ptr(ref.cdata) for ref in given)
        storages = [*(tensor.untyped_storage() for tensor in tensors), *(one for one in alive if one is not None)]
        new = {storage._cdata: storage.nbytes() for storage in storages if storage._cdata not in seen}
        seen.update(new)
        return sum(new.values())


def _copied(argument):
    """For the call: a thread of gloo's keeps its tensors for a moment after the call, which must not count."""
    if isinstance(argument, list):
        return [_copied(each) for each in argument]
    return argument.clone() if isinstance(argument, torch.Tensor) else argument


def _tensors(values) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
