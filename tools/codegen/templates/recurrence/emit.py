"""A loop's kernel by its algorithm."""

from __future__ import annotations

from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.recurrence.chunk_writer import ChunkWriter
from tools.codegen.templates.recurrence.layout import recurrence_layout_of
from tools.codegen.templates.recurrence.scan_writer import ScanWriter
from tools.codegen.templates.recurrence.steps_writer import StepsWriter
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Settings

WRITERS = {"sequential": StepsWriter, "scan": ScanWriter, "chunked": ChunkWriter}
"""By algorithm."""


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    return WRITERS[str(parameters["algorithm"])](kernel, name, parameters, recurrence_layout_of(kernel)).write()
