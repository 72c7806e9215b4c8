"""Poolings: reductions over a sliding window."""
