"""A job of 64 ranks that hung at night, and what the flight recorder of each rank says; another one every time.

The ranks are a mesh of 8 x 8. A step makes three all_reduces in the tensor group (8 ranks in a row) and one in the data
group (every eighth rank). One rank does something else once, and then each rank goes on until a call of its own cannot
end: a call ends when all ranks of the group are in the same call. Simulated: nothing runs.

Left out: two faults at once, and a rank whose recorder is lost.
"""

import random
from dataclasses import dataclass

from launch.shared.errors import name_ranks

RANKS, SIDE, CALLS_OF_A_STEP = 64, 8, 4
SHAPES = ((256, 192), (256, 64), (256, 256), (56000,))
"""Of the calls of a step; the last one is that of the data group."""

FAULTS = {
    "left": "a rank left the loop",
    "shape": "a rank passed another shape",
    "skipped": "a rank skipped a call",
}


@dataclass(frozen=True)
class Call:
    """One line of a flight recorder: the ranks of the group, the number of the call in it, and whether it is over."""

    group: range
    number: int
    shape: tuple[int, ...]
    over: bool


class Night:
    """`logs[rank]` are the last calls of that rank, the oldest first; `bad` is the rank to blame, for its `fault`."""

    def __init__(self, seed: int | None = None):
        chance = random.Random(seed)
        self.bad, self.fault = chance.randrange(RANKS), chance.choice(list(FAULTS))
        step = chance.randrange(3, 9)
        at = CALLS_OF_A_STEP * step + chance.randrange(CALLS_OF_A_STEP - (self.fault == "skipped"))
        self._plans = {rank: self._plan(rank, at) for rank in range(RANKS)}
        self._at = {rank: {call: index for index, call in enumerate(plan)} for rank, plan in self._plans.items()}
        self._begun = dict.fromkeys(range(RANKS), 0)
        while self._move():
            pass
        self.logs = {rank: self._log(rank) for rank in range(RANKS)}

    def __repr__(self) -> str:
        return f"Night({RANKS} ranks)"

    def why_not(self, rank: int) -> str:
        """Why that rank is not to blame; "" if it is."""
        if rank == self.bad:
            return ""
        if rank not in self.logs:
            return f"there is no rank {rank}: they are 0 to {RANKS - 1}"
        last = self.logs[rank][-1]
        waits = f"waits in call {last.number} of {name_ranks(last.group)}, and has done its part"
        return f"on a night when {FAULTS[self.fault]}, it was not rank {rank}: that one {waits}"

    def _log(self, rank: int) -> list[Call]:
        calls = self._plans[rank][: self._begun[rank]]
        return [Call(*call, over=self._over(rank, index)) for index, call in enumerate(calls)][-6:]

    def _plan(self, rank: int, at: int) -> list[tuple[range, int, tuple[int, ...]]]:
        """The calls that a rank means to make, one behind the other."""
        first = rank // SIDE * SIDE
        tensor, data = range(first, first + SIDE), range(rank % SIDE, RANKS, SIDE)
        plan, numbers = [], {tensor: 0, data: 0}
        for index in range(CALLS_OF_A_STEP * 12):
            odd = rank == self.bad and index == at
            if odd and self.fault == "left":
                break
            if odd and self.fault == "skipped":
                continue
            group = data if index % CALLS_OF_A_STEP == CALLS_OF_A_STEP - 1 else tensor
            numbers[group] += 1
            shape = SHAPES[index % CALLS_OF_A_STEP]
            plan.append((group, numbers[group], (shape[0] - 1, *shape[1:]) if odd else shape))
        return plan

    def _over(self, rank: int, index: int) -> bool:
        """Whether all ranks of the group are in the same call."""
        call = self._plans[rank][index]
        return all(self._at[other].get(call, len(self._plans[other])) < self._begun[other] for other in call[0])

    def _move(self) -> bool:
        """Lets every rank whose last call is over begin its next one; False when none can."""
        free = [
            rank
            for rank, begun in self._begun.items()
            if begun < len(self._plans[rank]) and (begun == 0 or self._over(rank, begun - 1))
        ]
        for rank in free:
            self._begun[rank] += 1
        return bool(free)
