"""Kernels that write new contents of an argument or a buffer where it lies, in the place of a tensor that would be copied there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.kernel import Kernel, Output
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import looked_at
from tools.codegen.schedule.plan import PlannedRegion
from tools.codegen.templates.shared.frame import RegionText
from tools.records.problem import is_statistic

REGROUPED = frozenset({"view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze"})
"""Views of all elements, in their order."""
SCATTERS = frozenset({"index_put", "index_copy", "index_add", "scatter", "scatter_add", "scatter_reduce"})
"""Operators that give a copy of their first argument with some elements written."""


@dataclass(frozen=True)
class Carried:
    """A value that may be written where an argument or a buffer lies: it is stored there at the end, by the only write to its memory."""

    source: Ref
    """What it replaces: the argument, a view of all of it, or what a scatter before it has made of that."""
    value: Ref
    others: frozenset[str]
    """Who else reads what it replaces."""

    def may_be_written_by(self, graph: OperatorGraph, nodes: Iterable[str]) -> bool:
        """Whether all others have read by the time that these operators run, which wait for them."""
        return self.others <= _before(graph, nodes)


def written_in_place(placed: PlannedRegion, text: RegionText) -> RegionText:
    """Have a region write what is stored in an argument at the end of forward into that argument.

    Nobody may read later what it holds before, and the region itself reads an element only before it writes it, where the element lies.
    """
    found, graph, nodes = text, placed.graph, placed.region.nodes
    known = {each.value: each for each in carried(graph)}
    for each in [known[ref] for ref in text.outputs if ref in known]:
        first = each
        while (before := seen_whole(graph, first.source)) in known and before.name in nodes:
            # several scatters are one kernel
            first = known[before]
        source = next((ref for ref in (first.source, seen_whole(graph, first.source)) if ref in text.inputs), None)
        if source is None or not first.may_be_written_by(graph, nodes) or not _fits(placed.planned.kernel, source, each.value):
            continue
        names, scatters = _names(text), graph.by_name[each.value.name].op in SCATTERS
        if changed := _with_place(found.source, text.function, names[source], names[each.value], scatters=scatters):
            found = replace(found, source=changed, in_place={**found.in_place, each.value: source})
    return found


def carried(graph: OperatorGraph) -> list[Carried]:
    """List such values; of scatters, one after the other, each replaces the one before."""
    known: list[Carried] | None = graph.__dict__.get("_carried")
    if known is None:
        known = graph.__dict__["_carried"] = [each for store in _stores(graph) for each in _chain(graph, store)]
    return known


def seen_whole(graph: OperatorGraph, ref: Ref) -> Ref:
    """Give what a tensor is a view of, all elements in their order."""
    while (node := graph.by_name.get(ref.name)) is not None and node.op in REGROUPED and is_view(node) and isinstance(node.args[0], Ref):
        source = graph.meta(node.args[0])
        if not source.contiguous or (source.numel, source.dtype) != (node.outputs[0].numel, node.outputs[0].dtype):
            break
        ref = node.args[0]
    return ref


def _stores(graph: OperatorGraph) -> Iterator[Node]:
    targets = [node.args[0] for node in graph.nodes if node.name in graph.effects]
    for node in graph.nodes:
        if node.name in graph.effects and node.op == "copy_" and len(node.args) == 2 and all(isinstance(ref, Ref) for ref in node.args):
            target, value = node.args
            # statistics of several norms are written by one call
            is_kept = target.name in graph.inputs and not is_statistic(graph.parameters.get(target.name, ""))
            if is_kept and targets.count(target) == 1 and graph.meta(target).alike(graph.meta(value)):
                yield node


def _chain(graph: OperatorGraph, store: Node) -> list[Carried]:
    target, value = store.args[0], seen_whole(graph, store.args[1])
    returned = {name for ref in graph.returned for name in looked_at(graph, ref)}
    if value.name in returned or value.name in graph.inputs:
        return []
    chain: list[Carried] = []
    while True:
        node = graph.by_name[value.name]
        scatters = node.op in SCATTERS and isinstance(node.args[0], Ref)
        source = seen_whole(graph, node.args[0]) if scatters else target
        others = frozenset(_readers(graph, source.name)) - {node.name, store.name}
        chain.append(Carried(node.args[0] if scatters else target, value, others))
        if source == target:
            return chain
        if source.name in returned or source.name in graph.inputs or others:
            return []
        value = source


def _before(graph: OperatorGraph, nodes: Iterable[str]) -> frozenset[str]:
    """Name operators, and those whose results they wait for."""
    found: set[str] = set()
    todo = list(nodes)
    while todo:
        name = todo.pop()
        if name not in found and name in graph.by_name:
            found.add(name)
            todo += [ref.name for ref in graph.by_name[name].refs]
    return frozenset(found)


def _fits(kernel: Kernel, source: Ref, value: Ref) -> bool:
    """Whether a kernel makes a value in memory of its own, of which each element replaces one that is read there alone."""
    output = next((each for each in kernel.outputs if each.ref == value), None)
    if output is None or kernel.then is not None or output.place is not None:
        return False
    if output.scatter is not None:
        return output.scatter.base == source
    return _is_read_alike(kernel, output, source) and all(_reach(kernel, each) <= _reach(kernel, output) for each in kernel.outputs)


def _reach(kernel: Kernel, output: Output) -> frozenset[int]:
    """Name the atoms that an output varies over: programs for what varies over more read all of it, while one of them writes."""
    atoms = kernel.builder.atoms
    return frozenset(leaf for dim in atoms.resolve(output.dims) for leaf in atoms.leaves(dim))


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
