"""Lower attention: a product, pointwise operators on its scores, a softmax (or none), and a second product in one kernel.

`scaled_dot_product_attention` is lowered as a whole. Written out in plain torch, the first product is an ordinary
contraction; the softmax of its scores and the product of what came of them with the values complete it. A logit that is laid behind the
scores before the softmax, and whose weight is then left out, takes its share of a row's weights.
"""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Attention, Contraction, Lowered
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.sizes import is_one, product
from tools.codegen.ir.views import is_view, see_through
from tools.codegen.lower.einsum import atoms_of, lettered, read_equation
from tools.codegen.lower.log_sums import exponent_of, with_log_sum
from tools.codegen.lower.operands import operand_of, paired
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.row_sums import multiplied, without_factors
from tools.codegen.lower.scores import is_made_of_scores, keys_of, settle_products, summed, usual_scale

FLOATS = ("float16", "bfloat16", "float32")
WEIGHT_CASTS = CASTS - {"double"}
"""Casts that leave weights what they are; no attention is in doubles."""
SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


def _attention(low: Lowering, node: Node) -> None:
    given = {**dict(zip(SDPA, node.args, strict=False)), **node.kwargs}
    if given.get("dropout_p"):
        raise LoweringError(f"{node.target} with dropout is not generated")
    value = _operand(low, given["value"])
    pairs = paired(low, given["query"], given["key"]) or ((_operand(low, given["query"]), _operand(low, given["key"])),)
    if given.get("enable_gqa"):
        grouped = [_grouped(low, query, key, value) for query, key in pairs]
        pairs, value = tuple((query, key) for query, key, _ in grouped), grouped[0][-1]
    if low.window is not None or low.reduced or low.attention is not None:
        raise LoweringError("attention shares its kernel with pointwise operators only")
    before = len(low.products)
    scores, _ = summed(low, [_scores(low, node, query, key) for query, key in pairs])
    query, key = pairs[0]
    query, key = (Lowered(each.value, low.b.atoms.resolve(each.dims)) for each in (query, key))
    rows, cols = query.dims[-2], key.dims[-2]
    scale = given.get("scale")
    logits = scores * (usual_scale(low, low.products[before:]) if scale is None else low.b.const(scale))
    causal = bool(given.get("is_causal"))
    if causal and rows:
        allowed = low.b.index(low.b.atoms.leaves(cols)) <= low.b.index(low.b.atoms.leaves(rows))
        logits = low.b.call("where", allowed, logits, float("-inf"))
    elif causal:
        logits = low.b.call("where", low.b.index(low.b.atoms.leaves(cols)) <= 0, logits, float("-inf"))
    mask = given.get("attn_mask")
    if isinstance(mask, Ref):
        logits = _masked(low, logits, low.value(mask), (*query.dims[:-1], cols))
    _complete(low, node, Lowered(logits, (*query.dims[:-1], cols)), value, softmax=True, causal=causal and bool(rows), safe=True)


def _operand(low: Lowering, ref: Ref) -> Lowered:
    """Find queries, keys or values: computed in the region (from a quantised cache, say), or read under atoms of their own."""
    return operand_of(low, {}, ref, lambda: low.read_again(ref))


