"""Parts of a tensor that are stored again and again, as a filter's state is, become values of their own: a step reads what the last stored.

`state[:, 0] = …` in every turn of a Python loop is, in a trace, a chain of tensors that differ in a part each. Who reads a part reads what
was stored there last, and who reads all of it has the parts put together where it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.codegen.ir.dispatch import Dispatch
from tools.codegen.ir.graph import DataSized, Node, Ref, TensorMeta, find_refs, map_refs
from tools.codegen.trace.exported_graph import ExportedGraph

OFTEN = 4
"""Times that each part of a tensor is stored, on average, from which on parts are values of their own."""
Root = tuple[Ref, int]
"""What a chain of stores begins with, and the dimension along which its parts lie."""


@dataclass(frozen=True)
class _Chain:
    """A tensor as what was stored into another one."""

    root: Root
    parts: Mapping[int, Ref]
    """By position, what was stored last."""
    meta: TensorMeta


def forward_stores(export: ExportedGraph) -> ExportedGraph:
    """Read stored parts where they were made, of tensors each part of which is stored often; others are left as they are."""
    if export.effects or any(isinstance(node, DataSized | Dispatch) for node in export.nodes):
        # what a chain begins with may be written before it is read; what is inside of others reads values that arguments do not name
        return export
    look = _Forwarding(export, None)
    parts: dict[Root, set[int]] = {}
    for root, position in look.stores:
        parts.setdefault(root, set()).add(position)
    often = frozenset(root for root, found in parts.items() if sum(look.stores[root, one] for one in found) >= OFTEN * len(found))
    return _Forwarding(export, often).export if often else export


class _Forwarding:
    """One pass over a trace; with `roots` only chains of these are followed."""

    def __init__(self, export: ExportedGraph, roots: frozenset[Root] | None) -> None:
        self._roots = roots
        self.stores: Counter[tuple[Root, int]] = Counter()
        """How often each part of each chain is stored."""
        self._chains: dict[Ref, _Chain] = {}
        self._made: set[Ref] = set()
        """Those that are put together."""
        self._read: dict[Ref, Ref] = {}
        """What is read in a value's place."""
        self._nodes: list[Node] = []
        self._taken = {*export.inputs, *(node.name for node in export.nodes)}
        for node in export.nodes:
            self._add(node)
        outputs = self._written_out(export.outputs)
        self.export = replace(export, nodes=tuple(self._nodes), outputs=outputs)

    def _add(self, node: Node) -> None:
        node = replace(node, args=self._now(node.args), kwargs=self._now(node.kwargs))
        if node.op == "select_scatter" and self._store(node):
            return
        if node.op == "select" and (found := self._load(node)) is not None:
            self._read[Ref(node.name)] = found
            return
        self._nodes.append(replace(node, args=self._written_out(node.args), kwargs=self._written_out(node.kwargs)))

    def _now(self, tree: Any) -> Any:
        return map_refs(tree, lambda ref: self._read.get(ref, ref))

    def _store(self, node: Node) -> bool:
        """Note a store of one part; False where a node is none, or one of a tensor that is not followed."""
        target, value, dim, position = node.args[:4]
        meta = node.outputs[0]
        if not isinstance(target, Ref) or not isinstance(value, Ref) or not isinstance(dim, int) or not isinstance(position, int):
            return False
        dim %= len(meta.shape)
        position %= meta.shape[dim][0]
        before = self._chains.get(target)
        if before is not None and before.root[1] != dim:
            before = None
        root = before.root if before else (target, dim)
        if self._roots is not None and root not in self._roots:
            return False
        self.stores[root, position] += 1
        parts = {**(before.parts if before else {}), position: value}
        self._chains[Ref(node.name)] = _Chain(root, parts, meta)
        return True

    def _load(self, node: Node) -> Ref | None:
        """Tell what a read of one part reads: what was stored there, or the same of what the chain begins with; None of another node."""
        source, dim, position = node.args[:3]
        chain = self._chains.get(source) if isinstance(source, Ref) else None
        if chain is None or not isinstance(dim, int) or not isinstance(position, int):
            return None
        shape = chain.meta.shape
        dim %= len(shape)
        if dim != chain.root[1]:
            return None
        position %= shape[dim][0]
        if position in chain.parts:
            return chain.parts[position]
        self._nodes.append(replace(node, args=(chain.root[0], dim, position)))
        return Ref(node.name)

    def _written_out(self, tree: Any) -> Any:
        """Put tensors together that are read as a whole."""
        tree = self._now(tree)
        for ref in find_refs(tree):
            self._put_together(ref)
        return self._now(tree)

    def _put_together(self, ref: Ref) -> None:
        chain = self._chains.get(ref)
        if chain is None or ref in self._made:
            return
        self._made.add(ref)
        source = chain.root[0]
        self._put_together(source)
        last = max(chain.parts)
        for position in sorted(chain.parts):
            value = self._now(chain.parts[position])
            self._put_together(value)
            name = ref.name if position == last else self._fresh(f"{ref.name}_{position}")
            self._nodes.append(Node(name, "aten.select_scatter.default", (source, value, chain.root[1], position), {}, (chain.meta,)))
            source = Ref(name)

    def _fresh(self, wish: str) -> str:
        while wish in self._taken:
            wish += "_"
        self._taken.add(wish)
        return wish
