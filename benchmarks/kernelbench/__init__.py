"""Runs on KernelBench's problems beside `kernelwright bench`: coverage, first choices without a search, confirmation of what was delivered.

Each is run as `python -m benchmarks.kernelbench.NAME SUITE …`, where SUITE is a clone of KernelBench; `--help` has the rest.
"""
