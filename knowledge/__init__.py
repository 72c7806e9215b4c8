"""The knowledge base: strategies, what they were worth, and how they are found again.

`log/` is the source of truth, `vectors/` an index that is rebuilt from it. `recall/` ranks, `learning/` credits, `lessons/` rewrites and
curates, `sharing/` brings strategies in and out. `store.py` is the one class that others use: an `opened.py` store that recalls and
learns, with its `catalogue.py` (looking) and its `tending.py` (curation and undo). `records/` and `protocol.py` are the contract with
agents and graphs. Never write to the log but through `EventLog.writing`; never change or delete an event.
"""

from knowledge.protocol import Memory, NoMemory
from knowledge.store import KnowledgeBase

__all__ = ["KnowledgeBase", "Memory", "NoMemory"]
