"""A loop being rewritten: its body, and what is put before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta, map_refs
from tools.codegen.ir.loop import Loop, Sliced, Whole, without
from tools.codegen.ir.sizes import Sizes, Varying


class LoopEdit:
    """Collects the nodes of a new body and those before the loop."""

    def __init__(self, loop: Loop, metas: Mapping[str, TensorMeta], graph: OperatorGraph) -> None:
        """Take the loop, and the shapes of the values around it."""
        self.loop = loop
        self.metas = dict(metas)
        self.taken = {*graph.inputs, *graph.by_name, *metas}
        self.before: list[Node] = []
        self.arguments: list[Ref] = list(loop.args)
        self.whole, self.sliced = list(loop.whole), list(loop.sliced)
        self.inputs = dict(loop.body.inputs)
        self.nodes: list[Node] = []
        self.replaced: dict[Ref, Ref] = {}

    def done(self) -> tuple[tuple[Node, ...], Loop]:
        """Return what goes before the loop, and the loop."""
        now = self.substitute
        body = replace(self.loop.body, inputs=self.inputs, nodes=tuple(self.nodes), outputs=now(self.loop.body.outputs))
        loop = replace(
            self.loop,
            args=tuple(self.arguments),
            body=body,
            whole=tuple(self.whole),
            sliced=tuple(self.sliced),
            carried=tuple(replace(one, after=now(one.after)) for one in self.loop.carried),
            left=tuple(replace(one, ref=now(one.ref)) for one in self.loop.left),
        )
        return tuple(self.before), loop

    def keep(self, node: Node) -> None:
        """Have a node in the body as it is."""
        self.nodes.append(replace(node, args=self.substitute(node.args), kwargs=self.substitute(node.kwargs)))

    def substitute(self, tree: Any) -> Any:
        """Replace values of the body that were rewritten away."""
        return map_refs(tree, lambda ref: self.replaced.get(ref, ref))

    def meta(self, ref: Ref) -> TensorMeta:
        """Shape of a value of the body."""
        if ref.name in self.inputs:
            return self.inputs[ref.name]
        found = next(node for node in (*self.nodes, *self.loop.body.nodes) if node.name == ref.name)
        return found.outputs[ref.index]

    def ahead(self, wish: str, target: str, args: tuple[Any, ...], meta: TensorMeta) -> Ref:
        """Put a node before the loop."""
        name = self._fresh(wish)
        self.before.append(Node(name, target, args, {}, (meta,)))
        self.metas[name] = meta
        return Ref(name)

    def body_node(self, wish: str, node: Node, args: tuple[Any, ...], meta: TensorMeta) -> Ref:
        """Put a node like another one into the body."""
        name = self._fresh(wish)
        self.nodes.append(replace(node, name=name, args=args, outputs=(meta,)))
        return Ref(name)

    def step_input(self, wish: str, source: Ref, dim: int) -> Ref:
        """Have the body read its part of a value around the loop."""
        name = self._fresh(f"{wish}_step")
        self.sliced.append(Sliced(name, self._argument(source), dim))
        self.inputs[name] = without(self.metas[source.name], dim)
        return Ref(name)

    def whole_input(self, wish: str, source: Ref) -> Ref:
        """Have the body read a value around the loop."""
        name = self._fresh(f"{wish}_whole")
        self.whole.append(Whole(name, self._argument(source)))
        self.inputs[name] = self.metas[source.name]
        return Ref(name)

    def source(self, ref: Ref) -> tuple[Ref, int | None] | None:
        """Tell which value around the loop an input of the body is, and along which dimension its part; none of others."""
        for whole in self.whole:
            if whole.name == ref.name:
                return self.arguments[whole.place], None
        for sliced in self.sliced:
            if sliced.name == ref.name:
                return self.arguments[sliced.place], sliced.dim
        return None

    def _argument(self, ref: Ref) -> int:
        self.arguments.append(ref)
        return len(self.arguments) - 1

    def _fresh(self, wish: str) -> str:
        names = {*self.taken, *self.inputs, *(node.name for node in (*self.nodes, *self.loop.body.nodes))}
        name, count = wish, 1
        while name in names:
            count += 1
            name = f"{wish}_{count}"
        self.taken.add(name)
        return name


def number(sizes: Sizes) -> int | Varying:
    """Write sizes as an argument of a node."""
    return sizes[0] if len(set(sizes)) == 1 else Varying(sizes)
