"""A fast evaluator for the built-in coder's own kernels, which need no walls; nothing of a language model's is ever judged here.

`python -m benchmarks.lab.worker SPOOL STORE.jsonl` answers a spool with it, on a GPU; other folders ask it directly.
"""
