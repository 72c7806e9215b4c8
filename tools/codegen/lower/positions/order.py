"""Lower what puts rows in order: the largest or smallest of a row, sorts, and where each element was."""

from __future__ import annotations

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Builder, Share, Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.order import BITS, element_in, keys_of, packed_at, packing, position_in
from tools.codegen.ir.reindex import extent, flat, least, spread
from tools.codegen.ir.sizes import Sizes
from tools.codegen.ir.values.monotone import applied, behind
from tools.codegen.lower.positions.few_in_order import are_few, in_order
from tools.codegen.lower.positions.view_rules import numbers
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule


def _ordered(low: GeneralLowering, node: Node, dim: object, largest: object, count: Sizes | None, elements: bool = True) -> None:
    """Define the first elements of a row and their positions, or the positions alone."""
    b, source, dtype = low.b, low.value(node.args[0]), low.graph.meta(node.args[0]).dtype
    if not isinstance(dim, int) or not isinstance(largest, bool) or not source.dims:
        raise LoweringError(f"{node.target} of a single element, or along what is not told, is not generated")
    place = dim % len(source.dims)
    atoms = source.dims[place]
    if not atoms:
        raise LoweringError(f"{node.target} of rows of one element is not generated")
    value = b.compute(source.value, COMPUTE[dtype])
    if are_few(low, value, atoms, dtype):
        element, position, picked = in_order(low, Lowered(value, source.dims), place, largest, count or b.count(atoms))
        _define(low, node, source.dims, place, picked, element if elements else None, position)
        return
    inner = behind(b, value, atoms)
    packed = packing(stored(b, inner, dtype), largest, max(b.count(atoms)))
    keys = keys_of(b, inner, atoms, packed)
    picked = b.atoms.new(count or b.count(atoms))
    best = b.order(keys, atoms, picked)
    found = applied(b, value, inner, element_in(b, best, packed)) if elements else None
    _define(low, node, source.dims, place, picked, found, position_in(b, best, packed))


def _define(low: GeneralLowering, node: Node, dims: Dims, place: int, picked: int, element: Value | None, position: Value) -> None:
    """Define both results of a node, or its positions alone."""
    low.distinct[position.id] = picked
    dims = (*dims[:place], (picked,), *dims[place + 1 :])
    if element is not None:
        low.define(node, element, dims)
    low.define(node, position, dims, index=int(element is not None))


def stored(b: Builder, value: Value, dtype: str) -> str:
    """Find the dtype that holds a value: that of its tensor where it is read, else that of the node, if not its float32."""
    record = b.exprs[value.id]
    if record.op in ("load", "read"):
        return str(b.loads[record.extra if record.op == "load" else record.extra[0]].meta.dtype)
    if record.op == "cast" and record.extra in BITS:
        return str(record.extra)
    return "float32" if record.dtype == "float32" else dtype


def _topk(low: GeneralLowering, node: Node) -> None:
    dim, largest = node.argument(2, "dim", -1), node.argument(3, "largest", True)
    count = numbers(low, node.argument(1, "k"))
    if any(each == 0 for each in count):
        raise LoweringError("the first none of a row are not generated")
    _ordered(low, node, dim, largest, count)


def _sort(elements: bool) -> GeneralRule:
    def rule(low: GeneralLowering, node: Node) -> None:
        if node.overload == "stable":
            dim, descending = node.kwargs.get("dim", -1), node.kwargs.get("descending", False)
        else:
            dim, descending = node.argument(1, "dim", -1), node.argument(2, "descending", False)
        _ordered(low, node, dim, descending, None, elements)

    return rule


def _chunk_maxima(low: GeneralLowering, node: Node) -> None:
    """The largest element of each chunk of a row; NaN is above all."""
    b, source, chunk = low.b, low.value(node.args[0]), int(node.args[1])
    row = source.dims[-1]
    (whole,), within = b.atoms.dims((node.outputs[0].shape[-1],))[0], b.atoms.new((chunk,) * low.traces)
    b.chunked[whole] = (row, chunk)
    position = b.index((whole, within))
    inside = position < extent(b, row)
    taken = low.gathered(source, spread(b, row, position), (*source.dims[:-1], (whole,)), inside)
    bits = b.call("where", inside, b.call("ordered_bits", b.compute(taken.value, "float32")), least("int32"))
    low.define(node, b.call("ordered_float", b.reduce(Fold.MAX, bits, (within,))), taken.dims)


def _topk_of_chunks(low: GeneralLowering, node: Node) -> None:
    """The largest of the chunks whose own largest come first; a chunk beyond the last one lies outside of the row."""
    b, source, best, chunk = low.b, low.value(node.args[0]), low.value(node.args[1]), int(node.args[3])
    row, chunks = source.dims[-1], best.dims[-1]
    # rows alone are walked together
    (of_source, of_best), _ = low.aligned([Lowered(each.value, (*each.dims[:-1], ())) for each in (source, best)])
    source, best = Lowered(of_source.value, (*of_source.dims[:-1], row)), Lowered(of_best.value, (*of_best.dims[:-1], chunks))
    count = numbers(low, node.args[2])
    rough = packing("float32", True, max(b.count(chunks)))
    chosen = b.atoms.new(count)
    first = position_in(b, b.order(keys_of(b, b.compute(best.value, "float32"), chunks, rough), chunks, chosen), rough)
    within = b.atoms.new((chunk,) * low.traces)
    position = first * chunk + b.index((within,))
    inside = position < extent(b, row)
    taken = low.gathered(source, spread(b, row, position), (*source.dims[:-1], (chosen,), (within,)), inside)
    keys = b.call("where", inside, packed_at(b, b.compute(taken.value, "float32"), position, rough), least("int64"))
    picked = b.atoms.new(count)
    found = b.order(keys, (chosen, within), picked)
    dims = (*source.dims[:-1], (picked,))
    low.define(node, element_in(b, found, rough), dims)
    low.define(node, position_in(b, found, rough), dims, index=1)


def _kept_of_chunks(low: GeneralLowering, node: Node) -> None:
    """Elements where a row is not less than a bound, or reaches it, and a number in the place of the others."""
    b, (number, chunk, share, is_filled) = low.b, node.args[4:]
    found = [low.value(ref) for ref in node.args[:4]]
    row, chunks = found[1].dims[-1], found[2].dims[-1]
    found, _ = low.aligned([Lowered(each.value, (*each.dims[:-1], ())) for each in found])
    lasts = (row, row, chunks, ())
    wanted, source, best, bound = (Lowered(each.value, (*each.dims[:-1], last)) for each, last in zip(found, lasts, strict=True))
    best = low.gathered(best, spread(b, chunks, b.call("floordiv", flat(b, row), chunk)), (*best.dims[:-1], row))
    # the largest of a chunk that holds what is no number is none
    holds = b.call("not", best.value < bound.value)
    b.shares[holds.id] = Share(share, chunk)
    own = {atom: b.index((atom,)) for atom in b.atoms.leaves(row)}
    taken, element = (low.gathered(each, own, each.dims, holds) for each in (source, wanted))
    stays = b.call("not", taken.value < bound.value) if is_filled else taken.value >= bound.value
    low.define(node, b.call("where", b.call("and", holds, stays), element.value, number), source.dims)


ORDER_RULES: dict[str, GeneralRule] = {
    "topk": _topk, "sort": _sort(True), "argsort": _sort(False),
    "chunk_maxima": _chunk_maxima, "topk_of_chunks": _topk_of_chunks,
    "kept_of_chunks": _kept_of_chunks,
}  # fmt: skip
"""Operators by name."""
