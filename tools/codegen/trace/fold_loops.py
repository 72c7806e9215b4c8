"""Operators that a loop of Python left one after the other, found by their repetition and written as one loop.

A run of nodes is a loop where the same operators follow each other, step after step, and each argument is even over the steps
(`step_values.py`). What every step makes alike goes before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from tools.codegen.ir.graph import DataSized, Node, Ref, find_refs
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.views import is_view
from tools.codegen.trace.align_traces import agreed, without_lone
from tools.codegen.trace.exported_graph import ExportedGraph
from tools.codegen.trace.loop_builder import LoopBuilder
from tools.codegen.trace.loop_results import LoopResults
from tools.codegen.trace.step_values import Aligner, Run, UnevenError, even
from tools.codegen.trace.stored_parts import forward_stores

LEAST = 4
"""Steps from which on a repetition is taken for a loop."""


def alike_with_loops(exports: Sequence[ExportedGraph]) -> list[ExportedGraph]:
    """Write the loops of all traces of a reference so that they begin with the same operator, where that is possible.

    What only some traces say is left out first: it would be part of their steps alone. Of one row, what is made before a loop may have the
    shape of what a step makes: then a step may begin there as well.
    """
    exports = without_lone(exports)
    first = [with_loops(export) for export in exports]
    if _are_alike(first):
        return first
    late = [with_loops(export, late=True) for export in exports]
    return late if _are_alike(late) else first


def _are_alike(exports: Sequence[ExportedGraph]) -> bool:
    return len({export.signature for export in agreed(exports)}) == 1


def with_loops(export: ExportedGraph, *, late: bool = False) -> ExportedGraph:
    """Write every repetition of a trace as a loop, the first one first; `late` has steps begin as late as they may."""
    start, export = 0, _without_idle_views(forward_stores(_without_idle_views(export)))
    while (found := _next(export, start, late=late)) is not None:
        export = found
        start = 1 + max(place for place, node in enumerate(export.nodes) if isinstance(node, Loop))
    return _without_idle_views(export)


def unevenness(export: ExportedGraph) -> str:
    """Say why the longest repetition of operators is no loop; empty where nothing repeats."""
    repeats = _Repeats(export.nodes, lambda node: (node.target,))
    runs = [run for first in range(repeats.nodes) for run in repeats.runs(first)]
    try:
        for run in sorted(runs, key=lambda run: (-run.period * run.count, run.period))[:1]:
            _loop(export, run)
    except UnevenError as error:
        return str(error)
    return ""


def _without_idle_views(export: ExportedGraph) -> ExportedGraph:
    """Leave out views that nothing reads: of a tensor that is written part by part, each write leaves one."""
    wanted, kept = {ref.name for ref in find_refs(export.outputs)}, list[Node]()
    for node in reversed(export.nodes):
        if node.name in wanted or not is_view(node):
            kept.append(node)
            wanted |= {ref.name for ref in node.refs}
    return replace(export, nodes=tuple(reversed(kept)))


def _next(export: ExportedGraph, start: int, *, late: bool) -> ExportedGraph | None:
    """Write the first run of nodes that is a loop as one, turned so that it carries as little as possible."""
    repeats = _Repeats(export.nodes)
    # a run that begins a node later is turned to the same places
    folded = cache(partial(_folded, export))
    for first in range(start, repeats.nodes):
        for run in repeats.runs(first):
            found = [one for one in map(folded, repeats.turned(run)) if one is not None]
            if found:
                return min(reversed(found) if late else found, key=_carries)
    return None


def _look(node: Node) -> tuple[object, ...]:
    """What must be the same of a node at every step."""
    if isinstance(node, DataSized):
        # what is inside is not looked at
        return (node.name,)
    return (node.target, _form(node.args), tuple(node.kwargs), node.outputs)


def _form(tree: object) -> object:
    """Arguments without their numbers and names."""
    if isinstance(tree, tuple | list):
        return tuple(_form(item) for item in tree)
    return type(tree).__name__ if isinstance(tree, Ref | int | float) else tree


class _Repeats:
    """How often nodes repeat: what must be the same of them is compared once, as numbers afterwards."""

    def __init__(self, nodes: Sequence[Node], look: Callable[[Node], tuple[object, ...]] = _look) -> None:
        known: dict[tuple[object, ...], int] = {}
        self._looks = [known.setdefault(look(node), len(known)) for node in nodes]
        self._numbers = [tuple(_numbers(node.args)) for node in nodes]
        self._alike: dict[int, list[int]] = {}
        self._uneven: dict[int, list[int]] = {}
        self.nodes = len(nodes)

    def runs(self, first: int) -> Iterator[Run]:
        """Yield the repetitions that begin at a node, the shortest period first."""
        for period in range(1, (self.nodes - first) // LEAST + 1):
            if self._looks[first] == self._looks[first + period] and (count := self.count(first, period)) >= LEAST:
                yield Run(first, period, count)

    def count(self, first: int, period: int) -> int:
        """Count how often the nodes from `first` on repeat."""
        if period not in self._alike:
            self._alike[period] = self._lengths(period)
        return self._alike[period][first] // period + 1

    def turned(self, run: Run) -> Iterator[Run]:
        """Yield a run as it begins at each of its first step's nodes, without those whose numbers are known not to be even."""
        if run.period not in self._uneven:
            self._uneven[run.period] = self._next_uneven(run.period)
        uneven, triples = self._uneven[run.period], run.period * (run.count - 2)
        first, end = run.first, run.first + run.period
        # what is uneven from the last of them on is so for all
        if uneven[end - 1] < run.first + triples:
            return
        while first < end and self.count(first, run.period) >= run.count:
            if uneven[first] < first + triples:
                first = uneven[first]
            else:
                yield replace(run, first=first)
            first += 1

    def _lengths(self, period: int) -> list[int]:
        """Count for each node how many from there on are like those a period later."""
        lengths = [0] * (self.nodes + 1)
        for place in range(self.nodes - period - 1, -1, -1):
            lengths[place] = lengths[place + 1] + 1 if self._looks[place] == self._looks[place + period] else 0
        return lengths

    def _next_uneven(self, period: int) -> list[int]:
        """Find for each node the first from there on whose numbers do not grow evenly over two further steps."""
        found, numbers = [self.nodes] * (self.nodes + 1), self._numbers
        for place in range(self.nodes - 1, -1, -1):
            found[place] = found[place + 1]
            if self.count(place, period) > 2 and not _are_even(numbers[place : place + 2 * period + 1 : period]):
                found[place] = place
        return found


