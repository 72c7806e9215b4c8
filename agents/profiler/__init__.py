"""The profiler: says what limits a candidate or the reference, with its evidence.

`protocol.py` is the contract, `builtin.py` the variant of rules over counted and measured figures (the rules are in
`tools.profiling.bottleneck`), `llm.py` the language model's, `prompts/` what it is told. A variant may word the
evidence; it never makes a figure.
"""
