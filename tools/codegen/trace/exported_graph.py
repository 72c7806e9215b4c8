"""What one torch.export of one module gave, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tools.codegen.ir.constant_tensors import MAKES_NUMBERS
from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import DataSized, Node, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.sizes import Number


@dataclass(frozen=True)
class ExportedGraph:
    """One trace."""

    arguments: tuple[str, ...]
    parameters: dict[str, str]
    inputs: dict[str, TensorMeta]
    nodes: tuple[Node, ...]
    outputs: Any
    effects: frozenset[str]
    buffers: frozenset[str]
    blocked: tuple[str, ...]
    """Why nothing of it can be generated."""
    replayable: bool = True
    """Whether every call launches the same on the same memory."""
    attributes: Mapping[str, Number] = field(default_factory=dict)
    """Numbers that the constructor kept, by their path."""
    plain: frozenset[str] = frozenset()
    """Tensors that it kept as plain attributes, by their path."""

    @cached_property
    def places(self) -> dict[str, int]:
        """Where nodes are, by their names."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @property
    def signature(self) -> tuple[Any, ...]:
        """What must agree between the traces of one problem: operators, their wiring, ranks and dtypes."""
        return (tuple(map(_signature, self.nodes)), _nested(self.outputs), tuple(self.inputs))


def _signature(node: Node) -> tuple[Any, ...]:
    if node.target.startswith(MAKES_NUMBERS):
        # how many numbers there are may be a size
        return (node.name, MAKES_NUMBERS, tuple(node.kwargs), tuple((len(m.shape), m.dtype) for m in node.outputs))
    own = (node.name, node.target, tuple(node.kwargs), skeleton(node.args), tuple((len(m.shape), m.dtype) for m in node.outputs))
    if isinstance(node, DataSized):
        return (*own, node.left, tuple(map(_signature, node.body)))
    if isinstance(node, Dispatch):
        return (*own, node.experts, node.first, node.value, node.adds, tuple(map(_signature, node.body.nodes)))
    if not isinstance(node, Loop):
        return own
    inside = (node.backwards, node.whole, node.sliced, node.carried, node.left, tuple(node.body.inputs))
    return (*own, *inside, tuple(map(_signature, node.body.nodes)))


def _nested(tree: Any) -> Any:
    """Outputs as what can be hashed: lists and dictionaries told apart from tuples."""
    if isinstance(tree, tuple):
        return tuple(map(_nested, tree))
    if isinstance(tree, list):
        return ("list", *map(_nested, tree))
    return ("dict", *((key, _nested(item)) for key, item in tree.items())) if isinstance(tree, dict) else tree


def skeleton(tree: Any) -> Any:
    """Args without their numbers."""
    if isinstance(tree, tuple | list):
        return tuple(skeleton(item) for item in tree)
    if isinstance(tree, int | float) and not isinstance(tree, bool):
        return "number"
    return tree
