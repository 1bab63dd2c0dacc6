"""The exercises as data, one module per chapter, named as it is. `EXERCISES` has them all by name, in that order;
`VARIANTS` those that ask for something else of the same kind, as "shift-2"; `TASKS` has both."""

from course.chapters import modules
from course.exercises import variants, variants_later
from course.exercises.exercise import Exercise

EXERCISES: dict[str, Exercise] = {each.name: each for module in modules(__name__).values() for each in module.EXERCISES}

VARIANTS: dict[str, Exercise] = variants.made(EXERCISES, variants.CHANGED | variants_later.CHANGED)
TASKS = EXERCISES | VARIANTS

__all__ = ["EXERCISES", "TASKS", "VARIANTS", "Exercise"]
