"""Vectors of entries in this process's memory, fetched once: exact search among a few, where the index would filter slowly.

Chroma's nearest-neighbour graph answers without a filter in milliseconds; with one it takes time in proportion to the
whole store. A recall always filters, so it looks among the vectors of what its typed fields leave. An entry is named by
its row, the number its fold gave it, and a vector by the event that gave the entry its words: such an event belongs to one
entry, so a vector of other words, or of another entry, is never taken for the right one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from knowledge.log.buckets import Rows


class Vectors:
    """One row an entry; an entry whose words changed is fetched again."""

    def __init__(self) -> None:
        """Start empty."""
        self._matrix: Any = None
        self._words: Any = None
        """`seq` of the event whose words a row's vector stands for; 0 where there is none."""

    def missing(self, rows: Rows, words: Rows) -> Rows:
        """Rows whose vectors of these words (by `seq` of their event) are not here."""
        if self._words is None or (len(rows) and int(rows[-1]) >= len(self._words)):
            self._grow(int(rows[-1]) + 1 if len(rows) else 0, 0)
        found: Rows = rows[self._words[rows] != words]
        return found

    def put(self, rows: Sequence[int], vectors: Any, words: Sequence[int]) -> None:
        """Keep one unit vector a row."""
        import numpy as np

        block = np.asarray(vectors, dtype=np.float32)
        self._grow(max(rows) + 1, block.shape[1])
        self._matrix[list(rows)] = block
        self._words[list(rows)] = list(words)

    def nearest(self, vector: Sequence[float], rows: Rows, limit: int) -> list[tuple[int, float]]:
        """The `limit` rows whose vectors have the largest cosine with `vector`, with those, in no order."""
        import numpy as np

        if not len(rows):
            return []
        similarity = self._matrix[rows] @ np.asarray(vector, dtype=np.float32)
        if len(rows) > limit:
            kept = np.argpartition(-similarity, limit - 1)[:limit]
            rows, similarity = rows[kept], similarity[kept]
        return list(zip(rows.tolist(), similarity.tolist(), strict=True))

    def vector(self, row: int) -> np.ndarray[Any, Any]:
        """The vector of a row that is here."""
        found: np.ndarray[Any, Any] = self._matrix[row]
        return found

    def clear(self) -> None:
        """Forget all."""
        self._matrix = self._words = None

    def _grow(self, rows: int, dimensions: int) -> None:
        """Have room for so many rows; without dimensions only for their words."""
        import numpy as np

        have = 0 if self._words is None else len(self._words)
        if self._words is None or rows > have:
            words = np.zeros(max(rows, 2 * have, 256), dtype=np.int64)
            words[:have] = self._words if have else 0
            self._words = words
        held = 0 if self._matrix is None else len(self._matrix)
        if dimensions and held < len(self._words):
            # rows that were never fetched are never read
            matrix = np.zeros((len(self._words), dimensions), dtype=np.float32)
            if held:
                matrix[:held] = self._matrix
            self._matrix = matrix
