"""What the calibration phase is told, and what it answers."""

from __future__ import annotations

from pydantic import Field

from tools.records import Record


class CalibrationJob(Record):
    """Where to work."""

    device: str


class CalibrationAnswer(Record):
    """How long it took."""

    median_us: float = Field(gt=0)
