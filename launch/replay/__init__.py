"""From what the taps of all ranks saw to a Recording: a Schedule that plays, checks and counts."""
