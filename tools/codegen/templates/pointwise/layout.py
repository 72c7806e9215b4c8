"""The iteration space of a pointwise region: all elements of the outputs in one order, and the groups of dimensions that they lie in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart, positions, unjoined
from tools.codegen.templates.shared.flow import Flow, flow_of
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names

SMALLEST_ROW = 16
"""Below this many columns a tile wastes its lanes: flat is the default."""


@dataclass(frozen=True)
class PointwiseLayout:
    """How the elements of a region are walked."""

    accesses: tuple[Access, ...]
    order: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    """Of each group, at the sizes as written."""
    flows: tuple[Flow, ...]
    """How each tensor is walked."""

    @property
    def n_cols(self) -> int:
        """Size of the innermost group at the sizes as written."""
        return self.sizes[-1] if self.sizes else 1

    @property
    def tiles(self) -> bool:
        """Whether rows and columns differ: something broadcasts or is laid out otherwise."""
        return len(self.groups) > 1


def pointwise_layout(kernel: Kernel, names: Names | None = None) -> PointwiseLayout:
    """Check that all outputs span the same elements, and order them as the first output is laid out."""
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, names or Names()))
    outputs = [access for access in accesses if access.is_output]
    order = tuple(atom for dim in outputs[0].dims for atom in dim)
    if any(set(order) != set(access.strides) for access in outputs):
        raise LoweringError("the outputs of a pointwise region differ in shape")
    groups = coalesce(order, (*accesses, *kept_apart(kernel, outputs[0])))
    if any(wanted != order and wanted not in groups for wanted in positions(kernel)):
        raise LoweringError("a position along a dimension that is cut into parts is not generated")
    if any(not set(access.strides) <= {*order, *unjoined(kernel, groups, accesses)} for access in accesses):
        raise LoweringError("an input of a pointwise region has a dimension that no output has")
    atoms = kernel.builder.atoms
    sizes = tuple(math.prod(atoms.size(atom)[0] for atom in group) for group in groups)
    return PointwiseLayout(accesses, order, groups, sizes, tuple(flow_of(kernel.builder, access) for access in accesses))


pointwise_layout_of = kept(pointwise_layout)
"""The layout of a kernel, made once."""
