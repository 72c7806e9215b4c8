"""What a module's call was traced to: operators with loops over time as such, results and shapes, from one trace or from two cut short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind

from tools.models.forward.body import rolled
from tools.models.forward.lines import Loop
from tools.models.forward.steps import Joining, OtherStepsError, sized_text
from tools.models.forward.text import UntraceableError, alive


class Written:
    """A trace, or two at few steps laid over each other."""

    def __init__(self, programs: Sequence[Any]) -> None:
        """Read exported programs; what cannot be written raises UntraceableError."""
        self.program = programs[0]
        self.results = results_of(self.program)
        """Nodes that are given back."""
        self.body = rolled(_operators(self.program), self.results)
        """Operators in order."""
        self.shapes = _shapes(self.program)
        """Sizes of each placeholder and result, as text."""
        self.part = self._part()
        """How much of the operators are left where each loop is counted as one."""
        try:
            for other in programs[1:]:
                self._join(other)
        except OtherStepsError as error:
            raise UntraceableError(f"its trace at another number of steps is another: {error}") from error

    def _part(self) -> float:
        return len(self.body) / max(1, sum(len(each.lines) * each.steps if isinstance(each, Loop) else 1 for each in self.body))

    def _join(self, other: Any) -> None:
        if not _alike(self.program, other):
            raise OtherStepsError("tensors of numbers differ")
        joining = Joining(self.program, other)
        results = results_of(other)
        self.body = joining.body(self.body, rolled(_operators(other), results))
        joining.value(self.results, results)
        theirs = _shapes(other)
        names = dict(zip((node.name for node in self.results), (node.name for node in results), strict=True))
        self.shapes = {
            name: [sized_text(a, b) for a, b in zip(sizes, theirs[names.get(name, name)], strict=True)]
            for name, sizes in self.shapes.items()
            if names.get(name, name) in theirs
        }


def results_of(program: Any) -> list[fx.Node]:
    """List what a program gives; anything but tensors raises UntraceableError."""
    found = program.graph.output_node().args[0]
    specs = program.graph_signature.output_specs
    kept = [node for node, spec in zip(found, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    if not kept or not all(isinstance(node, fx.Node) for node in kept):
        raise UntraceableError("it gives something else than tensors")
    return kept


def _operators(program: Any) -> list[fx.Node]:
    live = alive(program, results_of(program))
    return [node for node in program.graph.nodes if node.op == "call_function" and node in live]


def _shapes(program: Any) -> dict[str, list[str]]:
    nodes = {node.name: node for node in program.graph.nodes}
    named = [nodes[spec.arg.name] for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return {node.name: list(map(str, node.meta["val"].shape)) for node in (*named, *results_of(program))}


def _alike(one: Any, other: Any) -> bool:
    """Whether tensors that a forward makes of numbers are the same."""
    names = [spec.target for spec in one.graph_signature.input_specs if spec.kind is InputKind.CONSTANT_TENSOR]
    both = [({**each.state_dict, **each.constants}) for each in (one, other)]
    return all(name in both[1] and torch.equal(both[0][name], both[1][name]) for name in names)
