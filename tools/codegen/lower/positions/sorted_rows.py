"""Lower what looks at rows in order: searches, as steps that each read an element, and reductions by a sorted index, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.builder import Share, Span, Value
from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered, Scatter, Write
from tools.codegen.ir.reindex import extent, flat, least, spread
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule

LONGEST = 2**16
"""Elements of a row that is searched: each step waits for the one before it."""
MOST_COUNTED = 256
"""Elements of a row whose length varies, of which all are looked at: so many comparisons are made while a few of a search's reads wait."""
FOLDS = {"sum": Fold.SUM, "amax": Fold.MAX}
"""What runs are reduced by."""
WRITES = {"sum": Write.ADD, "amax": Write.MAX}
CHUNK = 128
"""Elements of a run that one program walks, about, at most: some rows of most graphs have very many."""
LONG = 0.01
"""Part of all elements that are of long runs: an assumption."""


def _bucketize(low: GeneralLowering, node: Node) -> None:
    _search(low, node, node.args[1], node.args[0])


def _searchsorted(low: GeneralLowering, node: Node) -> None:
    if node.kwargs.get("sorter") is not None:
        raise LoweringError(f"{node.target} by a sorter is not generated")
    _search(low, node, node.args[0], node.args[1])


def _search(low: GeneralLowering, node: Node, row: object, wanted: object) -> None:
    """Count the elements of a sorted row that stand before each value; numbers that are none stand at its end."""
    if not isinstance(row, Ref) or not isinstance(wanted, Ref) or len(low.graph.meta(row).shape) != 1:
        raise LoweringError(f"{node.target} in other than one row is not generated")
    b, edges, found = low.b, low.value(row), low.value(wanted)
    after = bool(node.kwargs.get("right")) or node.kwargs.get("side") == "right"
    lengths, dtype = low.graph.meta(row).shape[0], COMPUTE[node.outputs[0].dtype]
    if len(set(lengths)) > 1 and lengths[0] <= MOST_COUNTED:
        edges = low.unshared(edges, found.dims)
        before = b.call("not", b.call("gt" if after else "ge", edges.value, found.value))
        low.define(node, b.cast(b.reduce(Fold.SUM, before, edges.dims[0]), dtype), found.dims)
        return
    place = b.const(0)
    for step in _steps(node, lengths):
        last = place + (step - 1)
        inside = last < _length(low, row)
        edge = low.take(edges, spread(b, edges.dims[0], last), found.dims, inside).value
        # written so that what compares with nothing goes on to the end
        stays = b.call("or", b.call("not", inside), b.call("gt" if after else "ge", edge, found.value))
        place = b.call("where", stays, place, place + step)
    low.define(node, b.cast(place, dtype), found.dims)


def _steps(node: Node, sizes: Sizes) -> tuple[int, ...]:
    """List the powers of two that add up to any number of elements."""
    if len(set(sizes)) > 1 or not 0 < sizes[0] <= LONGEST:
        raise LoweringError(f"{node.target} in a row whose length varies, or in a very long one, is not generated")
    return tuple(2**power for power in reversed(range(sizes[0].bit_length())))


def _length(low: GeneralLowering, row: Ref) -> int:
    return low.graph.meta(row).shape[0][0]


def _segments(low: GeneralLowering, node: Node) -> None:
    """Write where the run of each number begins and stops among sorted ones: where they differ from their neighbours; others have none."""
    b, keys = low.b, low.value(node.args[0])
    (along,) = keys.dims
    at = b.index(along)
    for index, (step, inside) in enumerate(((-1, at >= 1), (1, at < extent(b, along) - 1))):
        other = low.take(keys, spread(b, along, at + step), keys.dims, inside).value
        ends = b.call("or", b.call("not", inside), b.call("ne", keys.value, other))
        b.shares[ends.id] = Share(min(1.0, node.outputs[0].numel / low.graph.meta(node.args[0]).numel), 1)
        for size in node.outputs[0].shape:
            b.number(size)
        position = at if step < 0 else at + 1
        low.scatter(node, Lowered(position, keys.dims), Scatter(None, 0.0, (keys.value.id,), ends.id, Write.STORE), index)


