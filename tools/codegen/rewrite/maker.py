"""Writes the operators that take another's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.rewrite.rewriter import Rewriter

EXPANDS = frozenset({"expand", "expand_as"})


class Maker:
    """Writes the nodes that take the place of one."""

    def __init__(self, rewriter: Rewriter, node: Node, out: TensorMeta) -> None:
        """Begin with none, for a node whose result is computed as `out`."""
        self.rewriter, self.node, self.out = rewriter, node, out
        self.made: list[Node] = []

    def narrow(self, expanded: Ref) -> Ref:
        """See through the expansion of what had as many dimensions before, e.g. an index or a mask."""
        made = next((each for each in self.rewriter.nodes if each.name == expanded.name), None)
        if made is None or made.op not in EXPANDS:
            return expanded
        source = made.args[0]
        meta = self.rewriter.metas.get(source.name) if not source.index else None
        return source if meta is not None and len(meta.shape) == len(made.outputs[0].shape) else expanded

    def add(self, name: str, target: str, args: tuple[Any, ...], meta: TensorMeta, options: dict[str, Any] | None = None) -> Ref:
        """Add a node, and name its result."""
        self.made.append(Node(f"{self.node.name}_{name}", target, args, options or {}, (replace(meta, contiguous=True),)))
        return Ref(self.made[-1].name)

    def ended(self, target: str, args: tuple[Any, ...], options: dict[str, Any] | None = None) -> Sequence[Node]:
        """Finish with what takes the node's name."""
        return (*self.made, Node(self.node.name, target, args, options or {}, self.node.outputs))
