"""`InOrder`: torch's pipeline runtime, on an order of your own, with the backward pass in two parts.

torch's schedules (`ScheduleZBVZeroBubble` and others) work out a list of actions for each rank and hand it to one
runtime, which adds the sends and receives. This hands it another list: actions as in `collectives/pipeline.py`.

Left out: several stages on a rank.
"""

from collections.abc import Callable, Iterable

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
