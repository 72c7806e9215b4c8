"""Views inside a region: reshapes, permutations and broadcasts change how atoms make up a shape, and move no data."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.atoms import Atoms, Dims
from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Formula, Node, TensorMeta
from tools.codegen.ir.sizes import is_one

Viewer = Callable[[Atoms, Node, Dims, TensorMeta], Dims]


def _regroup(atoms: Atoms, _: Node, dims: Dims, out: TensorMeta) -> Dims:
    return atoms.regroup(dims, out.shape)


def _permute(_: Atoms, node: Node, dims: Dims, out: TensorMeta) -> Dims:
    order = node.args[1]
    return tuple(dims[place] for place in order)


def _transpose(_: Atoms, node: Node, dims: Dims, out: TensorMeta) -> Dims:
    if not dims:
        return dims
    result = list(dims)
    one, two = node.args[1], node.args[2]
    result[one], result[two] = result[two], result[one]
    return tuple(result)


def _reverse(_: Atoms, node: Node, dims: Dims, out: TensorMeta) -> Dims:
    if len(dims) > 2 and node.op == "mT":
        return (*dims[:-2], dims[-1], dims[-2])
    return tuple(reversed(dims))


def _expand(atoms: Atoms, _: Node, dims: Dims, out: TensorMeta) -> Dims:
    padded = ((),) * (len(out.shape) - len(dims)) + dims
    return tuple(dim if dim or is_one(sizes) else (atoms.new(sizes),) for dim, sizes in zip(padded, out.shape, strict=True))


VIEWS: dict[str, Viewer] = {
    "view": _regroup, "reshape": _regroup, "_unsafe_view": _regroup, "flatten": _regroup, "unflatten": _regroup, "view_as": _regroup,
    "reshape_as": _regroup, "unsqueeze": _regroup, "squeeze": _regroup,
    "permute": _permute, "transpose": _transpose, "t": _reverse, "numpy_T": _reverse, "mT": _reverse,
    "expand": _expand, "expand_as": _expand,
}  # fmt: skip
"""Views that a kernel can see through."""

HOST_VIEWS = {
    "broadcast_to", "slice", "select", "chunk", "split", "split_with_sizes", "narrow", "unbind", "broadcast_tensors", "diagonal", "movedim",
    "swapaxes", "tensor_split", "unfold", "scalar_tensor", "arange", "numbers", "constant", "bits",
    "view_as_real", "view_as_complex",
}  # fmt: skip
"""Views that only the host function's caller makes; a kernel reads their result as a strided tensor. Numbers in order are one of them."""


def is_view(node: Node) -> bool:
    """Whether a node only looks at its input in another way, or at nothing: a tensor of one number is no work of its own either."""
    return node.op in VIEWS or node.op in HOST_VIEWS or isinstance(node, Formula) or fill_number(node) is not None


def see_through(atoms: Atoms, node: Node, dims: Dims) -> Dims:
    """Shape of a view's result in atoms."""
    viewer = VIEWS.get(node.op)
    if viewer is None:
        raise LoweringError(f"{node.target} of an intermediate is not generated")
    return viewer(atoms, node, dims, node.outputs[0])
