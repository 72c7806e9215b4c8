"""Lower attention: a product, pointwise operators on its scores, a softmax (or none), and a second product in one kernel.

`scaled_dot_product_attention` is lowered as a whole. Written out in plain torch, the first product is an ordinary
contraction; the softmax of its scores and the product of what came of them with the values complete it.
"""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Attention, Contraction, Lowered
from tools.codegen.ir.operators import CASTS
from tools.codegen.ir.sizes import Sizes
from tools.codegen.ir.views import is_view, see_through
from tools.codegen.lower.lowering import Lowering, Rule

FLOATS = ("float16", "bfloat16", "float32")
WEIGHT_CASTS = CASTS - {"double"}
"""Casts that leave weights what they are; no attention is in doubles."""
SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")


def _attention(low: Lowering, node: Node) -> None:
    given = {**dict(zip(SDPA, node.args, strict=False)), **node.kwargs}
    if given.get("dropout_p") or given.get("enable_gqa"):
        raise LoweringError(f"{node.target} with dropout or with fewer heads of keys is not generated")
    query, key, value = (low.read_again(given[name]) for name in ("query", "key", "value"))
    scores = _scores(low, node, query, key)
    rows, cols = query.dims[-2], key.dims[-2]
    scale = given.get("scale")
    logits = scores * (_usual_scale(low, query) if scale is None else low.b.const(scale))
    causal = bool(given.get("is_causal"))
    if causal:
        allowed = low.b.index(low.b.atoms.leaves(cols)) <= low.b.index(low.b.atoms.leaves(rows))
        logits = low.b.call("where", allowed, logits, float("-inf"))
    mask = given.get("attn_mask")
    if isinstance(mask, Ref):
        logits = _masked(low, logits, low.value(mask), (*query.dims[:-1], cols))
    _complete(low, node, Lowered(logits, (*query.dims[:-1], cols)), value, softmax=True, causal=causal, safe=True)


def _scores(low: Lowering, node: Node, query: Lowered, key: Lowered) -> Value:
    """Multiply queries by keys, each head by itself."""
    atoms = low.b.atoms
    if low.contraction is not None or low.window is not None or low.reduced:
        raise LoweringError("attention shares its kernel with pointwise operators only")
    if len(query.dims) < 2 or not query.dims[-2] or not key.dims[-2] or not query.dims[-1]:
        raise LoweringError(f"{node.target} with a single query, key or head element is not generated")
    atoms.unify(query.dims[-1], key.dims[-1])
    batch = tuple(atom for dim in atoms.broadcast(query.dims[:-2], key.dims[:-2]) for atom in dim)
    rows, inner, cols = (atoms.leaves(dim) for dim in (query.dims[-2], query.dims[-1], key.dims[-2]))
    value = _leaf(low, node, "product", frozenset((*batch, *rows, *cols)), "scores")
    transposed = Lowered(key.value, (*key.dims[:-2], key.dims[-1], key.dims[-2]))
    low.contraction = Contraction(query, transposed, batch, rows, cols, inner, value.id)
    return value


def _leaf(low: Lowering, node: Node, op: str, atoms: frozenset[int], label: str) -> Value:
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS:
        raise LoweringError(f"attention in {dtype} is not generated")
    value = low.b.leaf(op, COMPUTE[dtype], atoms)
    low.b.label(value, label)
    return value


def _usual_scale(low: Lowering, query: Lowered) -> Value:
    sizes: Sizes = (1,) * low.b.atoms.traces
    for atom in low.b.atoms.leaves(query.dims[-1]):
        sizes = tuple(a * b for a, b in zip(sizes, low.b.atoms.size(atom), strict=True))
    if len(set(sizes)) == 1:
        return low.b.const(float(sizes[0]) ** -0.5)
    return 1.0 / low.b.call("sqrt", low.b.size(query.dims[-1]) * 1.0)


def _masked(low: Lowering, logits: Value, mask: Lowered, dims: Any) -> Value:
    low.b.atoms.broadcast(dims, mask.dims)
    if mask.value.dtype == "bool":
        return low.b.call("where", mask.value, logits, float("-inf"))
    return logits + low.b.compute(mask.value, "float32")


def absorb_softmax(low: Lowering, node: Node) -> bool:
    """Take a softmax of scores as part of an attention; False where it is none."""
    contraction = low.contraction
    if contraction is None or low.attention is not None or node.op not in ("softmax", *WEIGHT_CASTS):
        return False
    source = node.args[0]
    if node.op in WEIGHT_CASTS:
        weights = low.weights.get(source) if isinstance(source, Ref) else None
        if weights is not None:
            low.weights[Ref(node.name)] = weights
        return weights is not None
    logits = low.value(source)
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    atoms = low.b.atoms
    if not isinstance(dim, int) or dim % len(logits.dims) != len(logits.dims) - 1:
        raise LoweringError("a softmax of scores over another dimension than the keys is not generated")
    if atoms.leaves(logits.dims[-1]) != atoms.leaves(contraction.cols):
        raise LoweringError("a product and a reduction do not share a kernel")
    low.weights[Ref(node.name)] = logits
    return True


def absorb_second_product(low: Lowering, node: Node) -> bool:
    """Multiply the weights of an attention by its values; False where the left operand is not made of the scores."""
    contraction, left = low.contraction, node.args[0]
    if contraction is None or low.attention is not None or node.op not in ("matmul", "bmm") or not isinstance(left, Ref):
        return False
    weights = _weights(low, left)
    logits = weights or (low.value(left) if low.is_internal(left) else None)
    if logits is None:
        return False
    if low.b.atoms.leaves(logits.dims[-1]) != low.b.atoms.leaves(contraction.cols):
        raise LoweringError("the second product sums over another dimension than the keys")
    _complete(low, node, logits, low.read_again(node.args[1]), softmax=weights is not None, causal=False, safe=False)
    return True


def _weights(low: Lowering, ref: Ref) -> Lowered | None:
    """Find the softmax behind a value; a view that keeps heads, rows and columns apart is seen through."""
    if ref in low.weights:
        return low.weights[ref]
    node = low.graph.by_name.get(ref.name)
    if node is None or not is_view(node) or not isinstance(node.args[0], Ref):
        return None
    base = _weights(low, node.args[0])
    if base is None:
        return None
    return Lowered(base.value, see_through(low.b.atoms, node, base.dims))


def _complete(low: Lowering, node: Node, logits: Lowered, value: Lowered, *, softmax: bool, causal: bool, safe: bool) -> None:
    """Record the second product."""
    atoms, contraction = low.b.atoms, low.contraction
    assert contraction is not None
    if len(value.dims) < 2 or not value.dims[-1]:
        raise LoweringError(f"{node.target} with a single value element is not generated")
    atoms.unify(logits.dims[-1], value.dims[-2])
    batch = atoms.broadcast(logits.dims[:-2], value.dims[:-2])
    flat = atoms.leaves(atom for dim in batch for atom in dim)
    rows = atoms.leaves(logits.dims[-2])
    if frozenset(atoms.leaves(contraction.batch)) != frozenset(flat) or atoms.leaves(contraction.rows) != rows:
        raise LoweringError("heads of scores and values differ")
    wide = atoms.leaves(value.dims[-1])
    result = _leaf(low, node, "attended", frozenset((*flat, *rows, *wide)), "attended")
    low.attention = Attention(logits.value.id, value, wide, softmax, causal, safe, result.id)
    low.define(node, result, (*batch, logits.dims[-2], value.dims[-1]))


ATTENTION_RULES: dict[str, Rule] = {"scaled_dot_product_attention": _attention}
"""Attention by operator name."""
