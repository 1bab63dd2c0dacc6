"""What a rank does around a student's function: fresh names, x and what should come out of it, and what is seen then.

`trial.py` sends this file as text to each process of its ranks, once, and a trial is a few short cells after
that: IPython reads a cell token by token, in Python, so long cells cost more than what is in them. What is an
exercise's own comes as Python text and is run among the student's names, where `_trial_around` is the only name from
here.

What goes in and what is seen is displayed, as a mime type that nobody else has: so it has come when the cell has ended,
nobody has to ask for it, and on the rank it is nowhere when the function runs.

Left out: what is made of it (`verdict.py`).
"""

import base64
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from operator import is_

import torch
import torch.distributed as dist
from IPython import get_ipython
from IPython.display import publish_display_data
from torch.utils._python_dispatch import TorchDispatchMode
from zmq.utils.garbage import GarbageCollectorThread

from launch.shared import codec

APART = 0.03
"""Seconds between the first messages of two ranks that begin one after the other."""


class Around:
    """Made in a process before its first trial. Every trial begins with the names that stand in `space` now, and leaves
    its rank clean if all else is as it is now."""

    def __init__(self, space: dict, mime: str):
        self.space, self.mime, self.names = space, mime, dict(space)
        self.groups: dict[str, dict] = {"": {}}  # by the text that has made them: the names of an exercise's groups
        self.store = dist.distributed_c10d._get_default_store()._underlying_non_prefix_store
        self.modules = [(vars(each), dict(vars(each))) for each in (torch, torch.Tensor, dist)]
        self.before, self.threaded = self.state(), False
        warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, of sys.exit(): nobody printed that
        get_ipython().InteractiveTB.set_mode("Minimal")  # nobody sees a traceback, and a long one takes 0.1 s

    def state(self) -> tuple:
        """What a function may leave changed, beside names."""
        defaults = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
        groups = [id(group) for group in dist.distributed_c10d._world.pg_map]
        # Not pyzmq's own: it starts one when the first large message leaves the rank, such as a trial's recording.
        threads = sum(not isinstance(thread, GarbageCollectorThread) for thread in threading.enumerate())
        return *defaults, groups, threads, self.store.num_keys()

    def clean(self) -> bool:
        """Whether nothing has changed since the first trial began."""
        same = all(all(map(is_, map(now.get, had), had.values())) for now, had in self.modules)
        return same and self.state() == self.before

    def begin(self, groups: str, texts: str, seed: int) -> torch.Tensor:
        """x, which is shown with what is expected."""
        x, expected = self._prepared(groups, texts, seed)
        self.show([None if tensor is None else tensor.numpy() for tensor in (x, expected)])
        return x

    def again(self, groups: str, texts: str, seed: int) -> torch.Tensor:
        """The x of a trial that has been, once more. What is expected is known and not made again."""
        return next(self._prepared(groups, texts, seed))

    def _prepared(self, groups: str, texts: str, seed: int) -> Iterator:
        """x, and then what is expected, which nobody need ask for; among fresh names. `groups` makes the exercise's
        groups, in its first trial here. `texts` define `_trial_prepared()`, which yields the two, `_trial_call(x)` and
        `_trial_answer(x, returned)`."""
        if groups not in self.groups:
            exec(groups, made := dict(self.names))
            dist.barrier()  # or another rank may still leave keys in the store
            self.groups[groups], self.before = made, self.state()
        self.space.clear()
        self.space.update(self.names | self.groups[groups], _trial_around=self, _trial_line=0)
        exec(texts, self.space)
        # Not torch.manual_seed, which takes a traceback for every kind of device that might be there later.
        torch.default_generator.manual_seed(seed + self.space["rank"])  # or x would be the same everywhere
        return self.space["_trial_prepared"]()

    def call(self, name: str, x, mode: Callable[[], AbstractContextManager] = nullcontext):
        """What the function returns; in that mode, as are the threads that it starts. If it raises an error, its
        innermost line then is `_trial_line`."""
        file, run = self.space[name].__code__.co_filename, threading.Thread.run
        self.threaded = False

        def seen_run(thread: threading.Thread) -> None:
            if thread.name.startswith("ringside-"):  # one of ours, which may live on
                return run(thread)
            self.threaded = True
            with mode():
                run(thread)

        threading.Thread.run = seen_run  # type: ignore[method-assign, assignment]
        try:
            with mode():
                return self.space["_trial_call"](x)
        except Exception as error:
            frames = traceback.walk_tb(error.__traceback__)
            lines = [line for frame, line in frames if frame.f_code.co_filename == file]
            self.space["_trial_line"] = lines[-1] if lines else 0
            raise
        finally:
            threading.Thread.run = run  # type: ignore[method-assign]

    def tampered(self, name: str, x):
        """The same, but all that is sent is changed on the way."""
        return self.call(name, x, Tamper)

    def reversed(self, name: str, x):
        """The same, but the ranks begin one after the other, the last one first."""
        time.sleep(APART * (self.space["world_size"] - 1 - self.space["rank"]))
        return self.call(name, x)

    def see(self, x, returned) -> None:
        """Shows what stands in x and in the answer now, whether the rank is clean, and whether it had threads."""
        answer = seen(self.space["_trial_answer"](x, returned)) | {"is x": returned is x}
        self.show([seen(x), answer, self.clean(), self.threaded])

    def show(self, value) -> None:
        """To the notebook's kernel, with this cell."""
        buffers: list[bytes] = []
        form = codec.encode(value, buffers)
        publish_display_data({self.mime: [form, [base64.b64encode(raw).decode() for raw in buffers]]})


def seen(tensor) -> dict:
    """What is known of a value: {"is", "dtype", "device", "values"}, or less of that."""
    if not isinstance(tensor, torch.Tensor):
        several = isinstance(tensor, (list, tuple)) and all(isinstance(each, torch.Tensor) for each in tensor)
        return {"is": type(tensor).__name__, "tensors": len(tensor) if several else 0}
    found = {"is": "Tensor", "dtype": str(tensor.dtype).removeprefix("torch."), "device": tensor.device.type}
    plain = tensor.layout == torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    if not plain or tensor.dtype == torch.bfloat16:
        return found
    return found | {"values": tensor.detach().cpu().resolve_conj().numpy()}


class Tamper(TorchDispatchMode):
    """A built-in is given other numbers, a message arrives with others than were sent."""

    _should_skip_dynamo = classmethod(lambda cls: False)  # else torch imports its compiler, for two seconds

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name == "c10d::send":  # the sender keeps what it has
            args = ([tensor * 1001 + 1000 for tensor in args[0]], *args[1:])
        elif name.startswith("_c10d_functional::") and "wait" not in name:  # these keep what they are given, too
            args = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor * 1001 + 1000, args)
        elif name.startswith("c10d::") and not name.startswith("c10d::recv"):
            for tensor in torch.utils._pytree.tree_leaves(args):
                if isinstance(tensor, torch.Tensor):
                    tensor.mul_(1001).add_(1000)
        return func(*args, **(kwargs or {}))
