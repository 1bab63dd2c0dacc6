"""The questions as data, one module per chapter, named as it is. `QUESTIONS` has them all by name, in that order."""

from course.chapters import modules
from course.questions.question import Question
from course.withheld import released

CHAPTERS = modules(__name__)
QUESTIONS: dict[str, Question] = {}


def unseal() -> None:
    """Put in place what a lecturer has released since: the questions of these chapters, with their answers."""
    for name, files in released().items():
        exec(files.get(f"questions/{name}.py", ""), vars(CHAPTERS[name]))
    QUESTIONS.update((each.name, each) for module in CHAPTERS.values() for each in module.QUESTIONS)


unseal()
