"""What kernels compute element by element: values made of positions and numbers alone, and products over a few elements.

Masks of triangles, powers of two and the rows of an identity are formulas that no kernel reads. Rotations of points, distances and layers
on coordinates are sums that are written out, lookups in tables of a few given numbers are choices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import DType, Formula, Node, OperatorGraph, Raw, Ref, TensorMeta
from tools.codegen.ir.operators.families import CASTS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC, TWO
from tools.codegen.ir.sizes import Sizes, as_number
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import Rewriter

SOURCES = frozenset({"arange", "numbers", "scalar_tensor"})
"""Operators that read no tensor."""
COMPUTED = frozenset({*ARITHMETIC, *LOGIC, *CASTS, "cat", "stack"} - {"pow"})
"""Operators that a formula is made with; of powers only those of two, and a few, are cheap enough to be made for each element."""
CHEAP_POWERS = frozenset({-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0})
"""Exponents of powers that are few multiplications, divisions and roots."""
MOST_SUMMED = 4
"""Elements of such a sum: coordinates, and one more."""
MOST_MADE, LONG_SUM = 16, 4096
"""Elements that a product gives, at most, and has to add up for each, at least, to be made as sums: a product's tile would be nearly empty,
and the library gives it to a single multiprocessor."""
MOST_CHOSEN = 16
"""Numbers of a table of codes: a choice among them is 15 selections, less than a product hides."""
CODES = frozenset({"uint8", "int8", "int16", "int32"})
"""Dtypes whose casts to wider whole numbers change nothing."""
EUCLIDEAN = 2
"""The norm whose distances are made of lengths and a product."""
FEW_ROWS, BY_DIFFERENCES = 25, 2
"""Rows of both tensors up to which PyTorch takes differences itself, and the word by which it is told to (ATen's `cdist`)."""
MOST_DIFFERENCES = 1 << 28
"""Differences up to which they are taken at all sizes where PyTorch takes them at one: some 20 µs of multiply-adds on an H100."""
DTYPES = frozenset({"float32", "float16", "bfloat16"})


def with_formulas(graph: OperatorGraph) -> OperatorGraph:
    """Mark what reads nothing but positions and numbers, and is returned by nobody."""
    made: set[str] = set()
    returned = {ref.name for ref in graph.returned}
    nodes: list[Node] = []
    for node in graph.nodes:
        alone = {ref.name for ref in node.refs} <= made and node.name not in graph.effects and len(node.outputs) == 1
        if node.op in SOURCES or fill_number(node) is not None or (alone and node.refs and is_view(node)):
            made.add(node.name)
        elif alone and node.refs and _is_computed(node) and node.name not in returned and type(node) is Node:
            made.add(node.name)
            nodes.append(Formula(node.name, node.target, node.args, node.kwargs, node.outputs))
            continue
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _is_computed(node: Node) -> bool:
    return node.op in COMPUTED or (node.op == "pow" and (node.args[0] == TWO or node.args[1] in CHEAP_POWERS))


def identity_matrix(_: Rewriter, node: Node) -> Sequence[Node]:
    """Write an identity as rows and columns that are compared."""
    out = node.outputs[0]
    made = _diagonal(node.name, (node.args[0], node.args[len(node.args) - 1]), out.shape)
    return *made, Node(node.name, "aten._to_copy.default", (Ref(made[-1].name),), {"dtype": DType(out.dtype)}, (out,))


def _diagonal(name: str, lengths: tuple[Any, Any], shape: tuple[Sizes, ...]) -> tuple[Node, ...]:
    """Compare rows and columns of a matrix: where they are equal, the last of these nodes is true."""
    wanted = {"dtype": DType("int64"), "device": Raw("device")}
    rows, columns = (
        Node(f"{name}_{word}", "aten.arange.default", (length,), wanted, (TensorMeta((sizes,), "int64"),))
        for word, length, sizes in zip(("rows", "columns"), lengths, shape, strict=True)
    )
    column = TensorMeta((shape[0], (1,) * len(shape[0])), "int64")
    apart = Node(f"{name}_apart", "aten.unsqueeze.default", (Ref(rows.name), 1), {}, (column,))
    equal = Node(f"{name}_equal", "aten.eq.Tensor", (Ref(apart.name), Ref(columns.name)), {}, (TensorMeta(shape, "bool"),))
    return rows, columns, apart, equal


def looked_up(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a lookup of codes in a row of given numbers as a choice among these."""
    table, indices = node.args[0], node.args[1]
    made = {each.name: each for each in rewriter.nodes}
    given = made.get(table.name)
    if given is None or given.op != "numbers" or len(indices) != 1 or not isinstance(indices[0], Ref):
        return None
    numbers, codes = given.args[0], indices[0]
    if len(given.outputs[0].shape) != 1 or not 1 < len(numbers) <= MOST_CHOSEN or not is_signed(rewriter.metas[codes.name].dtype):
        return None
    cast = made.get(codes.name)
    if cast is not None and cast.op in CASTS and rewriter.metas[cast.args[0].name].dtype in CODES:
        codes = cast.args[0]
    chosen = (codes, list(numbers), DType(node.outputs[0].dtype))
    return (replace(node, target="kernelwright.chosen_number.default", args=chosen, kwargs={}),)


def gives_few(made: int, summed: int) -> bool:
    """Whether a product of float32 matrices is a few long sums."""
    return made <= MOST_MADE and summed >= LONG_SUM


def small_product(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a product of two matrices, or of many, over a few elements or for a few, as one that no tensor core makes."""
    return _product(rewriter, node, node.args[0], node.args[1]) if len(node.args) == 2 and not node.kwargs else None


def small_linear(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a linear layer of a few features so, and its bias as an addition."""
    x, weight, bias = node.args[0], node.args[1], node.argument(2, "bias")
    meta = rewriter.metas.get(weight.name)
    if meta is None or len(meta.shape) != 2:
        return None
    turned = Node(
        f"{node.name}_turned",
        "aten.t.default",
        (weight,),
        {},
        (TensorMeta(meta.shape[::-1], meta.dtype, contiguous=False, unit_last=False),),
    )
    rewriter.metas[turned.name] = turned.outputs[0]
    made = node if bias is None else replace(node, name=f"{node.name}_product")
    product = _product(rewriter, made, x, Ref(turned.name))
    if product is None:
        return None
    added = () if bias is None else (Node(node.name, "aten.add.Tensor", (Ref(made.name), bias), {}, node.outputs),)
    return turned, *product, *added


def _product(rewriter: Rewriter, node: Node, left: Any, right: Any) -> Sequence[Node] | None:
    metas = [rewriter.metas.get(ref.name) if isinstance(ref, Ref) and ref.index == 0 else None for ref in (left, right)]
    if any(meta is None or len(meta.shape) < 2 or meta.dtype not in DTYPES for meta in metas):
        return None
    summed = metas[0].shape[-1]  # type: ignore[union-attr]
    is_short = 1 < summed[0] <= MOST_SUMMED and len(set(summed)) == 1
    rows, columns = (node.outputs[0].shape[place][0] for place in (-2, -1))
    if not is_short and not (
        node.outputs[0].dtype == "float32" and len(node.outputs[0].shape) > 2 and gives_few(rows * columns, summed[0])
    ):
        return None
    return (Node(node.name, "kernelwright.small_product.default", (left, right), {}, node.outputs),)


def distances(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write distances of all rows of two tensors: of few coordinates by differences, else by lengths and a product.

    So does PyTorch with many rows. With few it takes differences, which have more digits: the kernel does as well, unless it has to take
    very many at other sizes.
    Sums and maxima of differences have no product, however many coordinates there are.
    """
    power, left, right = node.argument(2, "p", 2.0), node.args[0], node.args[1]
    metas, out = _compared(rewriter, left, right), node.outputs[0]
    if power not in (1, 2, math.inf) or metas is None:
        return None
    one, two = metas
    write = _Writer(node.name, "float32")
    ones: Sizes = (1,) * len(out.shape[0])
    rows, columns = (*one.shape[:-1], ones), (*one.shape[:-2], ones, two.shape[-2])
    if power != EUCLIDEAN or _by_differences(one, two, asked=node.argument(3, "compute_mode") == BY_DIFFERENCES):
        wide = (*out.shape, one.shape[-1])
        between = _between(write, left, right, metas)
        if power != EUCLIDEAN:
            size, taken = write("size", "abs.default", wide, between), "sum.dim_IntList" if power == 1 else "amax.default"
            return (*write.nodes, Node(node.name, f"aten.{taken}", (size, [-1]), {}, node.outputs))
        total = write("total", "sum.dim_IntList", out.shape, write("square", "mul.Tensor", wide, between, between), [-1])
        return (*write.nodes, Node(node.name, "aten.sqrt.default", (total,), {}, node.outputs))
    squares = [
        write(f"square_{place}", "mul.Tensor", meta.shape, ref, ref) for place, (ref, meta) in enumerate(((left, one), (right, two)))
    ]
    lengths = write("lengths", "sum.dim_IntList", rows, squares[0], [-1], True)
    others = write("others", "unsqueeze.default", columns, write("others_flat", "sum.dim_IntList", two.shape[:-1], squares[1], [-1]), -2)
    turned = write("turned", "transpose.int", (*two.shape[:-2], two.shape[-1], two.shape[-2]), right, -2, -1)
    product = write("product", "matmul.default", out.shape, left, turned)
    both = write("both", "add.Tensor", out.shape, lengths, others)
    total = write("total", "sub.Tensor", out.shape, both, write("twice", "mul.Tensor", out.shape, product, 2.0))
    # rounding may leave less than nothing
    kept = write("kept", "clamp_min.default", out.shape, total, 0.0)
    if left == right:
        # nor is anything as far from itself as rounding says
        length = as_number(out.shape[-1])
        diagonal = _diagonal(f"{node.name}_own", (length, length), out.shape[-2:])
        write.nodes += diagonal
        kept = write("apart_from_own", "masked_fill.Scalar", out.shape, kept, Ref(diagonal[-1].name), 0.0)
    return (*write.nodes, Node(node.name, "aten.sqrt.default", (kept,), {}, node.outputs))


def distance_gradients(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write the gradient of distances for the rows of one tensor, as sums over those of the other; rows at no distance have none."""
    grad, left, right, power, distance = node.args
    metas = _compared(rewriter, left, right)
    if power not in (1, EUCLIDEAN) or metas is None or not isinstance(grad, Ref) or not isinstance(distance, Ref):
        return None
    one, two = metas
    write = _Writer(node.name, "float32")
    ones: Sizes = (1,) * len(one.shape[-1])
    pairs = (*one.shape[:-1], two.shape[-2])
    share = grad
    if power == EUCLIDEAN:
        write.nodes.append(Node(f"{node.name}_none", "aten.eq.Scalar", (distance, 0), {}, (TensorMeta(pairs, "bool"),)))
        none = Ref(write.nodes[-1].name)
        share = write("share", "masked_fill.Scalar", pairs, write("ratio", "div.Tensor", pairs, grad, distance), none, 0.0)
    if power == EUCLIDEAN and not _by_differences(one, two):
        own = write("own", "mul.Tensor", one.shape, left, write("shares", "sum.dim_IntList", (*one.shape[:-1], ones), share, [-1], True))
        other = write("other", "matmul.default", one.shape, share, right)
        return (*write.nodes, Node(node.name, "aten.sub.Tensor", (own, other), {}, node.outputs))
    wide = (*pairs, one.shape[-1])
    way = _between(write, left, right, metas)
    way = way if power == EUCLIDEAN else write("sign", "sign.default", wide, way)
    parts = write("parts", "mul.Tensor", wide, way, write("each", "unsqueeze.default", (*pairs, ones), share, -1))
    return (*write.nodes, Node(node.name, "aten.sum.dim_IntList", (parts, [-2]), {}, node.outputs))


def _compared(rewriter: Rewriter, left: Any, right: Any) -> tuple[TensorMeta, TensorMeta] | None:
    """Shapes of two tensors whose rows are compared, where they are as many matrices; else None."""
    metas = [rewriter.metas.get(ref.name) if isinstance(ref, Ref) and ref.index == 0 else None for ref in (left, right)]
    one, two = metas
    if one is None or two is None or {one.dtype, two.dtype} != {"float32"}:
        return None
    return (one, two) if len(one.shape) == len(two.shape) and one.shape[:-2] == two.shape[:-2] else None


def _between(write: _Writer, left: Ref, right: Ref, metas: tuple[TensorMeta, TensorMeta]) -> Ref:
    """Write the differences of all rows of two tensors."""
    (one, two), ones = metas, (1,) * len(metas[0].shape[-1])
    apart = write("apart", "unsqueeze.default", (*one.shape[:-1], ones, one.shape[-1]), left, -2)
    beside = write("beside", "unsqueeze.default", (*two.shape[:-2], ones, *two.shape[-2:]), right, -3)
    return write("between", "sub.Tensor", (*one.shape[:-1], *two.shape[-2:]), apart, beside)


def _by_differences(one: TensorMeta, two: TensorMeta, *, asked: bool = False) -> bool:
    """Whether differences are taken: of a few coordinates, or where PyTorch does at any size of the problem and they are not too many."""
    few = any(max(rows) <= FEW_ROWS for rows in zip(one.shape[-2], two.shape[-2], strict=True))
    count = math.prod(sizes[0] for sizes in (*one.shape, two.shape[-2]))
    return one.shape[-1][0] <= MOST_SUMMED or ((few or asked) and count <= MOST_DIFFERENCES)


class _Writer:
    """Collects nodes of one dtype under the name of what they stand for."""

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype
        self.nodes: list[Node] = []

    def __call__(self, word: str, call: str, shape: tuple[Sizes, ...], *args: Any) -> Ref:
        """Add a node and name its result."""
        viewed = call.startswith(("unsqueeze", "transpose"))
        meta = TensorMeta(shape, self.dtype, contiguous=not viewed, unit_last=not viewed)
        self.nodes.append(Node(f"{self.name}_{word}", f"aten.{call}", args, {}, (meta,)))
        return Ref(self.nodes[-1].name)


BIAS = 2
"""Where a linear layer has its own."""


def bias_of_linear(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a linear layer without a bias, which only this addition reads, with what is added to it."""
    if node.kwargs or len(node.args) != 2 or not all(isinstance(arg, Ref) for arg in node.args):
        return None
    for place, ref in enumerate(node.args):
        layer, bias = _unbiased(rewriter, ref), node.args[1 - place]
        if layer is not None and _is_bias(rewriter, bias, layer):
            return (Node(node.name, layer.target, (*layer.args[:BIAS], bias), {}, node.outputs),)
    return None


def _unbiased(rewriter: Rewriter, ref: Ref) -> Node | None:
    """Find the linear layer without a bias that makes a value of which nothing but this is read."""
    layer = next((each for each in rewriter.nodes if each.name == ref.name and each.op == "linear"), None)
    if layer is None or ref in rewriter.graph.returned or len(rewriter.graph.users.get(layer.name, ())) != 1:
        return None
    return layer if layer.argument(BIAS, "bias") is None else None


def _is_bias(rewriter: Rewriter, ref: Ref, layer: Node) -> bool:
    if ref.index:
        return False
    own, result = rewriter.metas[ref.name], layer.outputs[0]
    return own.shape == result.shape[-1:] and own.dtype == result.dtype
