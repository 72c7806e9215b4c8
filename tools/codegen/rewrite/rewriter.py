"""One pass over a graph's nodes, in order, by rules that put other nodes in a node's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta, find_refs, map_refs
from tools.codegen.ir.views import is_view

Rule = Callable[["Rewriter", Node], Sequence[Node] | None]
"""Writes a node as others, of which the last has its name; None where it stays as it is."""


@dataclass(frozen=True)
class Rules:
    """What a pass knows."""

    aliases: Mapping[str, str]
    """Second names of operators."""
    is_identity: Callable[[Rewriter, Node], bool]
    """Whether a node gives back the first value it reads: its readers then read that."""
    by_operator: Mapping[str, Rule]
    otherwise: Callable[[Rewriter, Node], Sequence[Node]]
    """Writes the nodes that no rule rewrites."""


@dataclass(frozen=True)
class Applied:
    """One node that a pass wrote as others."""

    node: str
    operator: str
    """What it was, e.g. `glu`."""
    became: tuple[str, ...]
    """Operators that took its place, in order; empty where its readers read what it read, or where it had none."""


@dataclass(frozen=True)
class Rewritten:
    """What a pass leaves."""

    graph: OperatorGraph
    applied: tuple[Applied, ...]
    """In order of the nodes; what nothing reads comes last."""


def rewrite(graph: OperatorGraph, rules: Rules) -> Rewritten:
    """Apply rules once, in order of the nodes, and leave out what nothing reads."""
    rewriter = Rewriter(graph, rules)
    for node in graph.nodes:
        rewriter.add(node)
    effects = graph.effects | rewriter.effects
    outputs = rewriter.substitute(graph.outputs)
    nodes = _alive(rewriter.nodes, outputs, effects)
    kept = {node.name for node in nodes}
    dead = (Applied(node.name, node.op, ()) for node in rewriter.nodes if node.name not in kept)
    return Rewritten(replace(graph, nodes=nodes, outputs=outputs, effects=effects), (*rewriter.applied, *dead))


def _alive(nodes: Sequence[Node], outputs: Any, effects: frozenset[str]) -> tuple[Node, ...]:
    """Leave out nodes whose results nobody reads and that write to nothing."""
    wanted = {ref.name for ref in find_refs(outputs)}
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.name in wanted or node.name in effects or not node.outputs:
            kept.append(node)
            wanted |= {ref.name for ref in node.refs}
    return tuple(reversed(kept))


def looked_at(graph: OperatorGraph, ref: Ref) -> Iterator[str]:
    """Name a value, and what it is a view of, and so on."""
    yield ref.name
    while (node := graph.by_name.get(ref.name)) is not None and node.refs and is_view(node):
        ref = node.refs[0]
        yield ref.name


class Rewriter:
    """Collects the new nodes and which old values they stand for."""

    def __init__(self, graph: OperatorGraph, rules: Rules) -> None:
        self.graph, self.rules = graph, rules
        self.nodes: list[Node] = []
        self.replaced: dict[Ref, Ref] = {}
        self.metas = dict(graph.inputs)
        self.effects: set[str] = set()
        targets = (node.refs[0] for node in graph.nodes if node.name in graph.effects)
        self.overwritten = frozenset(name for target in targets for name in looked_at(graph, target))
        """What the reference writes to in place: a copy of it may be of what it was before."""
        self.applied: list[Applied] = []
        self.written: dict[Ref, Ref] = {}
        """Which buffer each value will be written to; later readers of the buffer are given the value."""
        self.joined: dict[tuple[tuple[Ref, ...], int], Ref] = {}
        """What was concatenated so far: pieces and dimension to the result."""
        self.parts: dict[Ref, tuple[Ref, Ref]] = {}
        """Real and imaginary parts of complex values."""
        self.pairs: dict[Ref, Ref] = {}
        """The real tensors that complex values are views of, with both parts along the last dimension."""

    def add(self, node: Node) -> None:
        """Rewrite one node."""
        if node.name in self.graph.effects:
            self._keep(node)
            return
        written = node.op
        node = replace(node, args=self.substitute(node.args), kwargs=self.substitute(node.kwargs))
        if node.op in self.rules.aliases:
            node = replace(node, target=node.target.replace(f".{node.op}.", f".{self.rules.aliases[node.op]}."))
        if self.rules.is_identity(self, node):
            self.replaced[Ref(node.name)] = node.refs[0]
            self.applied.append(Applied(node.name, written, ()))
            return
        rule = self.rules.by_operator.get(node.op)
        new = (rule(self, node) if rule else None) or self.rules.otherwise(self, node)
        became = tuple(each.op for each in new)
        if became != (written,):
            self.applied.append(Applied(node.name, written, became))
        for each in new:
            self._append(each)

    def _keep(self, node: Node) -> None:
        """Leave a write of the reference's own as it is: who reads the buffer after it reads the buffer."""
        target, *others = node.args
        self._append(replace(node, args=(target, *self.substitute(others)), kwargs=self.substitute(node.kwargs)))
        self.replaced.pop(target, None)

    def write(self, buffer: Ref, value: Ref, name: str, meta: TensorMeta) -> Node:
        """Write a value to a buffer; a write to it that nobody has to see any more is taken back."""
        before = self.written.get(buffer)
        if before is not None:
            taken = {each.name for each in self.nodes if each.name in self.effects and each.args[0] == before}
            self.nodes = [each for each in self.nodes if each.name not in taken]
            self.effects -= taken
        target = before or buffer
        self.written[value], self.replaced[target] = target, value
        self.effects.add(name)
        return Node(name, "aten.copy_.default", (target, value), {}, (meta,))

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        if len(node.outputs) == 1:
            self.metas[node.name] = node.outputs[0]

    def meta_of(self, ref: Ref) -> TensorMeta:
        """Shape and dtype of a buffer, or of what is written to it."""
        return self.metas[self.written.get(ref, ref).name]

    def substitute(self, tree: Any) -> Any:
        """Replace values that were rewritten away."""
        return map_refs(tree, lambda ref: self.replaced.get(ref, ref))
