"""What a rank keeps in memory while it trains: weights, gradients, the optimizer's state, activations; ZeRO 0 to 3.

ZeRO cuts what is the same on all ranks into p shards, one for each rank: stage 1 the optimizer's state, 2 the gradients
too, 3 the weights too. A step goes layer by layer, forward and back. With ZeRO-3 a layer is gathered before it computes
and freed afterwards; from ZeRO-2 on a gradient is reduce-scattered as soon as it is ready.

    Training([8e9 / 32] * 32, ranks=16, stage=3).peak            bytes that a rank has at most
    Training.of("Llama 3 8B", ranks=16, stage=3, tokens=8192)    a model by its name

Left out: fragmentation by the allocator, prefetching (which keeps one more layer whole), and the shard that FSDP keeps
beside a gathered layer: here a layer counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from collectives.errors import check_ranks

STAGES = ("no ZeRO", "ZeRO-1", "ZeRO-2", "ZeRO-3")
PER_LAYER = 34  # bytes of activations per token and unit of the hidden size: Korthikanti et al., 2022


class Shape(NamedTuple):
    """Parameters in all, layers, and the hidden size."""

    parameters: float
    layers: int
    hidden: int


MODELS = {
    "GPT-2": Shape(124e6, 12, 768),
    "Llama 3 8B": Shape(8.03e9, 32, 4096),
    "Llama 3 70B": Shape(70.6e9, 80, 8192),
    "Llama 3 405B": Shape(406e9, 126, 16384),
}


class Moment(NamedTuple):
    """What a rank holds at one moment of a step. For each layer, the share of its weights, gradient and activations
    in memory: 1 for all, 1/p for a shard, 0 for none.

    phase   "start", "forward", "backward", "reduce" (all gradients are summed), or "update"
    layer   the one that computes, from 0; None if none does
    """

    phase: str
    layer: int | None
    weights: tuple[float, ...]
    gradients: tuple[float, ...]
    activations: tuple[float, ...]


@dataclass(frozen=True)
class Training:
    """One step of training on p ranks, each with data of its own.

    layers       the number of parameters of each layer
    stage        the stage of ZeRO, 0 to 3
    weight, gradient, optimizer   bytes for one parameter; the defaults are those of mixed precision with Adam
    activation   bytes that each layer keeps from its forward to its backward pass

    ValueError for impossible values.
    """

    layers: Sequence[float]
    ranks: int
    stage: int = 0
    weight: float = 2
    gradient: float = 2
    optimizer: float = 12
    activation: float = 0.0

    def __post_init__(self) -> None:
        check_ranks("Training", self.ranks)
        if not self.layers or min(self.layers) <= 0:
            raise ValueError("Training needs the number of parameters of each layer, such as [1e6, 1e6]")
        if self.stage not in range(4):
            raise ValueError(f"stage is that of ZeRO, 0 to 3; got {self.stage!r}")

    @classmethod
    def of(cls, model: str, ranks: int, stage: int = 0, tokens: float = 0, units: int = 8) -> Training:
        """A model by its name. `tokens` is the number in one rank's batch; the model is gathered in `units` parts.

        Each layer's activations take 34 bytes per token and unit of the hidden size (Korthikanti et al., 2022: without
        attention's scores, which fused kernels do not keep, and without recomputing)."""
        if model not in MODELS:
            raise ValueError(f"no model is called {model!r}; there are {', '.join(MODELS)}")
        shape = MODELS[model]
        activation = PER_LAYER * tokens * shape.hidden * shape.layers / units
        return cls([shape.parameters / units] * units, ranks, stage, activation=activation)

    @property
    def kept(self) -> float:
        """Bytes of weights, gradients and optimizer's state that stay on a rank: the number in tables of ZeRO."""
        cut = [self.ranks if self.stage >= first else 1 for first in (3, 2, 1)]
        per = (self.weight, self.gradient, self.optimizer)
        return sum(self.layers) * sum(size / share for size, share in zip(per, cut, strict=True))

    @cached_property
    def moments(self) -> list[Moment]:
        """The moments of a step: its start, each layer forward, each backward, all gradients summed, the update."""
        count, shard = len(self.layers), 1 / self.ranks
        rest = shard if self.stage >= 3 else 1.0  # of the weights of a layer that is not computing
        summed = shard if self.stage >= 1 else 1.0
        early = shard if self.stage >= 2 else 1.0  # of a gradient that is ready before all of them are

        def moment(phase: str, layer: int | None, gradients: Sequence[float], active: int) -> Moment:
            weights = tuple(1.0 if i == layer else rest for i in range(count))
            return Moment(phase, layer, weights, tuple(gradients), tuple(float(i < active) for i in range(count)))

        nothing = [0.0] * count
        made = [moment("start", None, nothing, 0)]
        made += [moment("forward", i, nothing, i + 1) for i in range(count)]
        for i in reversed(range(count)):
            made.append(moment("backward", i, [0.0] * i + [1.0] + [early] * (count - 1 - i), i + 1))
        return [*made, moment("reduce", None, [summed] * count, 0), moment("update", None, nothing, 0)]

    def held(self, moment: Moment) -> dict[str, float]:
        """Bytes of each kind at that moment."""
        state = sum(self.layers) * self.optimizer / (self.ranks if self.stage >= 1 else 1)
        return {
            "weights": self.weight * sum(n * part for n, part in zip(self.layers, moment.weights, strict=True)),
            "gradients": self.gradient * sum(n * part for n, part in zip(self.layers, moment.gradients, strict=True)),
            "optimizer": state,
            "activations": self.activation * sum(moment.activations),
        }

    @property
    def totals(self) -> list[float]:
        """Bytes at each moment."""
        return [sum(self.held(moment).values()) for moment in self.moments]

    @property
    def peak(self) -> float:
        """Bytes at the worst moment."""
        return max(self.totals)
