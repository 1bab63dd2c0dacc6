"""The questions as data, one module per chapter, named as it is. `QUESTIONS` has them all by name, in that order."""

from course.chapters import modules
from course.questions.question import Question

CHAPTERS = modules(__name__)
QUESTIONS: dict[str, Question] = {each.name: each for module in CHAPTERS.values() for each in module.QUESTIONS}