def _by_segment(low: GeneralLowering, node: Node) -> None:
    """Reduce the elements of each run, beside what is there before: of a long one those up to the next chunk, and others later.

    Later each chunk of all elements has a program, which reduces what is in it of the run that its first element is of, if that is long.
    """
    base, dim, keys, source, kind, *runs = node.args
    if low.flow.is_internal(runs[0]):
        raise LoweringError("runs whose ends the same region finds are not generated: these must be in memory")
    b, dtype = low.b, COMPUTE[node.outputs[0].dtype]
    found, place = low.value(source), int(dim) % len(node.outputs[0].shape)
    along = b.atoms.leaves(found.dims[place])
    if len(along) != 1:
        raise LoweringError("runs along several dimensions are not generated")
    # what only the later kernel reads is given to the first one's host function
    numbers = low.value(keys)
    ends, (rows,) = low.aligned([low.value(end) for end in runs])
    begin, stop = (end.value for end in ends)
    row = b.index(rows)
    if low.late:
        chunks = b.atoms.new(tuple(-(-size // CHUNK) for size in b.count(along)))
        b.chunked[chunks] = (along, CHUNK)
        begin, stop, row = _later(low, numbers, chunks, ends)
        rows = (chunks,)
    else:
        whole = b.call("floordiv", begin + (CHUNK - 1), CHUNK) * CHUNK
        stop = b.call("where", stop - begin > CHUNK, b.call("minimum", stop, whole), stop)
    position = b.index(along)
    inside = b.call("and", position >= begin, position < stop)
    nothing = 0.0 if dtype == "float32" else least(dtype) if FOLDS[kind] is Fold.MAX else 0
    value = b.call("where", inside, b.compute(found.value, dtype), nothing)
    total = b.compute(b.reduce(FOLDS[kind], value, along), dtype)
    mean = max(1, -(-b.count(along)[0] // b.count(rows)[0]))
    b.spans[along[0]] = Span(begin.id, stop.id, 1 if low.late else mean)
    made = Lowered(total, (*found.dims[:place], rows, *found.dims[place + 1 :]))
    low.partial.add(node.name)
    if low.late:
        positions = tuple(row.id if at == place else flat(b, each).id for at, each in enumerate(made.dims))
        b.load(Ref(node.name), node.outputs[0], again=True)
        is_any = b.call("gt", stop, begin)
        b.shares[is_any.id] = Share(LONG, 1)
        low.scatter(node, made, Scatter(Ref(node.name), 0.0, positions, is_any.id, WRITES[kind], in_place=True))
        return
    before = fill_number(low.graph.by_name.get(base.name))
    if before is not None:
        low.define(node, _with(low, kind, made.value, b.const(before)), made.dims)
        return
    (made, there), dims = low.aligned([made, low.value(base)])
    low.define(node, _with(low, kind, made.value, b.compute(there.value, dtype)), dims)


def _later(low: GeneralLowering, keys: Lowered, chunks: int, ends: Sequence[Lowered]) -> tuple[Value, Value, Value]:
    """Say of each chunk where what it has of a long run begins and stops, and which row's it is."""
    b, dims = low.b, ((chunks,),)
    begin = b.index((chunks,)) * CHUNK
    row = low.take(keys, spread(b, keys.dims[0], begin), dims).value
    first, last = (low.take(end, spread(b, end.dims[0], row), dims).value for end in ends)
    stop = b.call("where", last - first > CHUNK, b.call("minimum", begin + CHUNK, last), begin)
    return begin, stop, row


def _with(low: GeneralLowering, kind: str, total: Value, before: Value) -> Value:
    return total + before if kind == "sum" else low.b.call("maximum", total, before)


SORTED_RULES: dict[str, GeneralRule] = {
    "bucketize": _bucketize, "searchsorted": _searchsorted, "segments": _segments, "by_segment": _by_segment,
}  # fmt: skip
"""Operators by name."""
