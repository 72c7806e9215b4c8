"""The products that an attention's scores are a sum of: all over the same queries and keys, each with operands of its own.

Latent attention multiplies a part of a head that knows no places and a part that does; relative positions, disentangled attention and
distances as features have such sums too. Keys may be the same for all heads in one product, and each head's own in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Contraction, Lowered
from tools.codegen.lower.region.lowering import Lowering

TILE_ROWS = 16
"""Rows of the smallest tile: with fewer queries, heads that share their keys are rows of one tile."""


def is_made_of_scores(low: Lowering, found: Value) -> bool:
    """Whether a value is made of any product of the region."""
    made_of = low.b.made_of(found)
    return any(each.expr in made_of for each in low.products)


def keys_of(low: Lowering) -> tuple[int, ...]:
    """Name the atoms of the keys: columns of every product; what only some have there is a head, whose queries are the same for all."""
    leaves = low.b.atoms.leaves
    return tuple(atom for atom in leaves(low.products[0].cols) if all(atom in leaves(each.cols) for each in low.products))


def kept_of(low: Lowering) -> tuple[int, ...]:
    """Name the atoms of heads and queries, each once."""
    keys, leaves = keys_of(low), low.b.atoms.leaves
    every = (atom for each in low.products for atom in leaves((*each.batch, *each.rows, *each.cols)))
    return tuple(dict.fromkeys(atom for atom in every if atom not in keys))


def settle_products(low: Lowering, logits: Value, value: Lowered) -> None:
    """Have all products of the scores walk the same heads, queries and keys; raises LoweringError where they do not."""
    keys, leaves = keys_of(low), low.b.atoms.leaves
    counted = low.b.behind([logits.id, *(low.summed or ())[1:]])
    for each in low.products:
        if each.expr not in counted or each.convolves:
            raise LoweringError("a product that is no part of the scores does not share a kernel with an attention")
        if not keys or keys != tuple(atom for atom in leaves(each.cols) if atom in keys):
            raise LoweringError("the products that scores are the sum of have other keys")
    heads, rows = _heads_and_rows(low, value)
    settled = [replace(each, batch=heads, rows=rows, cols=keys) for each in low.products]
    low.contraction, low.further = settled[0], settled[1:]


def _heads_and_rows(low: Lowering, value: Lowered) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Part what is no key into heads, which have keys or values of their own, and the rows that share these."""
    leaves, kept = low.b.atoms.leaves, kept_of(low)
    keyed = {atom for each in low.products for atom in leaves((*each.batch, *each.cols))}
    batch, rows = ([atom for atom in kept if (atom in keyed) is there] for there in (True, False))
    own = {atom for dim in value.dims for atom in leaves(dim)} & {*rows}
    heads = (*batch, *(atom for atom in rows if atom in own))
    return _with_shared_heads(low, heads, tuple(atom for atom in rows if atom not in own), value)


def _with_shared_heads(
    low: Lowering, heads: tuple[int, ...], rows: tuple[int, ...], value: Lowered
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Take heads that share keys and values as rows where queries are fewer than a tile has: keys are read once for all of them."""
    b = low.b
    read = {atom for side in (*(each.right for each in low.products), value) for atom in b.leaves_of(b.exprs[side.value.id])}
    shared = tuple(atom for atom in heads if atom not in read)
    placed = any(record.op == "index" and set(b.atoms.leaves(record.extra)) & {*rows, *shared} for record in b.exprs)
    if placed or not shared or b.count(rows)[0] >= TILE_ROWS:
        return heads, rows
    return tuple(atom for atom in heads if atom not in shared), (*shared, *rows)


def summed(low: Lowering, values: list[tuple[Value, Dims]]) -> tuple[Value, Dims]:
    """Add values over the same dimensions."""
    value, dims = values[0]
    for other, more in values[1:]:
        dims = low.b.atoms.broadcast(dims, more)
        value = value + other
    return value, dims


def usual_scale(low: Lowering, products: Sequence[Contraction]) -> Value:
    """Write what scores are multiplied by unless it is said: one over the root of the elements of a head."""
    widths = [low.b.count(each.inner) for each in products]
    total = {sum(sizes) for sizes in zip(*widths, strict=True)}
    if len(total) == 1:
        return low.b.const(float(total.pop()) ** -0.5)
    size = low.b.size(products[0].inner)
    for each in products[1:]:
        size = size + low.b.size(each.inner)
    return 1.0 / low.b.call("sqrt", size * 1.0)
