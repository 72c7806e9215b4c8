"""Vectors of entries in this process's memory, fetched once: exact search among a few, where the index would filter slowly.

Chroma's nearest-neighbour graph answers without a filter in milliseconds; with one it takes time in proportion to the
whole store. A recall always filters, so it looks among the vectors of what its typed fields leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Vectors:
    """One row an entry; an entry whose words changed is fetched again."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[str, int] = {}
        self._text: dict[str, int] = {}
        self._matrix: Any = None

    def missing(self, wanted: Mapping[str, int]) -> list[str]:
        """Ids whose vectors of these words (by `seq` of their event) are not here."""
        return [name for name, seq in wanted.items() if self._text.get(name) != seq]

    def put(self, ids: Sequence[str], vectors: Any, wanted: Mapping[str, int]) -> None:
        """Keep one unit vector an id."""
        import numpy as np

        block = np.asarray(vectors, dtype=np.float32)
        for name in ids:
            self._rows.setdefault(name, len(self._rows))
        self._grow(len(self._rows), block.shape[1])
        self._matrix[[self._rows[name] for name in ids]] = block
        self._text.update({name: wanted[name] for name in ids})

    def nearest(self, vector: Sequence[float], ids: Iterable[str], limit: int) -> list[tuple[str, float]]:
        """The `limit` ids whose vectors have the largest cosine with `vector`, largest first; equal ones by id."""
        import numpy as np

        names = list(ids)
        if not names:
            return []
        similarity = self._matrix[[self._rows[name] for name in names]] @ np.asarray(vector, dtype=np.float32)
        kept = range(len(names)) if len(names) <= limit else np.argpartition(-similarity, limit - 1)[:limit]
        found = [(names[at], round(float(similarity[at]), 6)) for at in kept]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def vector(self, name: str) -> np.ndarray[Any, Any]:
        """The vector of an id that is here."""
        found: np.ndarray[Any, Any] = self._matrix[self._rows[name]]
        return found

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._text.clear()
        self._matrix = None

    def _grow(self, rows: int, dimensions: int) -> None:
        import numpy as np

        have = 0 if self._matrix is None else len(self._matrix)
        if rows <= have:
            return
        grown = np.zeros((max(rows, 2 * have, 256), dimensions), dtype=np.float32)
        if have:
            grown[:have] = self._matrix
        self._matrix = grown
