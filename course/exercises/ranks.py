"""The exercise of chapter 1: cut a vector up, so that every rank knows its share without a word from the others."""

from course.exercises.exercise import Exercise, nobody

ONE_TOO_MANY = "torch.randint(-999, 1000, ({pieces} * world_size + 1,)).to({dtype})"
"""Does not divide by the number of ranks, and in a way in which `chunk` gives the last rank too little."""

EXERCISES = (
    Exercise(
        name="my_share",
        asks="it returns this rank's share of x: shares in rank order, lengths that differ by at most 1, longer first",
        lines=5,
        x=ONE_TOO_MANY,
        expected="torch.tensor_split(x, world_size)[rank].clone()",
        answer="returned",
        needs=nobody,
        allowed=frozenset(),
        hints=(
            "9 numbers on 4 ranks: every rank gets 9 // 4 = 2, and 9 % 4 = 1 number is left over, for rank 0.",
            "Rank r gets 1 more than the others if r < len(x) % world_size.",
            "Your share starts after those of the ranks before you: rank * base, and one more for each of them that "
            "got one more, which is min(rank, left_over).",
        ),
    ),
)
