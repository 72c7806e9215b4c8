"""torch.autocast: which operators it rounds for, how a trace says so, and how a CPU does as a GPU would."""

REGION = "wrap_with_autocast"
"""Operator of a trace for what a forward does within `with torch.autocast(…)`, also with `enabled=False`."""
