"""The templates, in the order in which a region is offered to them: a new one is a folder and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.schedule import FORMAT, FORMATS, LIBRARY
from tools.codegen.templates.attention.template import FusedAttention
from tools.codegen.templates.convolution.template import DenseConvolutions
from tools.codegen.templates.depthwise.template import DepthwiseConvolution
from tools.codegen.templates.experts.template import Experts
from tools.codegen.templates.matmul.template import Matmul
from tools.codegen.templates.pointwise.template import Pointwise
from tools.codegen.templates.pooling.template import Pooling
from tools.codegen.templates.product.template import FusedProducts
from tools.codegen.templates.recurrence.template import Recurrences
from tools.codegen.templates.recurrent.template import RecurrentLayers
from tools.codegen.templates.rows.template import Rows
from tools.codegen.templates.shared.knob import Knob
from tools.codegen.templates.shared.template import Template
from tools.codegen.templates.tile.template import Tile
from tools.records import ActionKind

TEMPLATES: list[Template] = [
    Tile(),
    Experts(),
    Recurrences(),
    RecurrentLayers(),
    FusedAttention(),
    FusedProducts(),
    Matmul(),
    DepthwiseConvolution(),
    DenseConvolutions(),
    Pooling(),
    Rows(),
    Pointwise(),
]
"""The first that accepts a region writes it."""
LIBRARY_KNOBS: Mapping[str, Knob] = {FORMAT: Knob(ActionKind.LAYOUT, FORMATS, modelled=False)}
"""What the library's own calls can be told."""


def template_for(kernel: Kernel) -> Template:
    """Choose the template of a region; raises LoweringError where it cannot lay the region out."""
    chosen = next((template for template in TEMPLATES if template.accepts(kernel)), None)
    if chosen is None:
        raise LoweringError("no template accepts the region")
    chosen.layout(kernel)
    return chosen


def template_called(name: str) -> Template:
    """Find a template by its name in schedules."""
    return next(template for template in TEMPLATES if template.name == name)


def knobs_of(name: str) -> Mapping[str, Knob]:
    """Return the parameters of a template, or of the library's calls."""
    return LIBRARY_KNOBS if name == LIBRARY else template_called(name).knobs
