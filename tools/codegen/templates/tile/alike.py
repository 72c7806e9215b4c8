"""Rows of a tile that all go to one place, as those of sorted segments mostly do: they are added up before memory is, once for all."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Fold
from tools.codegen.ir.kernel import Output, Write
from tools.codegen.templates.shared.frame import neutral
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.tile.axes import TileAxes
from tools.codegen.templates.tile.body import TileBody

SORTED = 0.5
"""How often positions that are data come in order, as those of segments do: an assumption."""
FOLDS = {Write.ADD: Fold.SUM, Write.MAX: Fold.MAX, Write.MIN: Fold.MIN}
READS = frozenset({"load", "read"})


def merging(b: Builder, output: Output, rows: Sequence[int]) -> tuple[int, ...]:
    """List the positions of an output that tell whether all rows of a tile go to one place; none where they never do, or are not merged."""
    if output.scatter is None or output.scatter.write not in FOLDS or not rows:
        return ()
    along = frozenset(rows)
    found = tuple(place for place in output.scatter.positions if b.leaves_of(b.exprs[place]) & along)
    is_data = all(any(b.exprs[each].op in READS for each in b.made_of(Value(b, place))) for place in found)
    return found if is_data and all(b.leaves_of(b.exprs[place]) <= along for place in found) else ()


def in_order(b: Builder, output: Output) -> bool:
    """Whether the positions of an output that are data come from a sort."""
    assert output.scatter is not None
    made = (each for place in output.scatter.positions for each in b.made_of(Value(b, place)))
    read = [b.loads[b.exprs[each].extra].meta for each in made if b.exprs[each].op == "load"]
    return bool(read) and all(meta.ordered for meta in read)


def merged_share(places: int, targets: int, rows: int, *, ordered: bool = False) -> float:
    """Part of the writes that are left where rows of tiles are merged: runs are as long as places to each target, if they are in order."""
    run = max(1.0, places / max(1, targets))
    whole = (1.0 - 1.0 / run) ** (rows - 1)
    return 1.0 - (1.0 if ordered else SORTED) * whole * (1.0 - 1.0 / rows)


def say_merged(scope: Scope, body: TileBody, axes: TileAxes, output: Output, target: str, value: str, mask: str) -> Scope:
    """Write the one addition of a tile whose rows all go to one place; what stands in the scope that is returned is for the others."""
    assert output.scatter is not None
    rows = axes.tiled[0]
    where = [body.assign(scope, place) for place in merging(body.b, output, rows.atoms)]
    fold = FOLDS[output.scatter.write]
    scope.say(f"if {' & '.join(f'(tl.min({each}) == tl.max({each}))' for each in where)}:")
    inner, nothing = scope.nested(), neutral(fold, output.meta.dtype)
    total = body.names.fresh("rows_together")
    inner.say(f"{total} = tl.{fold}(tl.where({axes.mask(rows)}, {value}, {nothing}), axis=0, keep_dims=True)")
    first = f"(tl.arange(0, {axes.block(rows)}){axes.spread(rows)} == 0)"
    inner.say(f'tl.atomic_{output.scatter.write}({target}, {total}, mask={mask} & {first}, sem="relaxed")')
    scope.say("else:")
    return scope.nested()
