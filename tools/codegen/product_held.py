"""The loop of a product with a short sum: a program holds a tile of one operand in parts, and walks all of the other.

The whole sum is one step, so `BLOCK_K` covers it. The operand that is held, the one with more elements, is read once, as float32, and split
in registers: each of its vectors lies in one tile and has its exponent there. The other one is read in parts that `halves` wrote before,
from memory once and then from the L2. Tiles are walked vectors by held ones, whichever of them are the rows of the result.
"""

from __future__ import annotations

import re

from tools.codegen.expressions import LoweringError
from tools.codegen.naming import Scope
from tools.codegen.product_limits import HELD, holds_left
from tools.codegen.product_loop import ProductLoop
from tools.codegen.product_parts import LOW
from tools.codegen.spaces import Access

LONGER = "16, 16, 1"
"""Tile and stages of a sum that is longer than as written: with them one of 1024 elements takes 132 KiB of shared memory."""
PROGRAMS = 4
"""Programs a multiprocessor from which on each walks all of the other operand; with fewer it is dealt out in shares."""


class HeldLoop(ProductLoop):
    """Writes what such a program holds, and what it makes of each tile that it walks."""

    def __post_init__(self) -> None:
        """Choose what is held; refuse other precisions, tiles by descriptor and shared sums."""
        super().__post_init__()
        if self.precision != "fp16x3" or self.described or int(self.parameters.get("SPLIT_K", 1)) > 1:
            raise LoweringError(f"programs={HELD} is for fp16x3 by pointers, without SPLIT_K")
        self.left_held = holds_left(self.plan)
        self.walking, self.holding = (1, 0) if self.left_held else (0, 1)
        self.fills_up = not self.parts[self.walking].trailing
        kept, walked = ("Rows", "columns") if self.left_held else ("Columns", "rows")
        self.title = f"{kept} of the product, held while its {walked} are walked"
        self.tile, self.tiles = ("pid_m", "tiles_m") if self.left_held else ("pid_n", "tiles_n")

    def arguments(self) -> list[str]:
        """List what the host passes in place of the operand that is walked; the other is passed as it is."""
        walked = self.parts[self.walking]
        return [*walked.names, *walked.exponent_names]

    def helpers(self) -> tuple[str, ...]:
        """Name the pass that the host calls and the function that splits what is held."""
        return (*self.parts[self.walking].helpers, *(("wide_halves",) if self.fills_up else ()), "column_halves")

    def host(self) -> list[str]:
        """Write the pass over what is walked, which fills vectors up that lie in one piece each."""
        walked = self.parts[self.walking]
        if not self.fills_up:
            return [walked.host(self.space)]
        return [f"{', '.join([*walked.names, *walked.exponent_names])} = wide_halves({walked.access.name}, n_inner)"]

    def along(self, axis: str) -> str:
        """Write a tile's positions along rows or columns of the result: held ones lie along its second dimension."""
        if (axis == "rows") == self.left_held:
            return f"tl.arange(0, {'BLOCK_M' if self.left_held else 'BLOCK_N'})[None, :]"
        return f"tl.arange(0, {'BLOCK_N' if self.left_held else 'BLOCK_M'})[:, None]"

    def hold(self, scope: Scope) -> None:
        """Write the load of what a program holds, its parts, and the loop over the share of tiles that it walks."""
        side, access, mask = self.sides[self.holding]
        tile, tiles = ("pid_n", "tiles_n") if self.left_held else ("pid_m", "tiles_m")
        scope.say("off_k = tl.arange(0, BLOCK_K)")
        scope.say(f"n_wide = tl.cdiv({self._n_inner()}, 16) * 16")
        scope.say(f"{side}_tile = {' + '.join([*self._terms(access), self._k_term(access, 'off_k[:, None]')])}")
        inside = f"{mask} & (off_k[:, None] < {self._n_inner()})"
        scope.say(f"{side} = tl.load({access.name}_ptr + {side}_tile, mask={inside}, other=0.0)")
        scope.say(f"{side}_high, {side}_low, {side}_exponent = column_halves({side})")
        scope.say(f"share = tl.cdiv({tiles}, tl.num_programs(1))")
        scope.say("first = tl.program_id(1) * share")
        scope.say(f"for {tile} in range(first, tl.minimum(first + share, {tiles})):")

    def write(self, scope: Scope, begin: str = "0", end: str = "") -> None:
        """Write the product of one tile, which it leaves in `acc`: the whole sum is one step."""
        del begin, end
        side, access, mask = self.sides[self.walking]
        held = self.sides[self.holding][0]
        place, wide = " + ".join([*self._terms(access), self._k_term(access, "off_k[None, :]")]), self._n_inner()
        if self.fills_up:
            place, wide = re.sub(rf"\b{wide}\b", "n_wide", place), "n_wide"
        scope.say(f"{side}_tile = {place}")
        inside = f"{mask} & (off_k[None, :] < {wide})"
        for name, source in self._pairs(self.walking, side):
            scope.say(f"{name} = tl.load({source}_ptr + {side}_tile, mask={inside}, other=0.0)")
        scope.say(f"small = tl.dot({side}_high, {held}_low, tl.dot({side}_low, {held}_high))")
        scope.say(f"acc = tl.fma(small, {LOW[self.precision]}, tl.dot({side}_high, {held}_high))")
        self._load_exponent(scope, self.walking)
        self._unscale(scope)

    def _k_term(self, access: Access, index: str) -> str:
        return self._step(access, self.space.axis("inner")).format(index)

    def _n_inner(self) -> str:
        return self.space.monomial(self.space.axis("inner").atoms)

    def grid(self, batch: str, device: str) -> list[str]:
        """Write tiles and grid: tiles that are held, of each product of a batch, and shares of the others where those are few."""
        p = self.parameters
        sizes = [int(p[name]) for name in ("BLOCK_M", "BLOCK_N", "num_stages")]
        held, walked = ("triton.cdiv(n_rows, block_m)", "triton.cdiv(n_cols, block_n)")[:: 1 if self.left_held else -1]
        return [
            "block_k = max(16, triton.next_power_of_2(n_inner))",
            "# a longer sum than this was chosen for leaves room for small tiles alone",
            f"block_m, block_n, stages = ({', '.join(map(str, sizes))}) if block_k <= {p['BLOCK_K']} else ({LONGER})",
            f"n_held = {batch}{held}",
            f"grid = (n_held, min({walked}, triton.cdiv({PROGRAMS} * multiprocessors({device}), n_held)))",
        ]
