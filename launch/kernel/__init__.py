"""What runs in the notebook's kernel: it supervises the ranks and shows what they print and return."""
