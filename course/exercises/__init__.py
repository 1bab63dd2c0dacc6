"""The exercises as data, one module per chapter. `EXERCISES` has them all by name, in the order of the chapters."""

from course.exercises import (
    algorithms,
    all_reduce,
    capstone,
    compiler,
    compose,
    cost,
    data_parallel,
    everyone,
    experts,
    groups,
    messages,
    pipeline,
    ranks,
    rooted,
    sharding,
    start,
    tensor_parallel,
    when_it_hangs,
)
from course.exercises.exercise import Exercise

CHAPTERS = (
    *(start, ranks, messages, rooted, everyone),
    *(all_reduce, cost, algorithms, groups, compose),
    *(data_parallel, sharding, tensor_parallel, pipeline, experts, compiler),
    when_it_hangs,
    capstone,
)
EXERCISES: dict[str, Exercise] = {exercise.name: exercise for module in CHAPTERS for exercise in module.EXERCISES}

__all__ = ["EXERCISES", "Exercise"]
