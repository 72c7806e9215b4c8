"""What memory costs and is worth: recall and learning at growing sizes, kills in between, real runs on recorded times.

Each is run as `python -m benchmarks.knowledge.NAME`; none needs a GPU.
"""
