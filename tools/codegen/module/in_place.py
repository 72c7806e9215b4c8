"""Kernels that write new contents of an argument or a buffer where it lies, in the place of a tensor that would be copied there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Kernel, Output
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import looked_at
from tools.codegen.schedule.plan import PlannedRegion
from tools.codegen.templates.shared.frame import RegionText

SCATTERS = frozenset({"index_put", "index_copy", "index_add", "scatter", "scatter_add", "scatter_reduce"})
"""Operators that give a copy of their first argument with some elements written."""


def written_in_place(placed: PlannedRegion, text: RegionText) -> RegionText:
    """Have a region write what is stored in an argument at the end of forward into that argument.

    Nobody else may read what it holds before, and the region itself reads an element only before it writes it, where the element lies.
    """
    found, graph = text, placed.graph
    for target, source, value in carried(graph):
        if value in text.outputs and source in text.inputs and _may(placed, target, source, value):
            names = _names(text)
            scatters = graph.by_name[value.name].op in SCATTERS
            changed = _with_place(found.source, text.function, names[source], names[value], scatters=scatters)
            found = replace(found, source=changed, in_place=(*found.in_place, value)) if changed else found
    return found


def carried(graph: OperatorGraph) -> list[tuple[Ref, Ref, Ref]]:
    """List values that may be written where an argument or a buffer lies: that one, the tensor that is replaced, and the value.

    The value is stored there at the end, by the only write to its memory. Of scatters, one after the other, each replaces the one before.
    """
    known: list[tuple[Ref, Ref, Ref]] | None = graph.__dict__.get("_carried")
    if known is None:
        known = graph.__dict__["_carried"] = [each for store in _stores(graph) for each in _chain(graph, store)]
    return known


def _stores(graph: OperatorGraph) -> Iterator[Node]:
    targets = [node.args[0] for node in graph.nodes if node.name in graph.effects]
    for node in graph.nodes:
        if node.name in graph.effects and node.op == "copy_" and len(node.args) == 2 and all(isinstance(ref, Ref) for ref in node.args):
            target, value = node.args
            if target.name in graph.inputs and targets.count(target) == 1 and graph.meta(target).alike(graph.meta(value)):
                yield node


def _chain(graph: OperatorGraph, store: Node) -> list[tuple[Ref, Ref, Ref]]:
    target, value = store.args
    if value in graph.returned or target.name in {name for ref in graph.returned for name in looked_at(graph, ref) if ref != target}:
        return []
    chain: list[tuple[Ref, Ref, Ref]] = []
    while (node := graph.by_name.get(value.name)) is not None and node.op in SCATTERS and isinstance(node.args[0], Ref):
        source = node.args[0]
        others = set(_readers(graph, source.name)) - {node.name, store.name}
        if (source in graph.returned and source != target) or (source != target and others):
            return []
        chain.append((target, source, value))
        if source == target:
            return [] if others else chain
        value = source
    return [] if chain else [(target, target, value)]


def _may(placed: PlannedRegion, target: Ref, source: Ref, value: Ref) -> bool:
    graph, kernel = placed.graph, placed.planned.kernel
    output = next((each for each in kernel.outputs if each.ref == value), None)
    if output is None or kernel.then is not None or output.place is not None:
        return False
    if output.scatter is not None:
        return output.scatter.base == source
    kept = {node.name for node in graph.nodes if node.name in graph.effects and node.args[0] == target}
    return not set(_readers(graph, target.name)) - kept - set(placed.region.nodes) and _is_read_alike(kernel, output, target)


def _is_read_alike(kernel: Kernel, output: Output, target: Ref) -> bool:
    """Whether every read of the target is of the element that is written."""
    b = kernel.builder
    reads = [load for load in b.loads if load.ref == target]
    return bool(reads) and all(b.atoms.resolve(load.dims) == b.atoms.resolve(output.dims) and not load.private for load in reads)


def _readers(graph: OperatorGraph, name: str) -> Iterator[str]:
    """Name who reads a tensor, or a view of it."""
    for user in graph.users.get(name, ()):
        if is_view(user):
            yield from _readers(graph, user.name)
            if Ref(user.name) in graph.returned:
                yield user.name
        else:
            yield user.name


def _names(text: RegionText) -> dict[Ref, str]:
    """Give what the host function calls its tensors."""
    head, _, rest = text.source.partition(f"def {text.function}(")[2].partition(")")
    given = re.findall(r"(\w+): torch\.Tensor", head)
    result = re.findall(r"^    return (.*)$", rest, re.MULTILINE)[-1]
    return dict(zip((*text.inputs, *text.outputs), (*given, *re.findall(r"\w+", result)), strict=False))


def _with_place(source: str, function: str, target: str, value: str, *, scatters: bool) -> str:
    """Write the value to the target's memory; empty where a kernel reads that after it was written, or where that cannot be told.

    What is scattered may not be read at all: elements are written by others than those that read them.
    """
    is_written = False
    for kernel in re.split(r"^@triton\.jit$", source.partition(f"\ndef {function}(")[0], flags=re.MULTILINE)[1:]:
        body = kernel[kernel.find('"""') :]
        reads = [found.start() for found in re.finditer(rf"\b{target}_ptr\b", body)]
        writes = [found.start() for found in re.finditer(rf"\b{value}_ptr\b", body)]
        if reads and (scatters or is_written or (writes and max(reads) > min(writes))):
            return ""
        is_written = is_written or bool(writes)
    made = rf"torch\.empty(?:_like)?\(.*\)|{target}\.clone\(memory_format=torch\.contiguous_format\)"
    changed, count = re.compile(rf"^    {value} = (?:{made})$", re.MULTILINE).subn(f"    {value} = {target}", source)
    return changed if count == 1 else ""
