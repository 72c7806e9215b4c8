"""An operator graph, and the cost model's choices of one, as JSON text and back: a closed set of records, numbers and names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from tools.codegen import OperatorGraph, Schedule
from tools.codegen.ir.constant_tensors import Tables
from tools.codegen.ir.dispatch import Common, Dispatch, OfExpert, Picked
from tools.codegen.ir.graph import Called, DataSized, DType, Formula, LaidOut, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.loop import Carried, Left, Loop, Sliced, StepNumber, Whole
from tools.codegen.ir.sizes import Attribute, Length, Varying
from tools.cost.choice import Choice

_LOOPS = (Carried, Left, Loop, Sliced, StepNumber, Whole)
_DISPATCHES = (Common, Dispatch, OfExpert, Picked)
_NODES = (Called, DataSized, Formula, LaidOut, Node)
_KINDS = (Attribute, Choice, DType, Length, OperatorGraph, Raw, Ref, Tables, TensorMeta, Varying, *_NODES, *_LOOPS, *_DISPATCHES)
_RECORDS = {one.__name__: one for one in _KINDS}


def as_text(graph: OperatorGraph, choices: tuple[Choice, ...]) -> bytes:
    """Write a graph and its choices; a value of another kind raises TypeError."""
    return json.dumps([_tree(graph), _tree(choices)]).encode()


def from_text(text: bytes) -> tuple[OperatorGraph, tuple[Choice, ...]]:
    """Read what `as_text` wrote."""
    graph, choices = map(_value, json.loads(text))
    return graph, choices


def _tree(value: Any) -> Any:
    """Name every kind that JSON does not have: `{"tuple": …}`, `{"Node": {field: …}}`."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_tree(item) for item in value]
    kind = type(value).__name__
    if kind in _RECORDS:
        return {kind: {field.name: _tree(getattr(value, field.name)) for field in fields(value)}}
    if kind in _WRITERS:
        return {kind: _WRITERS[kind](value)}
    raise TypeError(f"a {kind} has no place in an operator graph")


def _value(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_value(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    [(kind, content)] = tree.items()
    if kind in _RECORDS:
        return _RECORDS[kind](**{name: _value(item) for name, item in content.items()})
    return _READERS[kind](content)


_WRITERS: dict[str, Callable[[Any], Any]] = {
    "Schedule": lambda schedule: schedule.model_dump(mode="json"),
    "complex": lambda number: [number.real, number.imag],
    "dict": lambda pairs: [[_tree(key), _tree(item)] for key, item in pairs.items()],
    "frozenset": lambda items: [_tree(item) for item in sorted(items)],
    "tuple": lambda items: [_tree(item) for item in items],
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "Schedule": Schedule.model_validate,
    "complex": lambda parts: complex(*parts),
    "dict": lambda pairs: {_value(key): _value(item) for key, item in pairs},
    "frozenset": lambda items: frozenset(map(_value, items)),
    "tuple": lambda items: tuple(map(_value, items)),
}
