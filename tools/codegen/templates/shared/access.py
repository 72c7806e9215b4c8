"""How each tensor of a kernel lies in memory over the atoms of its shape: strides are products of sizes, held symbolically."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.graph import Place, Ref, TensorMeta
from tools.codegen.ir.kernel import Kernel

Symbol = int | str
"""A factor of a stride: the size of an atom, or a run-time stride such as `x.stride(0)`."""
Stride = tuple[Symbol, ...]


def multiply(stride: Stride, *factors: Symbol) -> Stride:
    """Multiply a stride by sizes or by other strides."""
    return tuple(sorted((*stride, *factors), key=str))


@dataclass(frozen=True)
class Access:
    """How one tensor is laid out over atoms."""

    ref: Ref
    name: str
    meta: TensorMeta
    dims: Dims
    strides: dict[int, Stride]
    is_output: bool = False
    parameter: bool = False
    """Contiguous by construction: a parameter or buffer of the module."""
    fixed: bool = False
    """A parameter whose contents stay from call to call."""
    place: Place | None = None
    """Where it lies in a larger tensor."""

    @property
    def may_need_copy(self) -> bool:
        """Whether the host function must make sure that it is contiguous."""
        return self.meta.contiguous and bool(self.dims) and not self.parameter


def accesses_of(kernel: Kernel, names: Sequence[str]) -> tuple[Access, ...]:
    """Lay out every tensor of a kernel: loads first, then outputs, which are contiguous."""
    atoms = kernel.builder.atoms
    found = []
    for load, name in zip(kernel.builder.loads, names, strict=False):
        dims = atoms.resolve(load.dims)
        found.append(Access(load.ref, name, load.meta, dims, _strides(dims, name, load.meta), parameter=load.parameter, fixed=load.fixed))
    for output, name in zip(kernel.outputs, names[len(kernel.builder.loads) :], strict=True):
        dims = atoms.resolve(output.dims)
        place = output.place
        strides = _strides(dims, name if place else "", replace(output.meta, contiguous=True), place.dim - 1 if place else -1)
        found.append(Access(output.ref, name, output.meta, dims, strides, is_output=True, place=place))
    return tuple(found)


def _strides(dims: Dims, name: str, meta: TensorMeta, cut: int = -1) -> dict[int, Stride]:
    """Strides by atom; a tensor that is one part of another along the dimension after `cut` has its stride there from that one."""
    result: dict[int, Stride] = {}
    running: Stride = ()
    for place in range(len(dims) - 1, -1, -1):
        if not meta.contiguous and not (meta.unit_last and place == len(dims) - 1):
            running = (f"{name}:{place}",)
        if place == cut:
            running = (f"{name}:{place}",)
        for atom in reversed(dims[place]):
            result[atom] = running
            running = multiply(running, atom)
    return result


def contiguous_strides(dims: Dims) -> dict[int, Stride]:
    """Strides of a contiguous tensor."""
    return _strides(dims, "", TensorMeta((), "float32"))


def coalesce(order: Sequence[int], accesses: Sequence[Access]) -> tuple[tuple[int, ...], ...]:
    """Merge neighbouring atoms that every tensor lays out as one dimension, or does not have."""
    groups: list[tuple[int, ...]] = []
    for atom in order:
        if groups and all(_joins(access, groups[-1][-1], atom) for access in accesses):
            groups[-1] = (*groups[-1], atom)
        else:
            groups.append((atom,))
    return tuple(groups)


def _joins(access: Access, outer: int, inner: int) -> bool:
    one, two = access.strides.get(outer), access.strides.get(inner)
    if one is None or two is None:
        return one is None and two is None
    return one == multiply(two, inner)
