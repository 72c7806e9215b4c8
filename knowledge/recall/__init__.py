"""What is brought up for a situation, and in which order: `ranking.py`.

A trial counts by its age and by where it was made (`ageing.py`, `weighing.py`); `standing.py` sums up, `expectation.py` foretells.
"""
