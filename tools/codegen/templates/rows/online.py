"""Accumulators of pairs of reductions that one pass over a row computes: online softmax, Welford's variance, an extremum's position."""

from __future__ import annotations

from typing import Protocol

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Expr, Fold
from tools.codegen.templates.rows.column_loop import Steps
from tools.codegen.templates.rows.online_pairs import NOWHERE
from tools.codegen.templates.shared.frame import Frame, neutral
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.reductions import joined_text, keeps_nan

LOWEST = '-float("inf")'


class RowLoop(Protocol):
    """What a pair needs of the loop that it is written into."""

    frame: Frame
    steps: Steps
    b: Builder

    def fill(self, inner: Scope, expr: int, value: str) -> bool:
        """Load a tensor with `value` beyond the row's end; whether this step had not made that load yet."""

    def whole(self, expr: int, lanes: str) -> str:
        """Write a reduction of accumulated lanes, or of partial results."""


def online_pair(loop: RowLoop, first: int, second: int) -> OnlineSoftmax | OnlineVariance | OnlineExtremum:
    """Choose the writer of a pair."""
    if loop.b.exprs[second].reduces(Fold.MIN):
        return OnlineExtremum(loop, first, second)
    return OnlineSoftmax(loop, first, second) if loop.b.exprs[first].reduces(Fold.MAX) else OnlineVariance(loop, first, second)


class OnlineSoftmax:
    """A maximum and a sum of exponentials below it, rescaled as the maximum grows.

    One block a step: one maximum a row, so that an element costs one exponential. Several blocks a step: one maximum a lane,
    one more exponential a lane and step, and no lane waits for another until the row is through.
    """

    def __init__(self, loop: RowLoop, first: int, second: int) -> None:
        """Name the accumulators of the maximum `first` and the sum `second`."""
        self.loop, self.first, self.second = loop, first, second
        self.source = loop.b.exprs[first].args[0]
        self.dtype = loop.b.exprs[first].dtype
        names = loop.frame.names
        self.peak = names.fresh("lane_max" if loop.steps.tall else "running_max")
        self.total = names.fresh("lane_sum")
        self.filled = False

    def open(self, scope: Scope) -> None:
        """Start the accumulators."""
        steps = self.loop.steps
        lowest = f"tl.full({steps.lanes}, {LOWEST}, tl.{self.dtype})"
        scope.say(f"{self.peak} = {lowest if steps.tall else f'tl.max({lowest}, {steps.axis})'}")
        scope.say(f"{self.total} = tl.full({steps.lanes}, 0.0, tl.{self.dtype})")

    def load(self, inner: Scope) -> None:
        """Load what the pair reads by itself with minus infinity beyond the end: it then needs no mask."""
        self.filled = self.loop.fill(inner, self.source, LOWEST)

    def update(self, inner: Scope) -> None:
        """Take in one step."""
        steps, body, first = self.loop.steps, self.loop.frame.body, self.loop.b.exprs[self.first]
        x = body.assign(inner, self.source)
        if not self.filled:
            masked = self.loop.frame.names.fresh("masked")
            inner.say(f"{masked} = tl.where(mask_n, {x}, {LOWEST})")
            x = masked
        largest = steps.folded(body, first, x) if steps.tall else self.loop.whole(self.first, x)
        inner.say(f"new_max = {joined_text(body, first, self.peak, largest)}")
        inner.say('anchor = tl.where(tl.abs(new_max) == float("inf"), 0.0, new_max)')
        weights = steps.folded(body, self.loop.b.exprs[self.second], f"tl.exp({x} - {steps.spread('anchor')})")
        inner.say(f"{self.total} = {self.total} * tl.exp({self.peak} - anchor) + {weights}")
        inner.say(f"{self.peak} = new_max")

    def close(self, scope: Scope) -> None:
        """Combine the lanes."""
        body, steps = self.loop.frame.body, self.loop.steps
        if not steps.tall:
            body.bind(scope, self.first, self.peak)
            body.bind(scope, self.second, f"tl.sum({self.total}, {steps.axis})")
            return
        peak = body.bind(scope, self.first, self.loop.whole(self.first, self.peak))
        scope.say(f'anchor = tl.where(tl.abs({peak}) == float("inf"), 0.0, {peak})')
        body.bind(scope, self.second, f"tl.sum({self.total} * tl.exp({self.peak} - anchor), {steps.axis})")


