"""The instructor's notes as data, one module per chapter, named as it is. `NOTES` has them by that name.

A chapter without notes is in the pack all the same, and the pack says that it has none.
"""

from course.chapters import modules
from course.notes.note import Notes

NOTES: dict[str, Notes] = {name: module.NOTES for name, module in modules(__name__).items()}
