"""The evaluator under load and under attack: its rate, its repeatability, hostile and honest kernels, soaks, workers that are killed.

Each is run as `python -m benchmarks.evaluator.NAME`; most go on where they were cut off, and take `--gpu`.
"""
