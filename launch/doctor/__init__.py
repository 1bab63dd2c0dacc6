"""What went wrong between the ranks of a cell: a deadlock is proved (proof.py), other trouble found."""
