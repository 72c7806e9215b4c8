"""From a problem record to the executable reference. TRUSTED processes only: a candidate never runs beside it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.float8 import widened
from tools.problems.execution import forget
from tools.problems.source import Recognised
from tools.records import Problem, ProblemForm, Scalar

if TYPE_CHECKING:
    import torch
    from torch import nn

    from tools.problems.blueprint import Blueprint


@dataclass(frozen=True)
class Reference:
    """The executable reference of one problem."""

    module: nn.Module
    """On the CPU, in the mode of `abi.training`; a plain function is wrapped."""
    blueprint: Blueprint

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Make the positional arguments of one call: contiguous tensors on `device`, and scalars.

        Equal seeds give equal contents on one kind of device; the CPU's and a GPU's generators differ.
        """
        return self.blueprint.inputs(seed, device)

    def parameters(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by state-dict key, in the order of `abi.parameters`."""
        return {name: value.detach() for name, value in self.module.state_dict().items()}

    def outputs(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Call the reference without gradients; return its outputs in the order of `abi.outputs`, those in float8 as float32."""
        import torch

        from tools.problems.analysis import flat_outputs

        with torch.no_grad():
            return [widened(output) for output in flat_outputs(self.module(*inputs), self.blueprint.title)]


def open_problem(problem: Problem) -> Reference:
    """Make the reference of `problem` executable, at the problem's sizes, with the same weights every time."""
    blueprint = blueprint_of(problem.form, problem.entry, problem.source, problem.sizes, problem.name)
    module = blueprint.build()
    if problem.form is not ProblemForm.EXPORTED:
        module.train(problem.abi.training)
    return Reference(module, blueprint)


def blueprint_of(form: ProblemForm, entry: str, source: str, sizes: dict[str, int], title: str) -> Blueprint:
    """Run or load a source; its module is forgotten when the blueprint is."""
    from tools.problems.archive import ArchiveBlueprint
    from tools.problems.blueprint import SourceBlueprint

    if form is ProblemForm.EXPORTED:
        return ArchiveBlueprint(title, source, sizes)
    blueprint = SourceBlueprint(title, Recognised(form, entry), source, sizes)
    weakref.finalize(blueprint, forget, blueprint.python_module)
    return blueprint
