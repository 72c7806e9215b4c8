"""A kernel that a run delivered for calls of a model's modules."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.guards import Contract, contract_of
from tools.guards.contract import TensorRule, ValueRule
from tools.models.records import Group, Input, Trace
from tools.problems.mixed_sizes import MIXED
from tools.records import Problem


def contract_for(problem: Problem, variants: Sequence[Problem], trace: Trace) -> Contract:
    """Say what a kernel for a module's call may be used for: of loops over time, those with as many steps as it was made for."""
    contract = contract_of(problem, variants, MIXED.of(problem) or ())
    given = {each.name: each for each in trace.inputs}
    return replace(contract, inputs=tuple(_held(rule, given[rule.name]) if rule.name in given else rule for rule in contract.inputs))


def _held(rule: TensorRule | ValueRule, given: Input) -> TensorRule | ValueRule:
    if not isinstance(rule, TensorRule):
        return rule
    return replace(rule, sizes=tuple(given.shape[place] if place in given.held else size for place, size in enumerate(rule.sizes)))


@dataclass(frozen=True)
class Delivered:
    """A kernel that a run delivered for one group."""

    group: Group
    trace: Trace
    contract: Contract
    kernel: str
    """The guarded file."""
    evidence: Path | None
    """Its bundle."""
    compiled: bool = True
    """Whether it is used inside torch.compile."""
    seen: bool = True
    """Whether its kernels may be seen there, where they are Triton alone."""

    aside: tuple[str, ...] = ()
    """Names of the shapes at which it is not used there, though it is at others."""

    def stepping_aside(self, workloads: Collection[str]) -> Delivered:
        """Leave calls of these workloads to the original under torch.compile: at their shapes, or altogether where no shape tells them."""
        if not self.compiled or self.group.calls.keys().isdisjoint(workloads):
            return self
        names = [shape.name for shape in self.trace.shapes]
        aside = tuple(name for name in names if name in self.aside or any(_is_of(name, one) for one in workloads))
        told = all(any(_is_of(name, one) for name in aside) for one in workloads if one in self.group.calls)
        return replace(self, aside=aside) if told and len(aside) < len(names) else replace(self, compiled=False)

    @property
    def in_compilers(self) -> bool:
        """Whether torch.compile gets it at any shape: what replays a graph of its own it cannot."""
        return self.compiled and not self.replays

    @property
    def replays(self) -> bool:
        """Whether the kernel's forward is a CUDA graph of its own."""
        return "def replayed(" in self.kernel


def _is_of(shape: str, workload: str) -> bool:
    """Whether a shape's name, which lists the workloads that call at it, has one of them."""
    listed = re.sub(r" \(\d+\)$", "", shape)
    return f", {workload}, " in f", {listed}, "
