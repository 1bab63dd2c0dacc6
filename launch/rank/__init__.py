"""What runs in the process of a rank: the kernel for its cells, the tap that sees what it sends, how it is freed."""
