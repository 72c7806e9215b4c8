"""How many trusted processes are kept on a device between candidates: one of a problem that is worked on should never be started twice."""

from __future__ import annotations

LEAST, MOST = 6, 24
_SHARE = 0.15
_BYTES_EACH = 512 << 20
"""What CUDA takes for a process, its tensors apart."""


def kept_processes(device_bytes: int | None) -> int:
    """Give the number of each kind, oracle servers and baselines, for a device with so much memory."""
    return max(LEAST, min(MOST, int(_SHARE * (device_bytes or 0) / _BYTES_EACH)))
