"""What a region takes for sizes that the tensors it reads do not tell: inputs of forward and views of them, or numbers that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import Fact, Length, Sizes, express, is_told, with_constants
from tools.codegen.ir.views import is_view


def told_sizes(kernel: Kernel, constants: Sequence[Sizes | Length]) -> list[Fact]:
    """List what a region's host function knows: the shapes of the tensors that it reads, what it is given, constants of the file."""
    b = kernel.builder
    return with_constants([Fact("", sizes) for sizes in (*(each for load in b.loads for each in load.meta.shape), *b.given)], constants)


def unreadable_sizes(kernel: Kernel) -> tuple[Sizes, ...]:
    """List the sizes of a region's dimensions, and of what it scatters to, that the shapes of the tensors it reads do not tell."""
    facts = told_sizes(kernel, kernel.builder.constants)
    return _unread(kernel, lambda sizes: express(sizes, facts) is not None)


def _unread(kernel: Kernel, tells: Callable[[Sizes], bool]) -> tuple[Sizes, ...]:
    b = kernel.builder
    read = _read(kernel, tells)
    walked = [atom for output in kernel.outputs for dim in output.dims for atom in b.atoms.leaves(dim)]
    walked += [atom for expr in b.exprs for atom in b.atoms.leaves(expr.along)]
    wanted = [b.atoms.size(atom) for atom in walked if atom not in read]
    wanted += [size for output in kernel.outputs if output.scatter and output.scatter.base is None for size in output.meta.shape]
    return tuple(sizes for sizes in dict.fromkeys(wanted) if not tells(sizes))


def unread_steps(kernel: Kernel) -> tuple[Sizes, ...]:
    """Give the number of a loop's steps, where the shapes of the tensors that it reads do not tell it."""
    b = kernel.builder
    facts = told_sizes(kernel, b.constants)
    steps = b.atoms.leaves((kernel.recurrence.step,)) if kernel.recurrence else ()
    read = _read(kernel, lambda sizes: express(sizes, facts) is not None)
    return tuple(size for size in map(b.atoms.size, (atom for atom in steps if atom not in read)) if express(size, facts) is None)


def _read(kernel: Kernel, tells: Callable[[Sizes], bool]) -> set[int]:
    """Name the parts of dimensions that are told by shapes: whole ones, and the last of several parts; the host counts some itself."""
    b = kernel.builder
    read = {atom for whole in (*b.chunked, *(join.whole for join in b.joins)) for atom in b.atoms.leaves((whole,))}
    dims = [b.atoms.leaves(dim) for load in b.loads for dim in load.dims]
    read |= {atom for dim in dims for atom in dim if len(dim) == 1 or tells(b.atoms.size(atom))}
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


def take_witnesses(graph: OperatorGraph, kernel: Kernel, *, numbers: bool) -> None:
    """Have a region take inputs of forward, or views of them, for the sizes that nothing else tells, or `numbers` that were kept, or both.

    One that reads none takes one for the device.

    Raises LoweringError where nothing tells a size.
    """
    kept = _whole_numbers(graph) if numbers else []
    _take_filled(graph, kernel)
    while missing := unreadable_sizes(kernel):
        for name, meta in (*graph.inputs.items(), *_views_of_inputs(graph)):
            facts = with_constants([Fact("", sizes) for sizes in meta.shape], graph.constants)
            if meta.dtype in COMPUTE and express(missing[0], facts) is not None:
                _take(kernel, name, meta)
                break
        else:
            together = [*_of_forward(graph), *kept] if numbers else []
            if not (_give(kernel, missing, kept) or _give(kernel, missing, together)):
                raise LoweringError("a size of the region cannot be told from the shapes of the inputs")
    _give_kept(kernel, kept)
    if not kernel.builder.loads:
        for name in [name for name, meta in graph.inputs.items() if meta.dtype in COMPUTE][:1]:
            kernel.builder.load(Ref(name), replace(graph.inputs[name], contiguous=True, unit_last=True), again=True)


def _take_filled(graph: OperatorGraph, kernel: Kernel) -> None:
    """Take inputs of forward for the sizes of what a region fills and writes into, where no tensor that it reads has that size itself.

    Eight times as many as were picked may be how many there are in every trace: at another size it would be written beside the result.
    """
    filled = [size for output in kernel.outputs if output.scatter and output.scatter.base is None for size in output.meta.shape]
    for sizes in dict.fromkeys(size for size in filled if len(set(size)) > 1):
        known = {fact.values for fact in told_sizes(kernel, kernel.builder.constants)}
        found = next((item for item in graph.inputs.items() if item[1].dtype in COMPUTE and sizes in item[1].shape), None)
        if sizes not in known and found is not None:
            _take(kernel, *found)


def _take(kernel: Kernel, name: str, meta: TensorMeta) -> None:
    """Have a region take a tensor that it does not read: how that lies in memory does not matter, and it is not brought together."""
    kernel.builder.load(Ref(name), replace(meta, contiguous=True, unit_last=True), again=True, parameter=True)


def take_numbers(graph: OperatorGraph, kernel: Kernel) -> None:
    """Have a region's host function be given numbers that the constructor kept, for the sizes that no tensor it reads tells.

    Raises LoweringError where these do not tell a size either.
    """
    kept = _whole_numbers(graph)
    _give_kept(kernel, kept)
    while missing := unreadable_sizes(kernel):
        if not _give(kernel, missing, kept):
            raise LoweringError("a size of the region cannot be told from the shapes of its inputs")


def _of_forward(graph: OperatorGraph) -> list[Fact]:
    """List the sizes of all inputs of forward, which writes what is made of several of them; a loop's step is given no numbers."""
    return [Fact("", sizes) for name in graph.inputs if graph.arguments for sizes in graph.inputs[name].shape]


def _whole_numbers(graph: OperatorGraph) -> list[Fact]:
    """List the whole numbers that the constructor kept."""
    return [Fact("", tuple(map(int, each.values))) for each in graph.attributes if all(type(value) is int for value in each.values)]


def _give_kept(kernel: Kernel, kept: Sequence[Fact]) -> None:
    """Give sizes that are kept numbers and no dimension's: what shapes say of them, as twice the batch for the heads, may be chance."""
    own = {fact.values for fact in kept}
    while own and (found := next((sizes for sizes in _untold(kernel) if sizes in own), None)) is not None:
        kernel.builder.given.append(found)


def _untold(kernel: Kernel) -> tuple[Sizes, ...]:
    """List the sizes that are no dimension's, no number of the file and no quotient of such."""
    same = {fact.values for fact in told_sizes(kernel, kernel.builder.constants)}
    return _unread(kernel, lambda sizes: len(set(sizes)) == 1 or sizes in same)


def _give(kernel: Kernel, missing: Sequence[Sizes], kept: Sequence[Fact]) -> bool:
    """Give one of the sizes that are made of numbers that forward knows; what else is missing may follow from it."""
    found = next((sizes for sizes in missing if is_told(sizes, kept)), None)
    if found is not None:
        kernel.builder.given.append(found)
    return found is not None
