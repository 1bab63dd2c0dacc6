"""The questions as data, one module per chapter, named as it is. `QUESTIONS` has them all by name, in that order."""

from course.questions import (
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
    interview,
    messages,
    pipeline,
    ranks,
    rooted,
    sharding,
    start_here,
    tensor_parallel,
    topology,
    when_it_hangs,
)
from course.questions.question import Question

CHAPTERS: tuple = (
    *(start_here, ranks, messages, rooted, everyone),
    *(all_reduce, cost, algorithms, groups, topology, compose),
    *(data_parallel, sharding, tensor_parallel, pipeline, experts, compiler),
    when_it_hangs,
    capstone,
    interview,
)
QUESTIONS: dict[str, Question] = {question.name: question for module in CHAPTERS for question in module.QUESTIONS}
