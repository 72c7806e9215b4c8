"""The turn that native code of others is taken in: torch's tracing, Chroma's embedded index and its SQLite, embedding models.

torch.export is not safe in two threads at once, and a bench of eight runs with memory, on 64 cores, twice ended in a segmentation fault as
several threads opened memories beside one that traced. Which of the libraries it was is not known; none of them alone, or beside the
event loop, ever did. So whatever a run does of this holds `TURN`: one thread of the process is in any of it at a time. It costs no time
that was noticed: Python's own lock keeps most of it to one core in any case. Take it in worker threads; an event loop must not wait for it.
"""

from __future__ import annotations

import threading

TURN = threading.RLock()
"""Held while a reference is traced, and while a knowledge base is read or written."""