class OnlineVariance:
    """A sum and the squared deviations from its mean, each lane by itself; lanes are combined by Chan's formula.

    One block a step is Welford's update. Several blocks a step are first reduced lane by lane, then combined by the same formula.
    """

    def __init__(self, loop: RowLoop, first: int, second: int) -> None:
        """Name the accumulators of the sum `first` and the deviations `second`."""
        self.loop, self.first, self.second = loop, first, second
        self.source = loop.b.exprs[first].args[0]
        self.dtype = loop.b.exprs[first].dtype
        names = loop.frame.names
        self.mean, self.squares, self.count = names.fresh("lane_mean"), names.fresh("lane_m2"), names.fresh("lane_count")
        self.counted = loop.steps.tall or loop.steps.in_pieces

    def open(self, scope: Scope) -> None:
        """Start the accumulators."""
        for name in (self.mean, self.squares, *((self.count,) if self.counted else ())):
            scope.say(f"{name} = tl.full({self.loop.steps.lanes}, 0.0, tl.{self.dtype})")

    def load(self, inner: Scope) -> None:
        """Nothing to load otherwise."""

    def update(self, inner: Scope) -> None:
        """Take in one step."""
        x = self.loop.frame.body.assign(inner, self.source)
        mean, squares, count = self.mean, self.squares, self.count
        if self.loop.steps.tall:
            inner.say(f"here = tl.sum(mask_n.to(tl.{self.dtype}), axis=0)")
            total, most = f"tl.sum(tl.where(mask_n, {x}, 0.0), axis=0)", "tl.maximum(here, 1.0)"
            # as `centring_mean`: equal values have themselves as their mean
            inner.say(f"block_mean = {f'tl.div_rn({total}, {most})' if self.dtype == 'float32' else f'{total} / {most}'}")
            inner.say(f"residue = tl.where(mask_n, {x} - block_mean[None, :], 0.0)")
            inner.say(f"delta = block_mean - {mean}")
            inner.say(f"share = here / tl.maximum({count} + here, 1.0)")
            inner.say(f"{squares} += tl.sum(residue * residue, axis=0) + delta * delta * {count} * share")
            inner.say(f"{mean} += delta * share")
            inner.say(f"{count} += here")
            return
        if self.counted:
            inner.say(f"{count} += mask_n.to(tl.{self.dtype})")
            inner.say(f"share = 1.0 / tl.maximum({count}, 1.0)")
        else:
            begun = "(start - begin)" if self.loop.steps.chunked else "start"
            inner.say(f"share = tl.full([1], 1.0, tl.{self.dtype}) / ({begun} // BLOCK_N + 1)")
        # x is used once: a product, joined with each of two sums and rounded in neither, could leave squares below zero
        inner.say(f"delta = tl.where(mask_n, {x} - {mean}, 0.0)")
        inner.say(f"{mean} += delta * share")
        inner.say(f"{squares} += delta * delta * (1.0 - share)")

    def close(self, scope: Scope) -> None:
        """Combine the lanes."""
        body, steps = self.loop.frame.body, self.loop.steps
        length = "(end - begin)" if steps.chunked else steps.columns()
        if self.counted:
            length = f"tl.sum({self.count}, {steps.axis})"
        else:
            lanes = f"tl.arange(0, BLOCK_N){'[None, :]' if steps.vector else ''}"
            scope.say(f"{self.count} = ({length} - {lanes} + BLOCK_N - 1) // BLOCK_N")
        total = body.bind(scope, self.first, f"tl.sum({self.mean} * {self.count}, {steps.axis})")
        mean = self.loop.frame.names.fresh("lanes_mean")
        scope.say(f"{mean} = {total} / {length}")
        spread = f"({self.mean} - {mean})"
        body.bind(scope, self.second, f"tl.sum({self.squares} + {self.count} * {spread} * {spread}, {steps.axis})")


