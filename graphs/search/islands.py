"""Islands of quality-diversity cells: each cell keeps the fastest program of its strategy and complexity."""

from __future__ import annotations

import math

from pydantic import Field

from tools.records import Record


class Islands(Record):
    """Partly independent archives; the cell of a candidate never depends on its speed."""

    cells: tuple[dict[str, str], ...]
    """By island: cell to the candidate it keeps."""
    home: dict[str, int] = Field(default_factory=dict)
    """Island of every candidate that entered."""
    cell_of: dict[str, str] = Field(default_factory=dict)
    """Cell of every candidate that a cell keeps."""

    @classmethod
    def empty(cls, count: int) -> Islands:
        """Make `count` empty islands."""
        return cls(cells=tuple({} for _ in range(count)))

    def entered(self, candidate: str, island: int, cell: str, speedups: dict[str, float]) -> Islands:
        """Return the islands after `candidate` competed for its cell on `island`."""
        kept = self.cells[island].get(cell)
        home = {**self.home, candidate: self.home.get(candidate, island)}
        if kept is not None and speedups[kept] >= speedups[candidate]:
            return self.model_copy(update={"home": home})
        cells = tuple({**one, cell: candidate} if i == island else one for i, one in enumerate(self.cells))
        known = {**self.cell_of, candidate: cell}
        return Islands(cells=cells, home=home, cell_of={name: known[name] for one in cells for name in one.values()})

    def migrated(self, share: float, speedups: dict[str, float]) -> Islands:
        """Return the islands after the best of each were copied to the next one around the ring."""
        result = self
        for island, cells in enumerate(self.cells):
            best = sorted(cells.values(), key=lambda name: (-speedups[name], name))
            for name in best[: math.ceil(share * len(best))]:
                result = result.entered(name, (island + 1) % len(self.cells), self.cell_of[name], speedups)
        return result

    def members(self, island: int, speedups: dict[str, float]) -> list[str]:
        """What an island keeps, the fastest first."""
        return sorted(self.cells[island].values(), key=lambda name: (-speedups[name], name))
