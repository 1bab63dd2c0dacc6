"""The exercise of chapter 1: cut a vector up, so that each rank knows its share without a message."""

from course.exercises.exercise import Exercise, nobody

EXERCISES = (
    Exercise(
        name="my_share",
        asks="it returns this rank's share of x and sends nothing: shares in rank order, lengths that differ by at "
        "most 1, longer ones first; x stays as it is",
        lines=5,
        x="torch.randint(low, high, (pieces // 2 * p + uneven,)).to(dtype) * scale",  # at times fewer than ranks
        expected="torch.tensor_split(x, world_size)[rank].clone()",
        in_place=False,
        needs=nobody,
        allowed=frozenset(),
        hints=(
            "9 numbers on 4 ranks: each rank gets 9 // 4 = 2, and 9 % 4 = 1 number is left over, for rank 0.",
            "Rank r gets 1 more than the others if r < len(x) % world_size.",
            "Your share starts after those of the ranks before you. That is rank * base numbers, plus 1 for "
            "every earlier rank that got an extra number. There are min(rank, left_over) of those.",
        ),
    ),
)
