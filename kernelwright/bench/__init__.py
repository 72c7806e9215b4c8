"""Benchmarks: a suite's problems, each optimised under every arm and seed, and the report on what came of it.

`settings` says what is compared, `jobs` is the plan of work, `running` does it, `row` is what is kept of each run, `report` reads the rows
again and says what they show. Statistics are in files of their own and know nothing of runs; figures measured and figures
estimated never meet in one table. Touch a row's meaning only with its `ROW_VERSION`.
"""
