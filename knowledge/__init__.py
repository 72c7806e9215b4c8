"""The knowledge base: strategies, what they were worth, and how they are found again.

The append-only log (`log`, its file in `log_file`) is the source of truth; what is known (`fold`, `entry`) is computed
from it; the vector index (`index`, `homes`, `embedding`) is rebuilt from it whenever it disagrees. `recall` ranks, `learn`
credits, `seeds` and `portable` bring strategies in and out; `sharing` exchanges events (`travel`) with other machines over a
`board` on a Chroma server. `store` is the one class that others use: an `opened` store that
recalls and learns, with its `catalogue` (looking) and its `tending` (curation and undo). `records` and `protocol` are the
contract with agents and graphs. Never write to the log but through `EventLog.writing`; never change or delete an event.
"""

from knowledge.protocol import Memory, NoMemory
from knowledge.store import KnowledgeBase

__all__ = ["KnowledgeBase", "Memory", "NoMemory"]
