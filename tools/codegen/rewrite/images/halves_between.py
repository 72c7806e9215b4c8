"""Halves between a norm and the convolutions that read it: what one would write as float32 and the other bring to halves first.

A normalised row of n elements lies within the root of n, so a norm's result has a bound that its weights tell: the power of two that takes
this to 2^15 is known before a call. The norm's kernel, activations after it included, writes the product with that power as halves, its
channels last, and a convolution by single halves (`fp16x1`) reads them as they lie. No pass over the image is left: neither for its
largest element nor to round it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.operators.norm_bounds import SCALE, behind_views, bounded_source, norm_of, readers
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.views import is_view

SINGLE = "fp16x1"
"""Precision of such a convolution."""


def with_halves_between(graph: OperatorGraph, schedule: Schedule) -> OperatorGraph:
    """Have norms hand halves on to the convolutions that multiply single halves by a kernel of ours."""
    if not any(region.is_generated and region.parameters.get("precision") == SINGLE for region in schedule.regions):
        return graph
    regions = {name: region for region in schedule.regions if region.is_generated for name in region.nodes}
    takes = {node.name for node in graph.nodes if node.name in regions and regions[node.name].parameters.get("precision") == SINGLE}
    found: dict[str, Node] = {}
    for name in takes:
        made = bounded_source(graph, graph.by_name[name])
        if made and made.name in regions and all(user.name in takes for user in readers(graph, Ref(made.name))):
            found[made.name] = made
    return _Rewriting(graph, found).run() if found else graph


class _Rewriting:
    """Writes the graph in which the named values are halves."""

    def __init__(self, graph: OperatorGraph, found: dict[str, Node]) -> None:
        self.graph, self.found = graph, found
        self.scales = {name: Ref(self._free(f"{name}_scale")) for name in found}

    def run(self) -> OperatorGraph:
        """Change the values, what views see of them, and their readers; the powers of two are made once for all calls."""
        graph = self.graph
        scalar = TensorMeta((), "float32")
        packed = [
            Node(ref.name, "helper.norm_scale.default", norm_of(graph, self.found[name]) or (), {}, (scalar,))
            for name, ref in self.scales.items()
        ]
        names = {node.name for node in packed}
        return replace(
            graph,
            nodes=tuple(self._changed(node) for node in graph.nodes),
            inputs={**graph.inputs, **dict.fromkeys(names, scalar)},
            fixed=graph.fixed | names,
            prepacked=(*graph.prepacked, *packed),
        )

    def _changed(self, node: Node) -> Node:
        if node.name in self.found:
            return replace(node, outputs=(_halves(node.outputs[0]), *node.outputs[1:]), scale=self.scales[node.name])
        made = behind_views(self.graph, node.args[0]) if node.args and isinstance(node.args[0], Ref) else None
        if made is None or made.name not in self.found:
            return node
        if is_view(node):
            return replace(node, outputs=(_halves(node.outputs[0]),))
        return replace(node, kwargs={**node.kwargs, SCALE: self.scales[made.name]})

    def _free(self, name: str) -> str:
        while name in self.graph.inputs or name in self.graph.by_name:
            name += "_"
        return name


def _halves(meta: TensorMeta) -> TensorMeta:
    return replace(meta, dtype="float16")
