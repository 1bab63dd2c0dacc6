"""The course: chapters, exercises and their judge. What a chapter imports from here: `ask`, `check`, `again`."""

from course.again import again
from course.ask import ask
from course.judge import check
from course.memory import show as progress
from course.screen import watch

__all__ = ["again", "ask", "check", "progress"]

watch()
