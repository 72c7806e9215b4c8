"""What a run leaves behind: one SQLite file and one folder of sources, written as things happen and read by `runs` and `trace`.

Writers are the graph's nodes; readers are the command line and later pages. Nothing here knows what a node does.
"""

from tools.tracing.store import RunStore, Span

__all__ = ["RunStore", "Span"]