def _grouped(low: Lowering, query: Lowered, key: Lowered, value: Lowered) -> tuple[Lowered, Lowered, Lowered]:
    """Take the heads of queries as groups of as many as share a head of keys; keys and values are the same for a whole group."""
    atoms = low.b.atoms
    heads, few = (
        product((atoms.size(atom) for atom in atoms.leaves(each.dims[-3])), atoms.traces) if len(each.dims) > 2 else ()
        for each in (query, key)
    )
    if not heads or not few or any(many % count for many, count in zip(heads, few, strict=True)):
        raise LoweringError("heads of queries that are no multiple of those of keys are not generated")
    apart = atoms.regroup((query.dims[-3],), (few, tuple(many // count for many, count in zip(heads, few, strict=True))))
    query = Lowered(query.value, (*query.dims[:-3], *apart, *query.dims[-2:]))
    shared = [Lowered(each.value, (*each.dims[:-3], each.dims[-3], (), *each.dims[-2:])) for each in (key, value)]
    return query, shared[0], shared[1]


def _scores(low: Lowering, node: Node, query: Lowered, key: Lowered) -> tuple[Value, Dims]:
    """Multiply queries by keys, each head by itself."""
    atoms = low.b.atoms
    if len(query.dims) < 2 or not key.dims[-2] or not query.dims[-1]:
        raise LoweringError(f"{node.target} with a single key or head element is not generated")
    atoms.unify(query.dims[-1], key.dims[-1])
    heads = atoms.broadcast(query.dims[:-2], key.dims[:-2])
    batch = tuple(atom for dim in heads for atom in dim)
    rows, inner, cols = (atoms.leaves(dim) for dim in (query.dims[-2], query.dims[-1], key.dims[-2]))
    value = _leaf(low, node, "product", frozenset((*batch, *rows, *cols)), "scores")
    transposed = Lowered(key.value, (*key.dims[:-2], key.dims[-1], key.dims[-2]))
    low.add_product(Contraction(query, transposed, batch, rows, cols, inner, value.id, dtype=node.outputs[0].dtype))
    return value, (*heads, query.dims[-2], key.dims[-2])


def _leaf(low: Lowering, node: Node, op: str, atoms: frozenset[int], label: str) -> Value:
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS:
        raise LoweringError(f"attention in {dtype} is not generated")
    value = low.b.leaf(op, COMPUTE[dtype], atoms)
    low.b.label(value, label)
    return value


def _masked(low: Lowering, logits: Value, mask: Lowered, dims: Any) -> Value:
    low.b.atoms.broadcast(dims, mask.dims)
    if mask.value.dtype == "bool":
        return low.b.call("where", mask.value, logits, float("-inf"))
    return logits + low.b.compute(mask.value, "float32")


def absorb_sink(low: Lowering, node: Node) -> bool:
    """Take one more logit behind the scores of an attention as a part of it; False where it is none."""
    if node.op != "cat" or low.contraction is None or low.attention is not None or len(node.args[0]) != 2:
        return False
    scores, more = node.args[0]
    rank = len(node.outputs[0].shape)
    if node.argument(1, "dim", 0) % rank != rank - 1 or not low.flow.is_internal(scores) or not is_one(low.graph.meta(more).shape[-1]):
        return False
    found = low.value(scores)
    if low.flow.is_internal(more) or not is_made_of_scores(low, found.value) or len(found.dims) != rank:
        return False
    sink = low.value(more)
    low.b.atoms.broadcast(found.dims[:-1], sink.dims[:-1])
    low.b.label(sink.value, "sink")
    low.sinks[Ref(node.name)] = (found, sink)
    return True


def absorb_softmax(low: Lowering, node: Node) -> bool:
    """Take a softmax of scores as part of an attention; False where it is none."""
    contraction = low.contraction
    if contraction is None or low.attention is not None or node.op not in ("softmax", *WEIGHT_CASTS):
        return False
    source = node.args[0]
    if node.op in WEIGHT_CASTS:
        if source in low.sinks:
            low.sinks[Ref(node.name)] = low.sinks[source]
            return True
        weights = _weights(low, source) if isinstance(source, Ref) else None
        if weights is not None:
            low.weights[Ref(node.name)] = weights
        return weights is not None
    if not low.flow.chained and source not in low.sinks:
        # no product of weights and values: a softmax of features
        return False
    logits = low.sinks[source][0] if source in low.sinks else low.value(source)
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    atoms = low.b.atoms
    if not isinstance(dim, int) or dim % len(logits.dims) != len(logits.dims) - 1:
        raise LoweringError("a softmax of scores over another dimension than the keys is not generated")
    if atoms.leaves(logits.dims[-1]) != keys_of(low):
        raise LoweringError("a product and a reduction do not share a kernel")
    if source in low.sinks:
        # weights of keys are what is left without the last one
        low.sinks[Ref(node.name)] = low.sinks[source]
    else:
        low.weights[Ref(node.name)] = logits
    return True


def absorb_second_product(low: Lowering, node: Node) -> bool:
    """Multiply the weights of an attention by its values; False where the left operand is not made of the scores."""
    if low.contraction is None or low.attention is not None or node.op not in ("matmul", "bmm", "einsum"):
        return False
    if node.op == "einsum":
        return _absorb_equation(low, node)
    left = node.args[0]
    found = _logits(low, left) if isinstance(left, Ref) else None
    if found is None:
        return False
    logits, softmax = found
    if low.b.atoms.leaves(logits.dims[-1]) != keys_of(low):
        raise LoweringError("the second product sums over another dimension than the keys")
    _complete(low, node, logits, _operand(low, node.args[1]), softmax=softmax, causal=False, safe=False)
    return True


def _logits(low: Lowering, ref: Ref) -> tuple[Lowered, bool] | None:
    """Find what weights are made of, and whether by a softmax; none where they are not made of the scores."""
    weights = _weights(low, ref)
    if weights is not None:
        return weights, True
    if not low.flow.is_internal(ref) or not is_made_of_scores(low, low.value(ref).value):
        return None
    logits = exponent_of(low, low.value(ref))
    return (low.value(ref), False) if logits is None else (logits, True)


def _absorb_equation(low: Lowering, node: Node) -> bool:
    """Multiply weights by values as an equation says, with either of them first."""
    words, out, refs = read_equation(node)
    for place in (0, 1):
        found = _logits(low, refs[place])
        if found is None:
            continue
        logits, softmax = found
        weights, word = words[place], words[1 - place]
        value = _operand(low, refs[1 - place])
        dims = lettered(low, (weights, word), (logits, value))
        summed, wide = (set(weights) & set(word)) - set(out), set(word) - set(weights)
        if atoms_of(low, dims, summed) != keys_of(low) or not wide <= set(out) or not set(weights) - summed <= set(out):
            raise LoweringError("the second product sums over another dimension than the keys")
        order = tuple(dims[letter] for letter in out)
        _record(low, node, logits.value, value, (atoms_of(low, dims, wide), order), softmax=softmax, causal=False, safe=False)
        return True
    return False


def _weights(low: Lowering, ref: Ref) -> Lowered | None:
    """Find the softmax behind a value; a view that keeps heads, rows and columns apart is seen through."""
    if ref in low.weights:
        return low.weights[ref]
    node = low.graph.by_name.get(ref.name)
    if node is None or not is_view(node) or not isinstance(node.args[0], Ref):
        return None
    if node.args[0] in low.sinks:
        return _without_sink(low, node)
    base = _weights(low, node.args[0])
    if base is None:
        return None
    return Lowered(base.value, see_through(low.b.atoms, node, base.dims))


def _without_sink(low: Lowering, node: Node) -> Lowered | None:
    """Take a slice of all weights but the last one as the weights of the keys."""
    logits, sink = low.sinks[node.args[0]]
    shape, out = low.graph.meta(node.args[0]).shape, node.outputs[0].shape
    last = len(shape) - 1
    if node.op != "slice" or node.argument(1, "dim", 0) % len(shape) != last or node.argument(4, "step", 1) != 1:
        return None
    if node.argument(2, "start") not in (None, 0) or any(one != two + 1 for one, two in zip(shape[last], out[last], strict=True)):
        return None
    low.flow.absorbed_views.add(node.name)
    low.sink = sink.value.id
    return logits


def _complete(low: Lowering, node: Node, logits: Lowered, value: Lowered, *, softmax: bool, causal: bool, safe: bool) -> None:
    """Multiply weights by values, heads by heads."""
    atoms = low.b.atoms
    if len(value.dims) < 2:
        raise LoweringError(f"{node.target} with a single value element is not generated")
    atoms.unify(logits.dims[-1], value.dims[-2])
    batch = atoms.broadcast(logits.dims[:-2], value.dims[:-2])
    if len(batch) > max(0, len(node.outputs[0].shape) - 2):
        # groups of heads are heads again
        batch = (*batch[:-2], (*batch[-2], *batch[-1]))
    order = (*batch, logits.dims[-2], value.dims[-1])
    _record(low, node, logits.value, value, (atoms.leaves(value.dims[-1]), order), softmax=softmax, causal=causal, safe=safe)


def _record(
    low: Lowering,
    node: Node,
    logits: Value,
    value: Lowered,
    shape: tuple[tuple[int, ...], Dims],
    *,
    softmax: bool,
    causal: bool,
    safe: bool,
) -> None:
    """Record the second product, by the atoms of a value's elements and the dimensions of the result."""
    atoms, (wide, dims) = low.b.atoms, shape
    if not wide:
        raise LoweringError(f"{node.target} with a single value element is not generated")
    settle_products(low, logits, value)
    kept = atoms.leaves((*low.products[0].batch, *low.products[0].rows))
    if frozenset(atoms.leaves(atom for dim in dims for atom in dim)) != frozenset((*kept, *wide)):
        raise LoweringError("heads of scores and values differ")
    result, dtype = _leaf(low, node, "attended", frozenset((*kept, *wide)), "attended"), node.outputs[0].dtype
    if low.summed is not None and softmax:
        raise LoweringError("a sum of scores beside their softmax is not generated")
    logits, factors = without_factors(low, logits, dtype)
    attention = Attention(logits.id, value, wide, softmax, causal, safe, result.id, dtype, low.sink, low.summed)
    low.attention = with_log_sum(low, attention)
    low.define(node, multiplied(result, factors), dims)


ATTENTION_RULES: dict[str, Rule] = {"scaled_dot_product_attention": _attention}
"""Attention by operator name."""
