"""Lower LSTM, GRU and RNN on padded sequences: one operator a region, with its tensors as they lie in memory."""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import FLOATS
from tools.codegen.ir.operators.families import RECURRENT
from tools.codegen.ir.recurrent import Cell, LayerWeights, Recurrent
from tools.codegen.lower.region.lowering import Lowering, Rule


def _recurrent(low: Lowering, node: Node) -> None:
    if len(low.members) > 1:
        raise LoweringError(f"{node.target} shares its kernels with nothing else")
    if node.overload != "input":
        raise LoweringError(f"{node.target}: packed sequences are not generated")
    given, first, weights, biased, layers, dropout, training, both, batch_first = node.args
    if training and dropout:
        raise LoweringError(f"{node.target}: dropout between layers is not generated")
    meta, cell = low.graph.meta(given), Cell(node.op)
    first = list(first) if isinstance(first, tuple | list) else [first]
    made = _layers(weights, 4 if biased else 2, layers, 2 if both else 1)
    hidden = low.graph.meta(made[0][0].hidden).shape[1]
    if low.graph.meta(made[0][0].hidden).shape[0] != tuple(cell.gates * size for size in hidden) or len(meta.shape) != 3:
        raise LoweringError(f"{node.target}: projected states are not generated")
    dtypes = {low.graph.meta(ref).dtype for ref in node.refs}
    if len(dtypes) > 1 or not dtypes <= FLOATS:
        raise LoweringError(f"{node.target} in {' and '.join(sorted(dtypes))} is not generated")
    zeros = all(fill_number(low.graph.by_name.get(ref.name)) == 0 for ref in first)
    states = () if zeros else tuple(first)
    for ref in dict.fromkeys([given, *states, *(ref for layer in made for one in layer for ref in _tensors(one))]):
        low.read_as_it_is(ref)
    escaping = {ref.index: ref for ref in low.flow.escaping()}
    for place, result in enumerate(node.outputs):
        dims = low.b.atoms.dims(result.shape)
        low.define(node, low.b.leaf("recurrent", "float32", (atom for dim in dims for atom in dim)), dims, index=place)
    low.recurrent = Recurrent(cell, given, meta, states, made, bool(batch_first), hidden, escaping)


def _layers(weights: Any, each: int, layers: int, directions: int) -> tuple[tuple[LayerWeights, ...], ...]:
    """Part the list of all weights; each direction of a layer has `each` of them."""
    if len(weights) != each * layers * directions:
        raise LoweringError("a recurrent layer with projected states is not generated")
    parts = [
        LayerWeights(*weights[at : at + 2], *(weights[at + 2 : at + 4] if each == 4 else (None, None)))
        for at in range(0, len(weights), each)
    ]
    return tuple(tuple(parts[at : at + directions]) for at in range(0, len(parts), directions))


def _tensors(one: LayerWeights) -> list[Ref]:
    return [ref for ref in (one.inputs, one.hidden, one.input_bias, one.hidden_bias) if ref is not None]


RECURRENT_RULES: dict[str, Rule] = dict.fromkeys(sorted(RECURRENT), _recurrent)
"""Recurrent layers."""
