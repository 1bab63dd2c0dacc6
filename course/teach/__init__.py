"""For lecturers: the commands `ringside withhold`, `release`, `handed-in`, `exam`, `homework` and `room`. No student's
copy has it.

`handed_in` makes the table of a class, with `regrade`, `alike` and `class_page`; `amount` and `quantity` read numbers
as students write them. Slides and notes are in `course/pack`.
"""
