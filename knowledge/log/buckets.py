"""Rows of entries by typed fields: each set remembers its sorted array until it changes, so that a filter costs no walk over ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    """Numbers of entries, sorted, without repeats; an entry's number is the order in which its fold first met it."""


class Bucket:
    """The entries that share their typed fields."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: set[int] = set()
        self._sorted: Rows | None = None

    def add(self, row: int) -> None:
        """Put an entry in."""
        self._rows.add(row)
        self._sorted = None

    def discard(self, row: int) -> None:
        """Take an entry out, where it is in."""
        self._rows.discard(row)
        self._sorted = None

    @property
    def rows(self) -> Rows:
        """Its entries; not to be written to."""
        if self._sorted is None:
            import numpy as np

            self._sorted = np.sort(np.fromiter(self._rows, np.int64, len(self._rows)))
        return self._sorted


def union(buckets: Sequence[Bucket]) -> Rows:
    """What is in any of these."""
    import numpy as np

    found = [bucket.rows for bucket in buckets]
    if len(found) == 1:
        return found[0]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def without(rows: Rows, other: Rows) -> Rows:
    """What is in the first and not in the second."""
    import numpy as np

    return np.setdiff1d(rows, other, assume_unique=True)
