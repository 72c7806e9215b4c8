"""Products whose operands are computed on their way, several of them a kernel."""
