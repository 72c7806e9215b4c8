"""The iteration space of a pooling: elements of the result in one order, or tiles of its last two dimensions, and what suits these."""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import PoolKind, Window
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.shared.access import Access, Stride, accesses_of, coalesce
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Names, access_names

LETTERS = "dhw"
OWN_NAMES = (
    "inside", "count", "best", "better", "even", "odd", "evens", "odds", "place", "beside", "quads", "along",
    *(f"{kind}{place}" for kind in ("acc_", "e") for place in range(4)), *(f"count_{letter}" for letter in LETTERS),
    *(f"{kind}_{letter}" for letter in LETTERS for kind in ("n_in", "out", "step", "at", "first", "last")),
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""
SMALLEST_PLANE = 512
"""Elements of the result's last two dimensions below which a tile would be mostly idle."""
LONGEST_ROW = 4096
"""Elements of the input along the last dimension up to which a program of `pairs` takes whole rows."""
SHORTEST_ROW = 128
"""Elements of the result along the last dimension from which on a warp of `vec4`, four elements a lane, is not idle."""
LONGEST_WINDOW = 16
"""Elements of a window along the last dimension up to which `vec4` takes it apart: each adds four terms to the text."""
WIDE_WINDOW = 16
"""Elements of a window along the last dimension from which on neighbouring lanes read neighbouring elements of one window."""
LONGEST_ACROSS = 2048
"""Elements of a window along the last dimension that are held at once at most."""
WIDEST = 1 << 20
"""Columns from which on there could be more tiles, of 32 columns at least, than a grid's second dimension has places."""


def pooling_layout(kernel: Kernel) -> tuple[tuple[Access, ...], Axis]:
    """Check the region and order its elements along one axis: outer dimensions, then each spatial dimension by itself."""
    window = kernel.window
    if window is None:
        raise LoweringError("there is no window")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    outputs = [access for access in accesses if access.is_output]
    order = tuple(atom for dim in outputs[0].dims for atom in dim)
    inside, spatial = (kernel.builder.atoms.leaves(atoms) for atoms in (window.inside, window.spatial))
    if len(inside) != len(window.inside) or len(spatial) != len(window.spatial):
        raise LoweringError("a dimension that the window moves along is cut into parts")
    if any(set(access.strides) != set(order) for access in outputs) or any(not set(a.strides) <= {*order, *inside} for a in accesses):
        raise LoweringError("a tensor of the window's region differs in shape from its result")
    if any(set(access.strides) & set(inside) and set(access.strides) & set(spatial) for access in accesses):
        raise LoweringError("a tensor is read both at the window's elements and at its result")
    order = _walked(kernel, accesses, order, inside)
    apart: dict[int, Stride] = {atom: (f"apart{place}:0",) for place, atom in enumerate(spatial)}
    marker = Access(outputs[0].ref, "", outputs[0].meta, outputs[0].dims, apart)
    return accesses, Axis("elements", "offs", order, coalesce(order, (*accesses, marker)))


def _walked(kernel: Kernel, accesses: tuple[Access, ...], order: tuple[int, ...], inside: tuple[int, ...]) -> tuple[int, ...]:
    """Order the elements of the result as neighbours lie in what the window looks at: channels last where they lie so."""
    seen = [access for access in accesses if set(access.strides) & set(inside)]
    if not seen:
        raise LoweringError("what the window looks at is made of no tensor")
    largest = max(seen, key=lambda access: access.meta.numel)
    last = [atom for atom, stride in largest.strides.items() if stride == () and atom in order and kernel.builder.atoms.size(atom)[0] > 1]
    return (*(atom for atom in order if atom not in last), *last)


def tile_of(kernel: Kernel) -> tuple[int, int] | None:
    """Give the result's last two dimensions; None where a tile of them cannot be a program's."""
    _, axis = pooling_layout(kernel)
    sizes = [product((kernel.builder.atoms.size(atom) for atom in group), kernel.builder.atoms.traces)[0] for group in axis.groups]
    return (sizes[-2], sizes[-1]) if len(sizes) > 1 and sizes[-1] < WIDEST else None


def fits_tile(kernel: Kernel) -> bool:
    """Whether a tile that is a power of two wide has few idle lanes over the result's last two dimensions."""
    found = tile_of(kernel)
    return found is not None and 4 * found[1] >= 3 * power_of_two(found[1]) and found[0] * found[1] >= SMALLEST_PLANE


def fits_pairs(kernel: Kernel) -> bool:
    """Whether a tile's windows are two elements apart in a tensor that has neighbours, and no long row, along the last dimension."""
    window = kernel.window
    if window is None or window.windows or window.position >= 0 or (window.stride[-1], window.dilation[-1]) != (2, 1):
        return False
    source = kernel.builder.exprs[window.source]
    if source.op != "load" or leaves_out_padding(window) or not fits_tile(kernel):
        return False
    accesses, axis = pooling_layout(kernel)
    read = [access for access in accesses if not access.is_output][source.extra]
    (last,) = kernel.builder.atoms.leaves(window.inside)[-1:]
    if kernel.builder.atoms.size(last)[0] > LONGEST_ROW:
        return False
    return read.strides.get(last) == () and axis.groups[-1] == kernel.builder.atoms.leaves(window.spatial)[-1:]


def fits_vec4(kernel: Kernel) -> bool:
    """Whether a tile's windows are one element apart in tensors that have neighbours along the last dimension, in rows of some length."""
    window, found = kernel.window, tile_of(kernel)
    if window is None or window.windows or window.position >= 0 or found is None or found[1] < SHORTEST_ROW:
        return False
    if window.stride[-1] != 1 or not 1 < window.size[-1] <= LONGEST_WINDOW:
        return False
    accesses, axis = pooling_layout(kernel)
    (last,) = kernel.builder.atoms.leaves(window.inside)[-1:]
    neighbours = all(access.strides.get(last, ()) == () for access in accesses)
    return neighbours and axis.groups[-1] == kernel.builder.atoms.leaves(window.spatial)[-1:]


def fits_across(kernel: Kernel) -> bool:
    """Whether windows that share at most half of their elements are wide enough, in tensors with neighbours there, for many lanes each."""
    window = kernel.window
    if window is None or window.windows or window.position >= 0 or leaves_out_padding(window) or tile_of(kernel) is None:
        return False
    size = window.size[-1]
    if not WIDE_WINDOW <= size <= min(2 * window.stride[-1], LONGEST_ACROSS) or window.dilation[-1] != 1:
        return False
    accesses, axis = pooling_layout(kernel)
    (last,) = kernel.builder.atoms.leaves(window.inside)[-1:]
    neighbours = all(access.strides.get(last, ()) == () for access in accesses)
    return neighbours and axis.groups[-1] == kernel.builder.atoms.leaves(window.spatial)[-1:]


def is_aligned(kernel: Kernel) -> bool:
    """Whether Triton can tell, by the rows' length as written, that a load can bring four neighbours of what a window looks at."""
    assert kernel.window is not None
    return kernel.builder.atoms.size(kernel.window.inside[-1])[0] % 16 == 0


def keeps_busy(kernel: Kernel, elements: int) -> bool:
    """Whether tiles of that many elements, whole rows if those are shorter, have few idle lanes along the result's rows."""
    found = tile_of(kernel)
    assert found is not None
    wide = min(power_of_two(found[1]), elements)
    return 4 * found[1] >= 3 * -(-found[1] // wide) * wide


def leaves_out_padding(window: Window) -> bool:
    """Whether a mean is over the elements alone that are there."""
    return window.kind is PoolKind.MEAN and any(window.padding) and not window.count_padding and not window.divisor


def tile_axes(axis: Axis) -> tuple[Axis, ...]:
    """Take the last two dimensions as a tile's rows and columns, and everything before them as one number a program."""
    *before, rows, cols = axis.groups
    tile = (Axis("rows", "rows", rows, (rows,)), Axis("cols", "cols", cols, (cols,)))
    outer = tuple(atom for group in before for atom in group)
    return (Axis("outer", "outer", outer, tuple(before)), *tile) if outer else tile
