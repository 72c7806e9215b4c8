"""What our own parts do and how fast, run by hand; what was measured is in docs/results. Nothing here is a test, or in the wheel.

One folder a subject; each says how it is run. `kept_rows.py` keeps the rows of a long one, `release.py` runs what only GPUs can show.
"""
