"""A finding of `kernelwright knowledge doctor`."""

from __future__ import annotations

from typing import Literal

from tools.records import Record


class Finding(Record):
    """One thing that was looked at."""

    name: str
    state: Literal["fine", "mended", "wrong"]
    said: str
    mend: str = ""
