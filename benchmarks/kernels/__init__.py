"""Times of the built-in coder's own kernels, and how well the cost model ranks them.

Each is run as `python -m benchmarks.kernels.NAME`; `sweeps/` has times that were taken on an H200, which need no GPU to be read.
"""
