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
    "left": "it left the loop: its last call is over, and it never made the next one",
    "shape": "it passed another shape to the call in which its group waits",
    "skipped": "it skipped a call of its tensor group: where the others are in one call, it is already in the next",
}


@dataclass(frozen=True)
class Call:
    """One line of a flight recorder: the number of the call in its group, and whether it is over."""

    group: str
    number: int
    shape: tuple[int, ...]
    over: bool


def group_of(kind: str, rank: int) -> range:
    """The ranks of the tensor or the data group of that rank."""
    first = rank // SIDE * SIDE
    return range(first, first + SIDE) if kind == "tensor" else range(rank % SIDE, RANKS, SIDE)


class Night:
    """`of(rank)` is what its flight recorder holds; `accuse(rank)` says whether that rank is to blame."""

    def __init__(self, seed: int | None = None):
        chance = random.Random(seed)
        self._bad, self._fault = chance.randrange(RANKS), chance.choice(list(FAULTS))
        step = chance.randrange(3, 9)
        at = CALLS_OF_A_STEP * step + chance.randrange(CALLS_OF_A_STEP - (self._fault == "skipped"))
        self._plans = {rank: self._plan(rank, at) for rank in range(RANKS)}
        self._begun = dict.fromkeys(range(RANKS), 0)
        while self._move():
            pass

    def __repr__(self) -> str:
        return f"Night({RANKS} ranks)"

    def of(self, rank: int) -> list[Call]:
        """The last calls of that rank, the oldest first."""
        done = self._begun[rank]
        calls = [Call(*call, over=self._over(rank, index)) for index, call in enumerate(self._plans[rank][:done])]
        return calls[-6:]

    def accuse(self, rank: int) -> None:
        """Print whether it is that rank, and if not, why not."""
        if rank == self._bad:
            print(f"Yes, rank {rank}: {FAULTS[self._fault]}.")
            return
        last = self.of(rank)[-1]
        waits = f"waits in call {last.number} of {name_ranks(group_of(last.group, rank))}"
        print(f"Not rank {rank}: it {waits}, and has done its part. Who is not there, or not in the same call?")

    def _plan(self, rank: int, at: int) -> list[tuple[str, int, tuple[int, ...]]]:
        """The calls that a rank means to make, one behind the other."""
        plan, numbers = [], {"tensor": 0, "data": 0}
        for index in range(CALLS_OF_A_STEP * 12):
            odd = rank == self._bad and index == at
            if odd and self._fault == "left":
                break
            if odd and self._fault == "skipped":
                continue
            kind = "data" if index % CALLS_OF_A_STEP == CALLS_OF_A_STEP - 1 else "tensor"
            numbers[kind] += 1
            shape = SHAPES[index % CALLS_OF_A_STEP]
            plan.append((kind, numbers[kind], (shape[0] - 1, *shape[1:]) if odd else shape))
        return plan

    def _over(self, rank: int, index: int) -> bool:
        """Whether all ranks of the group are in the same call."""
        call = self._plans[rank][index]
        return all(call in self._plans[other][: self._begun[other]] for other in group_of(call[0], rank))

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
