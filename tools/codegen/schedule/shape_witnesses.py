"""Inputs of forward, and views of them, that a region takes for their shapes: what it makes may be as long as what it does not read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Fact, Sizes, express, with_constants
from tools.codegen.ir.views import is_view


def unreadable_sizes(kernel: Kernel) -> tuple[Sizes, ...]:
    """List the sizes of a region's dimensions, and of what it scatters to, that the shapes of the tensors it reads do not tell."""
    b = kernel.builder
    facts = with_constants([Fact("", sizes) for load in b.loads for sizes in load.meta.shape], b.constants)
    read = _read(kernel, facts)
    walked = [atom for output in kernel.outputs for dim in output.dims for atom in b.atoms.leaves(dim)]
    walked += [atom for expr in b.exprs for atom in b.atoms.leaves(expr.along)]
    wanted = [b.atoms.size(atom) for atom in walked if atom not in read]
    wanted += [size for output in kernel.outputs if output.scatter and output.scatter.base is None for size in output.meta.shape]
    return tuple(sizes for sizes in dict.fromkeys(wanted) if express(sizes, facts) is None)


def unread_steps(kernel: Kernel) -> tuple[Sizes, ...]:
    """Give the number of a loop's steps, where the shapes of the tensors that it reads do not tell it."""
    b = kernel.builder
    facts = with_constants([Fact("", sizes) for load in b.loads for sizes in load.meta.shape], b.constants)
    steps = b.atoms.leaves((kernel.recurrence.step,)) if kernel.recurrence else ()
    read = _read(kernel, facts)
    return tuple(size for size in map(b.atoms.size, (atom for atom in steps if atom not in read)) if express(size, facts) is None)


def _read(kernel: Kernel, facts: list[Fact]) -> set[int]:
    """Name the parts of dimensions that are told by shapes: whole ones, and the last of several parts; the host counts some itself."""
    b = kernel.builder
    read = {atom for whole in (*b.chunked, *(join.whole for join in b.joins)) for atom in b.atoms.leaves((whole,))}
    dims = [b.atoms.leaves(dim) for load in b.loads for dim in load.dims]
    read |= {atom for dim in dims for atom in dim if len(dim) == 1 or express(b.atoms.size(atom), facts) is not None}
    while more := {rest[0] for dim in dims if len(rest := [atom for atom in dim if atom not in read]) == 1}:
        read |= more
    return read


def _views_of_inputs(graph: OperatorGraph) -> Iterator[tuple[str, TensorMeta]]:
    """List views of forward's inputs: forward makes them with numbers that the constructor kept, which no input's shape tells."""
    seen = set(graph.inputs)
    for node in graph.nodes:
        if is_view(node) and len(node.outputs) == 1 and node.refs and all(ref.name in seen for ref in node.refs):
            seen.add(node.name)
            yield node.name, node.outputs[0]


def take_witnesses(graph: OperatorGraph, kernel: Kernel) -> None:
    """Have a region take inputs of forward, or views of them, for the sizes that nothing else tells.

    One that reads none takes one for the device.

    Raises LoweringError where no input tells a size.
    """
    while missing := unreadable_sizes(kernel):
        for name, meta in (*graph.inputs.items(), *_views_of_inputs(graph)):
            facts = with_constants([Fact("", sizes) for sizes in meta.shape], graph.constants)
            if meta.dtype in COMPUTE and express(missing[0], facts) is not None:
                # it is not read: how it lies in memory does not matter, and it is not brought together
                kernel.builder.load(Ref(name), replace(meta, contiguous=True, unit_last=True), again=True, parameter=True)
                break
        else:
            raise LoweringError("a size of the region cannot be told from the shapes of the inputs")
    if not kernel.builder.loads:
        for name in [name for name, meta in graph.inputs.items() if meta.dtype in COMPUTE][:1]:
            kernel.builder.load(Ref(name), replace(graph.inputs[name], contiguous=True, unit_last=True), again=True)
