"""The turn that native code of others is taken in: torch's tracing, Chroma's embedded index and its SQLite, embedding models.

torch.export is not safe in two threads at once, and Chroma's core has crashed whole processes where several threads of one asked it.
Several runs share a process: whatever is theirs of this holds `TURN`, so that one thread of the process is in any of it at a time.
What holds it is bound to one core by Python's own lock in any case. It is taken in worker threads, never waited for in an event loop.
"""

from __future__ import annotations

import threading

TURN = threading.RLock()
"""Held while a reference is traced, and while a knowledge base is read or written."""
