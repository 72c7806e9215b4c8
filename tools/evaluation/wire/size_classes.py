"""From which sizes on a problem gets fewer calls."""

from __future__ import annotations

MIDDLE_BYTES = 128 << 20
LARGE_BYTES = 1 << 30
"""From these sizes on moving inputs and outputs through the host's memory costs more than all else: fewer calls are made.

A search makes none of a large problem as written beside the timed calls that are judged.
"""
