"""The exercise of chapter 18: an order of the ranks in which those of a machine are neighbours."""

from course.exercises.exercise import A_FEW, Exercise, nobody

EXERCISES = (
    Exercise(
        name="neighbours_first",
        asks="it returns a tensor of all ranks, by the number of their machine, which is x, and those with the same "
        "number in their own order; with one all_gather of one number each; x stays as it is",
        lines=4,
        x="torch.tensor([7 + 5 * (2 * lengths[rank] % 3)]).to(dtype)",
        expected="torch.empty(world_size, dtype=dtype); dist.all_gather_single(expected, x); "
        "expected = expected.argsort(stable=True).to(dtype)",
        in_place=False,
        needs=nobody,  # numbers changed on the way stand in the same order: nothing would be seen by it
        allowed=frozenset({"all_gather", "all_gather_single"}),
        calls=lambda p: 1,
        call_bytes=lambda p: A_FEW * p,
        hints=(
            "Each rank knows its own machine only. Who tells it the others'?",
            "dist.all_gather_single(machines, x) fills a tensor of world_size numbers: machines[r] is that of rank r.",
            "Sort the ranks by their machine's number, so that equals keep their order: machines.argsort(stable=True).",
        ),
    ),
)
