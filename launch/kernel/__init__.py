"""What runs in the kernel of the notebook: it supervises the ranks and shows what they say.

Within: the hub (sockets and its thread), the supervisor (processes), a cell under way, and what is put on the screen.
"""
