"""The jobs that the oracle server does, and how it says that one has ended."""

from __future__ import annotations

JOBS = ("inputs", "oracle", "sentinel", "store")
"""The phases whose work it does."""

DONE = b"done"

FAILED = b"failed"
