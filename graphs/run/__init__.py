"""What a run works with, whichever graph it is in: its settings, services and records, and judging a candidate once.

Below `optimize`, `refine` and `replay`, and knows none of them. `assembly.py` puts a run together, `context.py` is what nodes get.
"""