class OnlineExtremum:
    """A maximum or minimum and the first position that holds it, each lane by itself; of equal lanes the first position counts."""

    def __init__(self, loop: RowLoop, first: int, second: int) -> None:
        """Name the accumulators of the extremum `first` and its position `second`."""
        self.loop, self.first, self.second = loop, first, second
        record = loop.b.exprs[first]
        self.record, self.source, self.kind, self.dtype = record, record.args[0], record.kind, record.dtype
        self.index = loop.b.exprs[loop.b.exprs[second].args[0]].args[1]
        self.none = neutral(self.kind, self.dtype)
        self.best, self.place = loop.frame.names.fresh(f"lane_{self.kind}"), loop.frame.names.fresh("lane_place")

    def open(self, scope: Scope) -> None:
        """Start the accumulators."""
        scope.say(f"{self.best} = tl.full({self.loop.steps.lanes}, {self.none}, tl.{self.dtype})")
        scope.say(f"{self.place} = tl.full({self.loop.steps.lanes}, {NOWHERE}, tl.int32)")

    def load(self, inner: Scope) -> None:
        """Nothing to load otherwise."""

    def update(self, inner: Scope) -> None:
        """Take in one step."""
        best, place, body = self.best, self.place, self.loop.frame.body
        x = body.assign(inner, self.source)
        at = body.assign(inner, self.index) + (".to(tl.int32)" if self.loop.frame.space.is_wide() else "")
        inner.say(f"candidate = tl.where(mask_n, {x}, {self.none})")
        if self.loop.steps.tall:
            inner.say(f"block_best = {self.loop.steps.folded(body, self.record, 'candidate')}")
            hit = held_text(self.record, "candidate", "block_best[None, :]")
            inner.say(f"at = tl.min(tl.where(mask_n & ({hit}), {at}, {NOWHERE}), axis=0)")
            inner.say(f"better = {self._beyond('block_best')}")
            inner.say(f"{place} = tl.where(better, at, {place})")
            inner.say(f"{best} = {joined_text(body, self.record, best, 'block_best')}")
            return
        inner.say(f"better = mask_n & ({self._beyond('candidate')})")
        inner.say(f"{place} = tl.where(better, {at}, {place})")
        inner.say(f"{best} = {joined_text(body, self.record, best, 'candidate')}")

    def close(self, scope: Scope) -> None:
        """Combine the lanes."""
        extremum_of(self.loop, scope, (self.first, self.second), (self.best, self.place))

    def _beyond(self, other: str) -> str:
        """Write whether another element is further out than the one that is known, the first that is no number further than all."""
        beyond = f"({other} {'>' if self.kind is Fold.MAX else '<'} {self.best}) | ({self.place} == {NOWHERE})"
        return f"{beyond} | (({other} != {other}) & ({self.best} == {self.best}))" if keeps_nan(self.record) else beyond


def held_text(record: Expr, x: str, best: str) -> str:
    """Write whether an element is the extremum of those it is among, as `_holds` of the lowering has it."""
    return f"({x} == {best}) | ({x} != {x})" if keeps_nan(record) else f"{x} == {best}"


def extremum_of(loop: RowLoop, scope: Scope, pair: tuple[int, int], found: tuple[str, str]) -> None:
    """Write the extremum of several and the first of their positions that holds it."""
    body, axis = loop.frame.body, loop.steps.axis
    best = body.bind(scope, pair[0], loop.whole(pair[0], found[0]))
    hit = held_text(loop.b.exprs[pair[0]], found[0], best)
    body.bind(scope, pair[1], f"tl.min(tl.where({hit}, {found[1]}, {NOWHERE}), {axis})")
