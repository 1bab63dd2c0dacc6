"""The exercises as data, one module per chapter, named as it is. `EXERCISES` has them all by name, in that order."""

from course.chapters import modules
from course.exercises.exercise import Exercise

EXERCISES: dict[str, Exercise] = {each.name: each for module in modules(__name__).values() for each in module.EXERCISES}

__all__ = ["EXERCISES", "Exercise"]
