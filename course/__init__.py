"""The course: chapters, exercises and their judge. What a chapter imports from here: `check` and `reveal`."""

from course.judge import check
from course.predict import reveal
from course.screen import watch

__all__ = ["check", "reveal"]

watch()
