"""Where a program's tile of a product lies: its batch, rows and columns, by the number of the program."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.templates.shared.iteration_space import Space


@dataclass(frozen=True)
class TilePlace:
    """Writes where tiles are."""

    space: Space
    is_batched: bool
    split: bool
    """Whether several programs share a tile (split-K), whose parts lie one behind the other."""

    def sizes(self) -> dict[str, str]:
        """Write the size of each axis."""
        return {axis.name: self.space.monomial(axis.atoms) for axis in self.space.axes}

    def counts(self) -> list[str]:
        """Write how many tiles there are."""
        size = self.sizes()
        return [f"    tiles_m = tl.cdiv({size['rows']}, BLOCK_M)", f"    tiles_n = tl.cdiv({size['cols']}, BLOCK_N)"]

    def of_pid(self, grouped: bool, rows: str = " + tl.arange(0, BLOCK_M)[:, None]") -> list[str]:
        """Write where the tile of number `pid` lies, its `rows` counted from its first one."""
        lines = self.batch("(tiles_m * tiles_n)")
        if self.is_batched:
            lines.append("    pid = pid % (tiles_m * tiles_n)")
        if grouped:
            lines += [
                "    group = pid // (GROUP_M * tiles_n)",
                "    group_rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)",
                "    pid_m = group * GROUP_M + pid % (GROUP_M * tiles_n) % group_rows",
                "    pid_n = pid % (GROUP_M * tiles_n) // group_rows",
            ]
        else:
            lines += ["    pid_m = pid // tiles_n", "    pid_n = pid % tiles_n"]
        return [*lines, *self.rows(rows), *self.columns()]

    def batch(self, each: str) -> list[str]:
        """Write which of a batch's products `pid` is of, where each has so many."""
        if not self.is_batched:
            return []
        found = [f"batch = (pid // {each}).to(tl.int64)", *self.space.parts(self.space.axis("outer"))]
        return ["    " + line for line in found]

    def rows(self, rows: str = " + tl.arange(0, BLOCK_M)[:, None]") -> list[str]:
        """Write the rows of the tile `pid_m`, and which of them there are."""
        found = [f"off_m = pid_m{self._wide()} * BLOCK_M{rows}", f"mask_m = off_m < {self.sizes()['rows']}"]
        return ["    " + line for line in (*found, *self.space.parts(self.space.axis("rows")))]

    def columns(self, cols: str = " + tl.arange(0, BLOCK_N)[None, :]") -> list[str]:
        """Write the columns of the tile `pid_n`, and which of them there are."""
        found = [f"off_n = pid_n{self._wide()} * BLOCK_N{cols}", f"mask_n = off_n < {self.sizes()['cols']}"]
        return ["    " + line for line in (*found, *self.space.parts(self.space.axis("cols")))]

    def _wide(self) -> str:
        return ".to(tl.int64)" if self.space.is_wide() or self.split else ""
