"""The instructor's notes as data, one module per chapter, named as it is. `NOTES` has them by that name.

A chapter without notes is in the pack all the same, and the pack says that it has none.
"""

from course.notes import (
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
from course.notes.note import Notes

CHAPTERS: tuple = (
    start_here,
    ranks,
    messages,
    rooted,
    everyone,
    all_reduce,
    cost,
    algorithms,
    groups,
    topology,
    compose,
    data_parallel,
    sharding,
    tensor_parallel,
    pipeline,
    experts,
    compiler,
    when_it_hangs,
    capstone,
    interview,
)
NOTES: dict[str, Notes] = {module.__name__.rpartition(".")[2]: module.NOTES for module in CHAPTERS}
