"""The operand-stationary loop of products with a short sum: a program keeps a tile of one operand, and walks all of the other.

The whole sum as written is one step: `BLOCK_K` covers it. What a longer one has beyond that is read again for every tile. The
stationary operand, the one with more elements, is read once, as float32, and split in registers: each of its vectors lies in one tile and
has its exponent there. The other one is read in parts that `halves` wrote before, from memory once and then from the L2. Tiles are walked
vectors by stationary ones, whichever of them are the rows of the result.
"""

from __future__ import annotations

import re

from tools.codegen.ir.expr import LoweringError
from tools.codegen.templates.matmul.k_loop import MatmulLoop
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY, left_is_stationary
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.prepack import Pass
from tools.codegen.templates.shared.split_float import LOW

PROGRAMS = 4
"""Programs a multiprocessor from which on each walks all of the other operand; with fewer it is dealt out in shares."""


class OperandStationaryLoop(MatmulLoop):
    """Writes what such a program holds, and what it makes of each tile that it walks."""

    def __post_init__(self) -> None:
        """Choose what is held; refuse other precisions, tiles by descriptor and shared sums."""
        super().__post_init__()
        if self.precision != "fp16x3" or self.described or int(self.parameters.get("SPLIT_K", 1)) > 1:
            raise LoweringError(f"programs={OPERAND_STATIONARY} is for fp16x3 by pointers, without SPLIT_K")
        self.left_stationary = left_is_stationary(self.plan)
        self.walking, self.holding = (1, 0) if self.left_stationary else (0, 1)
        self.fills_up = not self.parts[self.walking].trailing
        kept, walked = ("Rows", "columns") if self.left_stationary else ("Columns", "rows")
        self.title = f"{kept} of the product, held while its {walked} are walked"
        self.tile, self.tiles = ("pid_m", "tiles_m") if self.left_stationary else ("pid_n", "tiles_n")

    def arguments(self) -> list[str]:
        """List what the host passes in place of the operand that is walked; the other is passed as it is."""
        walked = self.parts[self.walking]
        return [*walked.names, *walked.exponent_names]

    def helpers(self) -> tuple[str, ...]:
        """Name the pass that the host calls and the function that splits what is held."""
        return (*self.parts[self.walking].helpers, *(("wide_halves",) if self.fills_up else ()), "column_halves")

    def passes(self) -> list[Pass]:
        """Write the pass over what is walked, which fills vectors up that lie in one piece each."""
        walked = self.parts[self.walking]
        if not self.fills_up:
            return [walked.host(self.space)]
        made = (*walked.names, *walked.exponent_names)
        return [Pass(walked.access, f"{', '.join(made)} = wide_halves({walked.access.name}, n_inner)", made)]

    def along(self, axis: str) -> str:
        """Write a tile's positions along rows or columns of the result: held ones lie along its second dimension."""
        if (axis == "rows") == self.left_stationary:
            return f"tl.arange(0, {'BLOCK_M' if self.left_stationary else 'BLOCK_N'})[None, :]"
        return f"tl.arange(0, {'BLOCK_N' if self.left_stationary else 'BLOCK_M'})[:, None]"

    def hold(self, scope: Scope) -> None:
        """Write the load of what a program holds, its parts, and the loop over the share of tiles that it walks."""
        tile, tiles = ("pid_n", "tiles_n") if self.left_stationary else ("pid_m", "tiles_m")
        scope.say("off_k = tl.arange(0, BLOCK_K)")
        scope.say(f"n_wide = tl.cdiv({self._n_inner()}, 16) * 16")
        self._split_stationary(scope, "off_k")
        scope.say(f"share = tl.cdiv({tiles}, tl.num_programs(1))")
        scope.say("first = tl.program_id(1) * share")
        scope.say(f"for {tile} in range(first, tl.minimum(first + share, {tiles})):")

    def write(self, scope: Scope, begin: str = "0", end: str = "") -> None:
        """Write the product of one tile, which it leaves in `acc`: one step, and those that only a longer sum than as written has."""
        del begin, end
        side, stationary = self.sides[self.walking][0], self.sides[self.holding][0]
        self._walk(scope, "off_k")
        scope.say(f"acc = tl.fma(small, {LOW[self.precision]}, tl.dot({side}_high, {stationary}_high))")
        self._load_exponent(scope, self.walking)
        self._unscale(scope)
        scope.say("if LONG:")
        rest = scope.nested()
        rest.say(f"for start in range(BLOCK_K, {self._n_inner()}, BLOCK_K):")
        loop = rest.nested()
        loop.say("off_l = start + off_k")
        self._split_stationary(loop, "off_l", "next")
        self._walk(loop, "off_l", "next")
        loop.say(f"part = tl.fma(small, {LOW[self.precision]}, tl.dot({side}_high, next_high))")
        loop.say(f"exponent = -({side}_exponent + next_exponent)")
        loop.say("half = exponent >> 1")
        loop.say("acc += part * power_of_two(half) * power_of_two(exponent - half)")

    def _walk(self, scope: Scope, place: str, stationary: str = "") -> None:
        """Write the loads of one step of a tile that is walked, and the small products of its parts."""
        side, access, mask = self.sides[self.walking]
        stationary = stationary or self.sides[self.holding][0]
        there, wide = " + ".join([*self._terms(access), self._k_term(access, f"{place}[None, :]")]), self._n_inner()
        if self.fills_up:
            there, wide = re.sub(rf"\b{wide}\b", "n_wide", there), "n_wide"
        scope.say(f"{side}_tile = {there}")
        inside = f"{mask} & ({place}[None, :] < {wide})"
        for name, source in self._pairs(self.walking, side):
            scope.say(f"{name} = tl.load({source}_ptr + {side}_tile, mask={inside}, other=0.0)")
        scope.say(f"small = tl.dot({side}_high, {stationary}_low, tl.dot({side}_low, {stationary}_high))")

    def _split_stationary(self, scope: Scope, place: str, name: str = "") -> None:
        """Write the load of one step of what is held, and its parts."""
        side, access, mask = self.sides[self.holding]
        scope.say(f"{side}_tile = {' + '.join([*self._terms(access), self._k_term(access, f'{place}[:, None]')])}")
        inside = f"{mask} & ({place}[:, None] < {self._n_inner()})"
        scope.say(f"{side} = tl.load({access.name}_ptr + {side}_tile, mask={inside}, other=0.0)")
        scope.say(f"{name or side}_high, {name or side}_low, {name or side}_exponent = column_halves({side})")

    def _k_term(self, access: Access, index: str) -> str:
        return self._step(access, self.space.axis("inner")).format(index)

    def _n_inner(self) -> str:
        return self.space.monomial(self.space.axis("inner").atoms)

    def grid(self, batch: str, device: str) -> list[str]:
        """Write the grid: tiles that are held, of each product of a batch, and shares of the others where those are few."""
        p = self.parameters
        rows, cols = f"triton.cdiv(n_rows, {p['BLOCK_M']})", f"triton.cdiv(n_cols, {p['BLOCK_N']})"
        stationary, walked = (rows, cols) if self.left_stationary else (cols, rows)
        return [
            f"block_k = min({p['BLOCK_K']}, max(16, triton.next_power_of_2(n_inner)))",
            f"n_held = {batch}{stationary}",
            f"grid = (n_held, min({walked}, triton.cdiv({PROGRAMS} * multiprocessors({device}), n_held)))",
        ]
