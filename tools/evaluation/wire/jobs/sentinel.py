"""Where a device is to be tried, and the right answer."""

from __future__ import annotations

from tools.records import Record

RIGHT = b"right"
"""What the phase answers where the device works."""


class SentinelJob(Record):
    """Where to work."""

    device: str
