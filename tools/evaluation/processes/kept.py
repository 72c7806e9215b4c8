"""How many processes are kept on a device between candidates: of a problem that is worked on, and of runners that wait for a candidate."""

from __future__ import annotations

LEAST, MOST = 6, 24
LEAST_SPARES, MOST_SPARES = 8, 16
"""Of eight candidates in hand each is checked in one, and timed in another."""
_SHARE, _SPARES_SHARE = 0.15, 0.1
_BYTES_EACH = 512 << 20
"""What CUDA takes for a process, its tensors apart."""


def kept_processes(device_bytes: int | None) -> int:
    """Give the number of each kind, oracle servers and baselines, for a device with so much memory."""
    return max(LEAST, min(MOST, int(_SHARE * (device_bytes or 0) / _BYTES_EACH)))


def spare_processes(device_bytes: int | None) -> int:
    """Give the number of runners that may wait on a device with so much memory."""
    return max(LEAST_SPARES, min(MOST_SPARES, int(_SPARES_SHARE * (device_bytes or 0) / _BYTES_EACH)))
