"""The questions as data, one module per chapter, named as it is. `QUESTIONS` has them all by name, in that order."""

from course.questions import all_reduce, cost, everyone, messages, ranks, rooted, start_here
from course.questions.question import Question

CHAPTERS: tuple = (start_here, ranks, messages, rooted, everyone, all_reduce, cost)
QUESTIONS: dict[str, Question] = {question.name: question for module in CHAPTERS for question in module.QUESTIONS}
