"""One torch.export of one module.

The training form of the export is used: operators are whole (softmax, layer_norm, linear), and in-place operators are
turned into their pure twins when it is read, where that is safe.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.codegen.trace.assigned import tensors_as_buffers
from tools.codegen.trace.data_sized import PartError, without_unread
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.exporter.checked_arguments import without_checked_arguments
from tools.codegen.trace.exporter.python_code import without_python_code
from tools.codegen.trace.exporter.stack_traces import without_stack_traces
from tools.codegen.trace.exporter.whole_recurrent import recurrent_as_a_whole
from tools.codegen.trace.program_reader import ProgramReader
from tools.codegen.trace.written_out import WrittenOut
from tools.native import results_shared
from tools.records import Problem

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram

Reading = Callable[[WrittenOut], ExportedGraph]
"""Reads an exported module, some operators as what they are made of."""


def export_module(module: nn.Module, arguments: tuple[Any, ...], problem: Problem) -> Reading:
    """Export `module` called with `arguments`, and give what reads the graph."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    from tools.codegen.trace.dispatch.program import Dispatches, dispatches_of
    from tools.codegen.trace.masked_writes import MaskedWrites

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export = partial(_with_numbers_read_there, module, arguments)
        with without_stack_traces(), without_python_code(), without_checked_arguments(), recurrent_as_a_whole():
            program = _exported(export, partial(_derived, module, arguments))
        if isinstance(program, str):
            return _blocked(program)
    dispatches = dispatches_of(program)
    refused: type[Exception] = GuardOnDataDependentSymNode
    reasons: tuple[str, ...] = ("how large a result of the reference is depends on its data",)
    if dispatches.blocked:
        # what picks rows may be exported as it is, and be left to PyTorch
        plain, refused, reasons = _picking(export), Exception, dispatches.blocked
        if plain is None:
            return _blocked(*reasons)
        program, dispatches = plain, Dispatches()
    if not dispatches.results:
        MaskedWrites(program.graph).turn()

    def read(written_out: WrittenOut) -> ExportedGraph:
        try:
            return ProgramReader(program, problem, module, written_out, dispatches).read()
        except PartError as error:
            return _nothing(str(error))
        except refused:
            return _nothing(*reasons)

    return read


def _with_numbers_read_there(module: nn.Module, arguments: tuple[Any, ...]) -> ExportedProgram:
    """Export a module; what it picks by numbers of tensors is picked on the device, and what it assigns is its own again afterwards."""
    import torch

    from tools.autocast.casts import has_regions, write_casts
    from tools.autocast.state import asked_to_round
    from tools.codegen.trace.number_indices import numbers_read_there

    with numbers_read_there(), tensors_as_buffers(module), results_shared(), asked_to_round() as asked:
        program = torch.export.export(module, arguments, strict=False)
    if not asked and has_regions(program):
        # autocast is off there, as it is around: the operators are what they are
        write_casts(program, None, "cuda")
    return program


def _picking(export: Callable[[], ExportedProgram]) -> ExportedProgram | None:
    """Export with what picks rows as it is; None where that cannot be done."""
    with warnings.catch_warnings(), contextlib.suppress(Exception), without_stack_traces(), without_python_code():
        warnings.simplefilter("ignore")
        with without_checked_arguments(), recurrent_as_a_whole():
            return export()
    return None


def _exported(export: Callable[[], ExportedProgram], otherwise: Callable[[], ExportedProgram | None]) -> ExportedProgram | str:
    """Export a module, or say why that cannot be done; `otherwise` is tried where it cannot."""
    from torch._subclasses import FakeTensor

    from tools.codegen.trace.dispatch.row_subsets import exported

    try:
        program = exported(export)
        buffers = program.graph_signature.buffers
        if any(isinstance(value, FakeTensor) for name, value in program.constants.items() if name not in buffers):
            # a derivative was taken behind the export's back
            program = otherwise() or program
        # `vmap` and its like are operators of their own, and PyTorch writes out what they do
        if any("_functorch" in (getattr(node.target, "__module__", "") or "") for node in program.graph.nodes):
            program = program.run_decompositions({})
    except Exception as error:
        return otherwise() or _called_whole(export) or f"torch.export cannot trace the reference ({_said(error)})"
    return program


def _said(error: Exception) -> str:
    """Say why a reference cannot be exported, alike at each size."""
    if type(error).__name__ in ("GuardOnDataDependentSymNode", "DataDependentOutputException"):
        return "it goes on by a number that it reads from a tensor, as `int(x[0])` or `if x.sum() > 0`: write what is fixed in Python"
    # addresses of objects would make the same reason another one at each size
    first_line = re.sub(r" at 0x[0-9a-f]+", "", next(iter(str(error).splitlines()), ""))[:160]
    return f"{type(error).__name__}: {first_line}"


def _derived(module: nn.Module, arguments: tuple[Any, ...]) -> ExportedProgram | None:
    """Export a module with the derivatives that it takes written out; None where that does not help."""
    import torch

    from tools.codegen.trace.derivatives import with_derivatives_written_out

    with contextlib.suppress(Exception):
        return torch.export.export(with_derivatives_written_out(module, arguments), arguments, strict=False)
    return None


def _called_whole(export: Callable[[], ExportedProgram]) -> ExportedProgram | None:
    """Export with calls that cannot be traced as operators; None where that does not help."""
    from tools.codegen.trace.called_whole import CalledWhole

    with contextlib.suppress(Exception), CalledWhole() as calls:
        program = export()
        if calls.used:
            without_unread(program.graph)
            return program
    return None


def _blocked(*reasons: str) -> Reading:
    """Read a reference of which nothing is generated, whatever is written out."""
    return lambda _: _nothing(*reasons)


def _nothing(*reasons: str) -> ExportedGraph:
    return ExportedGraph((), {}, {}, (), (), frozenset(), frozenset(), reasons, replayable=False)
