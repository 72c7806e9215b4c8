"""Search methods held against each other: on recorded landscapes without a device, and in whole runs on a GPU; what the loop costs.

Each is run as `python -m benchmarks.search.NAME`. `landscapes/` has recorded tables, `simulator.py` runs a method on one.
"""
