"""Lower rows sent to experts: their steps become stages of grouped products, each with the pointwise operators that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tools.codegen.ir.dispatch import Dispatch, OfExpert
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.grouped import Columns, GroupedProduct, Rows, Rowwise, Stage, Vector, Weight
from tools.codegen.ir.kernel import FLOATS, Kernel
from tools.codegen.ir.sizes import Varying

PRODUCTS = ("linear", "mm", "matmul", "addmm")
OUTSIDE = -1
"""Stage of what is there before the first one."""


@dataclass
class _Group:
    """Products that share a launch, while they are collected."""

    left: str
    width: tuple[int, ...]
    products: list[GroupedProduct] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


class Stages:
    """Parts the body of a dispatch into stages."""

    def __init__(self, graph: OperatorGraph, node: Dispatch, lower: Callable[[OperatorGraph], Kernel]) -> None:
        """Take the graph, the node, and what lowers a graph of pointwise operators."""
        self.lower = lower
        self.graph, self.node, self.body = graph, node, node.body
        self.groups: list[_Group] = []
        self.home: dict[str, int] = {}
        """Of values, the group that makes them."""
        self.metas: dict[str, TensorMeta] = dict(node.body.inputs)
        self.vectors: dict[str, Vector] = {}
        self.floating: dict[str, Node] = {}
        """What is made of rows that were read, without a product: whoever reads it makes it."""
        self.cut: dict[str, tuple[str, Columns]] = {}
        """Parts of a product: whose, and which columns."""

    def build(self) -> tuple[Stage, ...]:
        """Go through the body; raises LoweringError with the reason where something in it has no place in a stage."""
        for node in self._without_cuts():
            self.metas[node.name] = node.outputs[0]
            if node.op in PRODUCTS:
                self._product(node)
            else:
                self._pointwise(node)
        if self.home.get(self.node.value.name, OUTSIDE) == OUTSIDE:
            raise LoweringError("what experts do has no product in it")
        return tuple(self._stage(place) for place in range(len(self.groups)))

    def _without_cuts(self) -> list[Node]:
        """List the nodes with a product for each part of one that is only read in parts."""
        cuts = [node for node in self.body.nodes if node.op == "slice"]
        by_source: dict[str, list[Node]] = {}
        for cut in cuts:
            assert isinstance(cut.args[0], Ref)
            by_source.setdefault(cut.args[0].name, []).append(cut)
        found = []
        for node in self.body.nodes:
            parts = by_source.get(node.name)
            if parts is None:
                found += [] if node in cuts else [node]
                continue
            if node.op not in PRODUCTS or any(user not in cuts for user in self.body.users[node.name]):
                raise LoweringError("an expert takes a part of something else than a product")
            for part in parts:
                start, by = part.args[2], part.args[4]
                numbers = start.values if isinstance(start, Varying) else (start,) * self.graph.traces if start else ()
                starts = tuple(map(int, numbers))
                if not isinstance(by, int):
                    raise LoweringError("an expert takes every so many columns of a product, at each size others")
                self.cut[part.name] = node.name, Columns(starts, by)
                found.append(replace(node, name=part.name, outputs=part.outputs))
        return found

    def _product(self, node: Node) -> None:
        left, right, bias = _operands(node)
        if self.home.get(left.name, OUTSIDE) == OUTSIDE and left.name not in {one.name for one in self.node.picked}:
            raise LoweringError("experts' rows are computed with before their first product")
        own = next((one for one in self.node.of_expert if one.name == right.name), None)
        if own is None:
            raise LoweringError("experts share a matrix, or multiply rows with rows")
        dtypes = {self.metas[left.name].dtype, self.metas[right.name].dtype, node.outputs[0].dtype}
        if len(dtypes) > 1 or not dtypes <= FLOATS:
            raise LoweringError(f"products of experts in {' and '.join(sorted(dtypes))} are not generated")
        columns = self.cut.get(node.name, ("", Columns()))[1]
        name = f"{node.name}_sum" if bias is not None else node.name
        self.metas[name] = node.outputs[0]
        product = GroupedProduct(name, self._weight(own, turned=own.turned), (node.op == "linear") != own.turned, columns)
        place = self._group(left.name, node.outputs[0].shape[1], product)
        self.home[name] = place
        if bias is not None:
            vector = self._vector(bias, columns, node.outputs[0])
            self._pointwise(Node(node.name, "aten.add.Tensor", (Ref(name), vector), {}, node.outputs))

    def _group(self, left: str, width: tuple[int, ...], product: GroupedProduct) -> int:
        after = self.home.get(left, OUTSIDE)
        for place, group in enumerate(self.groups):
            if place > after and group.left == left and group.width == width:
                group.products.append(product)
                return place
        self.groups.append(_Group(left, width, [product]))
        return len(self.groups) - 1

    def _pointwise(self, node: Node) -> None:
        own = {*(one.name for one in self.node.of_expert), *(one.name for one in self.node.common)}
        args = tuple(
            self._vector(arg, Columns(), node.outputs[0]) if isinstance(arg, Ref) and arg.name in own else arg for arg in node.args
        )
        node = replace(node, args=args)
        self.metas[node.name] = node.outputs[0]
        place = max((self.home.get(ref.name, OUTSIDE) for ref in node.refs), default=OUTSIDE)
        if place == OUTSIDE:
            self.floating[node.name] = node
        else:
            self.home[node.name] = place
            self._bring(node, place)
            self.groups[place].nodes.append(node)

    def _bring(self, node: Node, place: int) -> None:
        """Have a group make what a node reads of values that no product is in."""
        for ref in node.refs:
            if ref.name in self.floating and self.floating[ref.name] not in self.groups[place].nodes:
                self._bring(self.floating[ref.name], place)
                self.groups[place].nodes.append(self.floating[ref.name])

    def _vector(self, ref: Ref, columns: Columns, result: TensorMeta) -> Ref:
        """Have the epilogue read a vector, or the part of it that belongs to the columns of a product."""
        meta, width = self.body.inputs[ref.name], result.shape[1]
        part = bool(meta.shape) and (columns != Columns() or meta.shape[0] not in (width, (1,) * len(width)))
        name = f"{ref.name}_{len(self.vectors)}" if part else ref.name
        if name not in self.vectors:
            own = next((one for one in self.node.of_expert if one.name == ref.name), None)
            if own is not None:
                weight = self._weight(own, turned=False)
            else:
                common = next(one for one in self.node.common if one.name == ref.name)
                weight = Weight(ref.name, (self.node.args[common.place],), meta, is_common=True)
            self.vectors[name] = Vector(name, weight, columns)
            self.metas[name] = replace(meta, shape=(width,)) if part else meta
        return Ref(name)

    def _weight(self, own: OfExpert, *, turned: bool) -> Weight:
        meta = self.body.inputs[own.name]
        lies = replace(meta, shape=tuple(reversed(meta.shape))) if turned else meta
        return Weight(own.name, tuple(self.node.args[place] for place in own.places), lies)

    def _stage(self, place: int) -> Stage:
        group = self.groups[place]
        later = [each for after in self.groups[place + 1 :] for each in (*after.nodes,)]
        wanted = dict.fromkeys(
            name
            for name, home in self.home.items()
            if home == place
            and (
                name == self.node.value.name
                or any(after.left == name for after in self.groups[place + 1 :])
                or any(Ref(name) in node.refs for node in later)
            )
        )
        width = group.width
        for node in group.nodes:
            if node.outputs[0].shape[1] not in (width, (1,) * len(width)):
                raise LoweringError("what follows a product of experts has other columns")
        made = {*(node.name for node in group.nodes), *(product.name for product in group.products)}
        read = dict.fromkeys(ref.name for node in group.nodes for ref in node.refs if ref.name not in made)
        rows = tuple(self._rowwise(name) for name in read if name not in self.vectors)
        vectors = tuple(self.vectors[name] for name in read if name in self.vectors)
        summed = self.metas[group.left].shape[1]
        results = tuple(self._rowwise(name) for name in wanted)
        if any(result.width != width for result in results):
            raise LoweringError("what experts make of a product has other columns")
        return Stage(self._rowwise(group.left), tuple(group.products), self._epilogue(group, wanted), rows, vectors, results, summed, width)

    def _rowwise(self, name: str) -> Rowwise:
        picked = next((one for one in self.node.picked if one.name == name), None)
        if picked is None:
            return Rowwise(name, Rows.POSITION, self.metas[name], None)
        return Rowwise(name, Rows.PAIR if picked.pair else Rows.ROW, self.metas[name], self.node.args[picked.place])

    def _epilogue(self, group: _Group, wanted: Sequence[str] | dict[str, None]) -> Kernel | None:
        inside = {node.name for node in group.nodes}
        if not inside:
            return None
        read = dict.fromkeys(ref.name for node in group.nodes for ref in node.refs if ref.name not in inside)
        returned = tuple(Ref(name) for name in wanted if name in inside)
        graph = OperatorGraph((), {}, {name: self.metas[name] for name in read}, tuple(group.nodes), returned, traces=self.graph.traces)
        kernel = self.lower(graph)
        if kernel.builder.arguments:
            raise LoweringError("experts compute with a number that varies with the sizes")
        return kernel


def _operands(node: Node) -> tuple[Ref, Ref, Ref | None]:
    """Name what a product multiplies, and what is added to it."""
    if node.op == "addmm":
        if node.kwargs:
            raise LoweringError("an expert's addmm with factors is not generated")
        return node.args[1], node.args[2], node.args[0]
    bias = node.argument(2, "bias") if node.op == "linear" else None
    return node.args[0], node.args[1], bias
