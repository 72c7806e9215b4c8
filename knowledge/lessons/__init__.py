"""Lessons rewritten by what was measured, duplicates merged, faded ones retired; every change is logged and can be undone (`changes.py`).

`writers.py` words a lesson, `update.py` is a pass over all outcomes, `reflect.py` one within a run, `curate.py` merges and retires.
"""
