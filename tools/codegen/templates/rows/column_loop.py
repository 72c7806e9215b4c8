"""How a program steps along a long row: one block, several blocks at once, or blocks of a row that is not one piece in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.codegen.ir.expr import Expr
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.body import Body
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.reductions import reduction_text


@dataclass
class Steps:
    """Writes the loop over a row's columns, or over a chunk of them (`begin` to `end`).

    A row in several pieces (the space has an axis `steps`) is walked by blocks numbered over all pieces; `begin` and `end`
    then count blocks, otherwise columns.
    """

    space: Space
    vector: bool
    """Whether a program has several rows, one below the other."""
    unroll: int = 1
    """Blocks a step takes, one below the other; only where a program has one row."""
    stages: int = 1
    chunked: bool = False
    """Whether a program walks `begin` to `end` only."""
    backwards: bool = False
    """Whether blocks are taken from the row's end."""
    wide: int = 0
    """Columns of a block at most."""
    n_piece: int = 0
    """Columns of a piece, at the sizes as written."""
    _opened: tuple[int, str] = (0, "")

    @property
    def tall(self) -> bool:
        """Whether a step takes several blocks."""
        return self.unroll > 1 and not self.vector

    @property
    def in_pieces(self) -> bool:
        """Whether rows lie in several pieces."""
        return any(axis.name == "steps" for axis in self.space.axes)

    @property
    def short(self) -> bool:
        """Whether a piece is less than a block."""
        return self.in_pieces and self.tall and power_of_two(self.n_piece) < self.wide

    @property
    def blocks_a_step(self) -> str:
        """Write how many blocks a step takes: of short pieces as many more as fill the step."""
        return f"{self.unroll * self.wide} // block_n" if self.short else str(self.unroll)

    @property
    def lanes(self) -> str:
        """Shape of an accumulator."""
        return "[ROWS, BLOCK_N]" if self.vector else "[BLOCK_N]"

    @property
    def axis(self) -> str:
        """Arguments of a reduction over an accumulator's lanes."""
        return "axis=1, keep_dims=True" if self.vector else "axis=0"

    def folded(self, body: Body, record: Expr, text: str) -> str:
        """Reduce a step's blocks to one block, each lane by itself."""
        return reduction_text(body, record, text, 0, keep=False) if self.tall else text

    def spread(self, lane_value: str) -> str:
        """Set a value of each lane against a step's blocks."""
        return f"{lane_value}[None, :]" if self.tall else lane_value

    def opening(self) -> list[str]:
        """Write what every loop over blocks needs once, before the first."""
        if self.short:
            # with the length of its pieces known, a step divides by one
            self.space.compiled_in.update(re.findall(r"[A-Za-z_]\w*", self._size("cols")))
        return [f"tiles_n = tl.cdiv({self._size('cols')}, BLOCK_N)"] if self.in_pieces else []

    def bounds(self) -> list[str]:
        """Write which chunk of its row a program has."""
        return ["begin = split * chunk", f"end = tl.minimum(begin + chunk, {self.whole()})"]

    def whole(self) -> str:
        """Write where a row ends: its columns, or its blocks."""
        return f"{self._size('steps')} * tiles_n" if self.in_pieces else self._size("cols")

    def columns(self) -> str:
        """Write how many columns a row has."""
        return f"({self._size('steps')} * {self._size('cols')})" if self.in_pieces else self._size("cols")

    def part_columns(self, first: str, last: str) -> str:
        """Write how many columns lie between two bounds."""
        if not self.in_pieces:
            return f"{last} - {first}"
        whole = f"({last} // tiles_n - {first} // tiles_n) * {self._size('cols')}"
        return f"{whole} + ({last} % tiles_n - {first} % tiles_n) * BLOCK_N"

    def loop(self, scope: Scope) -> Scope:
        """Open a loop and write its columns and their mask."""
        first, last = ("begin", "end") if self.chunked else ("0", self.whole())
        each = "BLOCK_N" if not self.in_pieces else "1"
        stride = each if not self.tall else "UNROLL" if each == "1" else f"UNROLL * {each}"
        bounds = f"{first}, {last}, {stride}"
        walk = f"range({bounds})" if self.stages <= 1 else f"tl.range({bounds}, num_stages={self.stages})"
        self._opened = (len(scope.lines), scope.indent)
        scope.say(f"for {'block' if self.in_pieces else 'start'} in {walk}:")
        inner = scope.nested()
        for line in self._blocks(last) if self.in_pieces else self._columns(last):
            inner.say(line)
        return inner

    def before(self, inner: Scope, line: str) -> None:
        """Add a line before the loop that was opened last."""
        place, indent = self._opened
        inner.lines.insert(place, indent + line)

    def _columns(self, last: str) -> list[str]:
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lane = "tl.arange(0, BLOCK_N)"
        if self.tall:
            offset = f"tl.arange(0, UNROLL)[:, None] * BLOCK_N + {lane}[None, :]"
            offset = f"({offset}){wide}" if wide else offset
        else:
            offset = f"{lane}{'[None, :]' if self.vector else ''}{wide}"
        first = "start"
        if self.backwards:
            # a chunk begins with a block, so blocks of it and of the row are the same
            first = f"{'begin + ' if self.chunked else ''}(tl.cdiv({last}, BLOCK_N) - 1) * BLOCK_N - start"
        return [f"cols = {first} + {offset}", f"mask_n = cols < {last}", *self.space.parts(self.space.axis("cols"))]

    def _blocks(self, last: str) -> list[str]:
        wide = ".to(tl.int64)" if self.space.is_wide() else ""
        lines, block, lane = [], "block", "tl.arange(0, BLOCK_N)"
        inside = f"cols < {self._size('cols')}"
        if self.tall:
            block, lane = "blocks", f"{lane}[None, :]"
            lines = ["blocks = block + tl.arange(0, UNROLL)[:, None]", f"mask_k = blocks < {last}"]
            inside = f"mask_k & ({inside})"
        steps = f"({block} // tiles_n){wide}" if wide else f"{block} // tiles_n"
        lines += [f"steps = {steps}", *self.space.parts(self.space.axis("steps"))]
        cols = self.space.parts(self.space.axis("cols"))
        return [*lines, f"cols = {block} % tiles_n * BLOCK_N + {lane}", f"mask_n = {inside}", *cols]

    def _size(self, axis: str) -> str:
        return self.space.monomial(self.space.axis(axis).atoms)
