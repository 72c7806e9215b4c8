"""Instructions of a tile's formulas, orders and accesses, as its threads make them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from tools.codegen.templates.shared.iteration_space import is_fixed_divisor
from tools.codegen.templates.shared.work import DIVISION, FIXED_DIVISION, INSTRUCTION_BYTES, OVERHEAD, WARP, crowding
from tools.codegen.templates.tile.laid import Laid
from tools.codegen.templates.tile.layout import Groups
from tools.codegen.templates.tile.orders import ORDER_BYTES, Way, count_picked, crossings, is_whole, passed, way_of
from tools.codegen.templates.tile.touched import Touched

SINE_BYTES = 1400.0
"""Machine code of a sine or cosine on sm_90 that seldom runs."""
ORDER_CODE_BYTES = 80e3
"""What of a program's code runs at full rate where it puts rows in order: 64 of 2048 elements, 4096 rows, take 138 µs in single
warps, 99 in two (an H100, 2026-11-26)."""
REGISTERS = (20.0, 0.6, 0.4, 0.5, 2.0, 4.0)
"""Registers of a thread: its own; for each of its elements of the largest value; for each word that it loads, for each that it makes before
a walk; for each element of what it adds up in a loop; for each reduction. A fit to 81 kernels, counted (sm_90, Triton 3.9, 2026-11-26): off
by 23 % on average; one for each element of every access was off by 55 %, mostly too many."""
ACROSS_ROOTS = 1.0
"""The same for each word that it loads where square roots are taken: each has a branch for the smallest numbers, over which a compiler
moves nothing, so that all that was loaded for a tile stays. Distances with 112 words a thread have 185 registers, rotations with 96 have
128, harmonics with 89 have 116, angles with 48 have 72: counted, where the fit above says 111, 63, 60 and 44 (sm_90, Triton 3.9)."""
SHUFFLED = 5.0
"""Instructions' time of a word that is handed to another lane, of which a multiprocessor passes 32 a clock, with what adds it up. 480 of
them, as counted here, are in the machine code of the overlaps of boxes with 32 columns a warp (sm_90, Triton 3.6)."""
CROWDED, SPILLED = 224.0, 12.0
"""Registers of a thread, guessed, beyond which some do not fit, and how often what does not is stored and read: 64 rows of 64 classes with
their shares in 8 warps, guessed at 284, store 2,200 bytes a thread and take 210 µs, ten times their other time (an H100, 2026-11-26)."""
CROSSED = 12.0
"""The same for each element of the largest value where values of different dimensions meet: 8 of 64 rows, 64 classes and 64 columns do not
fit into 128 registers (counted, sm_90)."""
KEY_REGISTERS = 6.0
"""Registers of an element of a thread that is put in order, beside one for each that is picked: 64 and 32 of 2048 in four warps have 197
and 125, counted (sm_90)."""
MOST_PICKED = 64
"""Elements picked that were counted: more take no more, and none where a row is sorted whole: 4,096 in 8, 16 and 32 warps have 156, 116 and
64 registers (counted, sm_90, Triton 3.9)."""


class Reduced(NamedTuple):
    """One reduction along one axis of a tile."""

    results: int
    """Of a thread, each of which is a sum of what several have."""
    lanes: int
    """Lanes of a warp that share one."""
    warps: int
    """Warps that share one."""
    words: int
    steps: float
    """Steps in which it is made once."""


class Instructions:
    """What the tiles of a region execute."""

    def __init__(self, laid: Laid) -> None:
        """Count for tiles."""
        self.plan, self.tiling, self.laid, self.work = laid.plan, laid.tiling, laid, laid.work

    @cached_property
    def a_step(self) -> float:
        """Instructions of a thread in one step: formulas, accesses, reductions, and numbers that are taken apart."""
        work = sum(self._divisions(groups) * self.laid.lanes.held(frozenset([dim])) for dim, groups in self.laid.dims.items())
        work /= self.tiling.once if self.tiling.loop is None else 1.0
        for kind, count in (*self.work.formulas.items(), *self.work.orders.items()):
            work += count * self.laid.made(kind)
        return work + sum(OVERHEAD * one.asked + 2 * one.turned for one in self.laid.accesses) + SHUFFLED * self.shuffles

    @property
    def shuffles(self) -> float:
        """Words that a thread hands to other lanes in one step: one for each result and each halving of the lanes along what is reduced."""
        return sum(each.results * math.log2(each.lanes) * each.words / each.steps for each in self._reduced)

    @cached_property
    def crossings(self) -> float:
        """Clocks in which the shared memory passes on what the warps of a program have each of one sum, in one step.

        A thread lays its results side by side: the more there are, the more of its neighbours' lie in the same bank, when they are stored
        and when they are read again.
        """
        warps = self.tiling.threads // WARP
        across = [each for each in self._reduced if each.warps > 1]
        found = sum(passed(warps, each.results, each.words, each.warps, max(1, WARP // each.lanes)) / each.steps for each in across)
        held = sum(self.laid.held(kind) for kind in self.work.orders)
        orders = [expr for expr in self.plan.reductions if self.plan.b.exprs[expr].op == "order"]
        return found + sum(crossings(self.plan.b, expr, warps, held) for expr in orders)

    @cached_property
    def _reduced(self) -> list[Reduced]:
        """List the reductions of a step, axis by axis, the last one first."""
        found: list[Reduced] = []
        for expr in self.plan.reductions:
            if self.plan.b.exprs[expr].op == "reduce":
                at_end = self.tiling.loop is not None and expr in self.tiling.apart
                found += self._by_axis(expr, self.tiling.steps if at_end else 1.0)
        return found

    def _by_axis(self, expr: int, steps: float) -> Iterator[Reduced]:
        b, record = self.plan.b, self.plan.b.exprs[expr]
        own, reduced = self.plan.leaves[record.args[0]], frozenset(b.atoms.leaves(record.extra))
        axes = self.laid.atoms
        left = {dim for dim, atoms in axes.items() if atoms & own}
        lies = self.laid.lanes.of(frozenset(left))
        words = 2 if b.exprs[record.args[0]].dtype in ("int64", "float64") else 1
        for dim in sorted((dim for dim in left if axes[dim] & reduced), reverse=True):
            left -= {dim}
            results = math.prod(lies.held[other] for other in left)
            warps = self.laid.lanes.extents[dim] // (lies.held[dim] * lies.lanes[dim])
            yield Reduced(results, lies.lanes[dim], max(1, warps), words, steps)

    def _divisions(self, groups: Groups) -> float:
        """Instructions by which a lane takes its number along an axis apart, whatever a tile's size."""
        known: dict[Groups, float] = self.plan.__dict__.setdefault("_divisions", {})
        if groups not in known:
            known[groups] = sum(FIXED_DIVISION if is_fixed_divisor(self.plan.b.count(group)) else DIVISION for group in groups[1:])
        return known[groups]

    def crowding(self, a_thread: float) -> float:
        """How much longer instructions take that the cache of instructions does not hold: each is there for every element of a thread."""
        formulas = sum(count * self.laid.held(kind) for kind, count in self.work.formulas.items())
        ordered = sum(self.laid.held(kind) for kind in self.work.orders) * ORDER_BYTES / ORDER_CODE_BYTES
        return max(ordered, crowding(INSTRUCTION_BYTES * formulas + a_thread * self.work.sines * SINE_BYTES))

    def registers(self, touched: Sequence[Touched]) -> float:
        """Registers of a thread in a launch that reads what is `touched`."""
        among = self.laid.among(touched)
        loads = [one for one in among if not one.each.access.is_output]
        words = sum(one.held * min(4, one.each.item) / 4 for one in loads)
        long = sum(one.held for one in among if one.each.access.is_output and one.each.item > 4)
        largest = max(1.0, self.tiling.largest / self.tiling.threads)
        lanes = largest * len(self.plan.reductions) if self.tiling.loop is not None else 0.0
        # addresses at positions that are data, which a walk moves along
        placed = 2.0 * sum(one.held for one in loads if one.each.flow.random) if self.tiling.walked is not None else 0.0
        own, value, word, before, lane, reduced = REGISTERS
        word = ACROSS_ROOTS if self.work.has_roots else word
        found = own + value * largest + word * words + before * self.work.kept_of(self.laid.held) + lane * lanes
        found += CROSSED * largest if self.laid.lanes.crosses else 0.0
        found += placed + 2.0 * long + reduced * len(self.plan.reductions) + self.keys
        return found + SPILLED * max(0.0, found - CROWDED)

    @cached_property
    def keys(self) -> float:
        """Registers of what is put in order, and of what is picked."""
        held = sum(self.laid.held(kind) for kind in self.work.orders)
        orders = [expr for expr in self.plan.reductions if self.plan.b.exprs[expr].op == "order"]
        in_turns = all(way_of(self.plan.b, expr) is Way.TURNS for expr in orders)
        picked = sum(min(MOST_PICKED, count_picked(self.plan.b, expr)) for expr in orders if not is_whole(self.plan.b, expr))
        return (0.0 if in_turns else KEY_REGISTERS * held) + picked

    @cached_property
    def independent(self) -> float:
        """Elements of a thread of what most of its formulas make: their instructions do not wait for one another."""
        weights = {kind: count * self.laid.made(kind) for kind, count in self.work.formulas.items()}
        return float(self.laid.held(max(weights, key=lambda kind: weights[kind]))) if weights else 1.0
