"""The instructor's pack: `python -m course.pack`, or `make pack` (course/pack/__main__.py)."""
