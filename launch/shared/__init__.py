"""What the kernel, the agent and the ranks have in common: the flight recorder, and how values, errors and text
travel."""
