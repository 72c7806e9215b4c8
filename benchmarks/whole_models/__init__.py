"""Whole models of seven kinds, end to end: eager, torch.compile and max-autotune, each with our operators and without."""