def _numbers(tree: object) -> Iterator[int | float]:
    """Yield the numbers of arguments."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from _numbers(item)
    elif isinstance(tree, int | float):
        yield tree


def _are_even(steps: Sequence[tuple[int | float, ...]]) -> bool:
    """Whether numbers may be those of three steps of one loop: the same at each, or growing by the same whole number."""
    return all(repr(one) == repr(two) == repr(three) or _grows(one, two, three) for one, two, three in zip(*steps, strict=True))


def _grows(*numbers: float) -> bool:
    try:
        even(numbers)
    except UnevenError:
        return False
    return True


def _folded(export: ExportedGraph, run: Run) -> ExportedGraph | None:
    nodes = export.nodes[run.first : run.first + run.period]
    if all(is_view(node) for node in nodes) or any(isinstance(node, Loop) or not node.outputs for node in nodes):
        return None
    if any(node.name in export.effects for node in nodes):
        return None
    try:
        return _loop(export, run)
    except UnevenError:
        return None


def _loop(export: ExportedGraph, run: Run) -> ExportedGraph:
    """Write a run of nodes as a loop; raises UnevenError."""
    aligner = Aligner(export.nodes, export.inputs, export.places, run)
    return LoopResults(LoopBuilder(export, aligner, aligner.body())).build()


def _carries(export: ExportedGraph) -> int:
    """Count what the last loop carries."""
    return len([node for node in export.nodes if isinstance(node, Loop)][-1].carried)
