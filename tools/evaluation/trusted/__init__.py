"""Trusted processes: they run the reference and our own code, and never meet a candidate."""
