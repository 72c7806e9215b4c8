"""The iteration space of a dense convolution: images, positions of the result, its channels, and the elements that are summed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import Convolution
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.column_folds import check_folds
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names

LETTERS = "dhw"
OWN_NAMES = (
    "above_d", "above_h", "above_w", "at_d", "at_h", "at_w", "first_c", "first_d", "first_h", "first_w", "found", "here_d", "here_h",
    "here_w", "image", "in_d", "in_h", "in_w", "inside", "lane_c", "n_channels", "n_group", "n_places", "off_c", "off_d", "off_g",
    "off_h", "off_k", "off_w", "out_d", "out_h", "out_w", "phase", "place", "places_d", "places_h", "places_w", "reach_d", "reach_h",
    "reach_w", "read_m", "step", "step_d", "step_h", "step_w", "steps", "tap", "taps_d", "taps_h", "taps_w", "sums", "there", "tile_n",
    "tiles_g", "tiles_p", "each", "n_plane", *(f"{kind}_{place}" for kind in ("acc", "left", "right") for place in range(16)),
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


@dataclass(frozen=True)
class ConvolutionLayout:
    """How a convolution's region lies in memory."""

    accesses: tuple[Access, ...]
    source: Access
    weight: Access
    axes: tuple[Axis, ...]
    """`outer` (the images, if several), `rows` (positions), `cols` (channels)."""
    dtype: str
    n_images: int
    """At the sizes as written, like those below."""
    n_positions: int
    """Of one phase, where the convolution is transposed."""
    n_channels: int
    """Of one group of the result."""
    n_inputs: int
    """Channels of one group of the input."""
    n_taps: int
    """Elements of the kernel that one position of the result sums, at most."""
    n_phases: int
    """Sets of positions that a strided transposed convolution makes of different elements of its kernel; otherwise one."""
    n_groups: int
    n_slices: int
    """Positions along the first dimension, of all phases."""
    folds: bool
    """Whether something looks along all channels of a position, which one program then makes."""

    @property
    def letters(self) -> str:
        """One letter for each spatial dimension."""
        return LETTERS[-len(self.axes[-2].atoms) :]

    def space(self, kernel: Kernel) -> Space:
        """Make the space of one emission."""
        return Space(kernel, tuple(replace(axis) for axis in self.axes), self.accesses)


def convolution_layout(kernel: Kernel) -> ConvolutionLayout:
    """Check the region and make its axes."""
    convolution = kernel.convolution
    if convolution is None:
        raise LoweringError("there is no convolution")
    atoms = kernel.builder.atoms
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    batch, channel, *spatial = (atoms.leaves(dim) for dim in convolution.dims)
    if len(channel) != 1 or len(batch) > 1 or any(len(dim) != 1 for dim in spatial):
        raise LoweringError("the result of the convolution is cut into parts")
    rows = tuple(atom for dim in spatial for atom in dim)
    own = (convolution.source, convolution.weight, convolution.scale)
    others = [access for place, access in enumerate(accesses) if place not in own]
    if kernel.reduced:
        if convolution.groups > 1:
            raise LoweringError("a convolution in groups and a reduction over its channels do not share a kernel")
        check_folds(kernel, channel, atoms.size(channel[0])[0], "a convolution")
    every = {*batch, *channel, *rows}
    folded = every - set(atoms.leaves(kernel.reduced))
    if any(not set(access.strides) <= every or (access.is_output and set(access.strides) not in (every, folded)) for access in others):
        raise LoweringError("a tensor of the convolution's region differs in shape from its result")
    axes = [Axis("outer", "batch", batch, (batch,))] if batch else []
    axes += [Axis("rows", "off_m", rows, coalesce(rows, others)), Axis("cols", "off_n", channel, (channel,))]
    return ConvolutionLayout(
        accesses, accesses[own[0]], accesses[own[1]], tuple(axes), accesses[own[1]].meta.dtype,
        atoms.size(batch[0])[0] if batch else 1, *_counts(kernel, convolution, rows, channel[0]), bool(kernel.reduced),
    )  # fmt: skip


def _counts(kernel: Kernel, convolution: Convolution, rows: tuple[int, ...], channel: int) -> tuple[int, int, int, int, int, int, int]:
    atoms = kernel.builder.atoms
    positions, taps, phases = product((atoms.size(atom) for atom in rows), atoms.traces)[0], 1, 1
    for size, stride, dilation in zip(convolution.size, convolution.stride, convolution.dilation, strict=True):
        step = stride if convolution.transposed else 1
        taps, phases = taps * -(-size // (step // math.gcd(step, dilation))), phases * step
    groups = convolution.groups
    slices = atoms.size(rows[0])[0]
    return -(-positions // phases), atoms.size(channel)[0] // groups, convolution.channels[0], taps, phases, groups, slices


convolution_layout_of = kept(convolution_layout)
"""The layout of a kernel, made once."""
