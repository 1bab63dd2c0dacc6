"""`InOrder`: torch's pipeline runtime, on an order of your own, with the backward pass in two parts. `schedules`: that
order beside four of torch's own.

torch's schedules (`ScheduleZBVZeroBubble` and others) work out a list of actions for each rank and hand it to one
runtime, which adds the sends and receives. This hands it another list: actions as in `collectives/pipeline.py`.

Left out: several stages on a rank, in an order of your own.
"""

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
import torch.distributed.pipelining as pp
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _ComputationType, _PipelineScheduleRuntime

from collectives.pipeline import Order

KINDS = {
    "F": _ComputationType.FORWARD,
    "B": _ComputationType.FULL_BACKWARD,
    "I": _ComputationType.BACKWARD_INPUT,
    "W": _ComputationType.BACKWARD_WEIGHT,
}


class InOrder(_PipelineScheduleRuntime):
    """Runs this rank's stage in the order of a list for each rank: ["F1", "I1", "W1", ...]. ValueError for a list that
    is no order, or that waits forever."""

    def __init__(self, stage: PipelineStage, orders: Iterable[Iterable[str]], loss_fn: Callable):
        order = Order("yours", orders)
        if order.stuck:
            raise ValueError(order.stuck)
        super().__init__([stage], order.micro, loss_fn=loss_fn)
        self.pipeline_order = {
            rank: [_Action(action.stage, KINDS[action.kind], action.micro - 1) for action in actions]
            for rank, actions in enumerate(order.orders)
        }
        self._prepare_schedule_with_comms(self.pipeline_order)


def schedules(model: torch.nn.Sequential, orders: Iterable[Iterable[str]], loss_fn: Callable) -> dict[str, Callable]:
    """For each of five orders a function that runs one step of it: run(x, target), both alike on all ranks. The model
    has two layers for each rank; a rank has one stage of two layers, or two stages of one. 8 micro-batches."""
    rank, p = dist.get_rank(), dist.get_world_size()
    cpu = torch.device("cpu")

    def whole() -> PipelineStage:
        return PipelineStage(model[2 * rank : 2 * rank + 2], rank, p, cpu)

    def halves(*numbers: int) -> list[PipelineStage]:
        return [PipelineStage(model[i : i + 1], i, 2 * p, cpu) for i in numbers]

    made = {
        "1F1B": pp.Schedule1F1B(whole(), 8, loss_fn=loss_fn),
        "yours": InOrder(whole(), orders, loss_fn),
        "interleaved": pp.ScheduleInterleaved1F1B(halves(rank, rank + p), 8, loss_fn=loss_fn),
        "ZBV": pp.ScheduleZBVZeroBubble(halves(rank, 2 * p - 1 - rank), 8, loss_fn=loss_fn),
        "DualPipeV": pp.ScheduleDualPipeV(halves(rank, 2 * p - 1 - rank), 8, loss_fn=loss_fn),
    }

    def runs(name: str, schedule) -> Callable:
        end = 0 if name in ("ZBV", "DualPipeV") else p - 1  # a V ends where it began

        def run(x: torch.Tensor, target: torch.Tensor) -> None:
            schedule.step(*([x] if rank == 0 else []), **({"target": target} if rank == end else {}))

        return run

    return {name: runs(name, schedule) for name, schedule in made.items()}
