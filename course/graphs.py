"""What chapter 16 does with a function's graph: `Keep`, a backend of `torch.compile` that keeps it and runs it
unchanged, and `overlapped`, which runs torch's own pass that moves collectives. You say how long each node takes, so
it needs no GPU.

Left out: graphs with a backward pass, and everything else that Inductor does.
"""

import copy
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func


class Keep:
    """`@torch.compile(backend=keep)`: after the first call of the function, `keep.graph` is its graph of operations."""

    graph: torch.fx.GraphModule

    def __call__(self, module: torch.fx.GraphModule, inputs: list) -> Callable:
        return aot_autograd(fw_compiler=self._kept)(module, inputs)

    def _kept(self, graph: torch.fx.GraphModule, inputs: list) -> Callable:
        self.graph = graph
        return make_boxed_func(graph.forward)


def operations(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """The nodes that compute or send, in the order in which they run."""
    return [node for node in graph.graph.nodes if node.op == "call_function"]


def overlapped(graph: torch.fx.GraphModule, milliseconds: Callable) -> torch.fx.GraphModule:
    """A copy of the graph after Inductor's pass; `milliseconds(node, size)` is how long each node takes."""
    from torch._inductor.fx_passes.overlap_scheduling import schedule_overlap_bucketing

    speed = "torch.utils._runtime_estimation."  # the pass also asks what the GPU can do: an H100's figures
    with (
        patch(speed + "get_gpu_dram_gbps", lambda **_: 3350),
        patch(speed + "get_device_tflops", lambda *_, **__: 989),
    ):
        return schedule_overlap_bucketing(copy.deepcopy(graph), custom_runtime_estimation=milliseconds)
