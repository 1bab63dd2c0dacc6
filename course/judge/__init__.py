"""The judge: `check("ring_all_reduce")` tries a student's function on real ranks, and says what is right and wrong.

`check` is what the student calls. `screen` finds the function that is on the screen, `carry` collects its source,
`trial` runs it inside `around` on ranks of its own, and `verdict` says what is wrong: `diagnosis`, `causes`, `ways`,
`holding`, `knowledge` and `overlap` find the reason, and `advice` says what to do about a fault. `under_way` shows that
a check is running, and `playback` shows the run that was judged.
"""
