"""What a phase says that was only to show that the walls stand."""

from __future__ import annotations

WORKS = b"works"
