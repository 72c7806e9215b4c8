"""From outcomes to evidence.

`learn.py` credits strategies, `replay.py` reads outcomes again, `calibration.py` holds predictions against them.
"""
