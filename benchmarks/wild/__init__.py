"""What becomes of the operators of data/suites/wild without a GPU, stage by stage, and the page that says so.

`python -m benchmarks.wild.run` writes rows, `python -m benchmarks.wild.report` makes tables of them.
"""
