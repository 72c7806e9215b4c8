"""From a problem record to the executable reference. TRUSTED processes only: a candidate never runs beside it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    written: tuple[int, ...] = ()
    """Places among the tensor arguments of those that it writes to."""
    updated: tuple[str, ...] = ()
    """Buffers and parameters that it changes, by state-dict key."""

    def inputs(self, seed: int, device: str = "cpu") -> list[torch.Tensor | Scalar]:
        """Make the positional arguments of one call: contiguous tensors on `device`, and scalars.

        Equal seeds give equal contents on one kind of device; the CPU's and a GPU's generators differ.
        """
        return self.blueprint.inputs(seed, device)

    def parameters(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by state-dict key, in the order of `abi.parameters`."""
        return {name: value.detach() for name, value in self.module.state_dict().items()}

    def outputs(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Call the reference without gradients; return its outputs in the order of `abi.outputs`, those in float8 as float32.

        What it writes to is as it was before, and what it has written is an output.
        """
        import torch

        from tools.problems.analysis import flat_outputs

        given = list(inputs)
        tensors = [place for place, value in enumerate(given) if isinstance(value, torch.Tensor)]
        written = [tensors[place] for place in self.written]
        for place in written:
            given[place] = given[place].clone()
        with torch.no_grad(), self._put_back() as state:
            made = flat_outputs(self.module(*given), self.blueprint.title, may_be_none=bool(self.written or self.updated))
            if self.updated:
                # one of them may be a buffer
                made = [value.clone() for value in made]
            left = [given[place] for place in written] + [value.clone() for value in state()]
            return [widened(output) for output in (*made, *left)]

    @contextmanager
    def _put_back(self) -> Iterator[Callable[[], list[torch.Tensor]]]:
        """Make a context after which what the module changes is as it was; it gives what that is."""

        def state() -> list[torch.Tensor]:
            now = self.module.state_dict()
            return [now[name] for name in self.updated]

        before = [value.clone() for value in state()]
        try:
            yield state
        finally:
            for target, value in zip(state(), before, strict=True):
                target.copy_(value)


def open_problem(problem: Problem) -> Reference:
    """Make the reference of `problem` executable, at the problem's sizes, with the same weights every time."""
    blueprint = blueprint_of(problem.form, problem.entry, problem.source, problem.sizes, problem.name)
    module = blueprint.build()
    if problem.form is not ProblemForm.EXPORTED:
        module.train(problem.abi.training)
    return Reference(module, blueprint, problem.abi.written_places, problem.abi.updated)


def blueprint_of(form: ProblemForm, entry: str, source: str, sizes: dict[str, int], title: str) -> Blueprint:
    """Run or load a source; its module is forgotten when the blueprint is."""
    from tools.problems.archive import ArchiveBlueprint
    from tools.problems.blueprint import SourceBlueprint

    if form is ProblemForm.EXPORTED:
        return ArchiveBlueprint(title, source, sizes)
    blueprint = SourceBlueprint(title, Recognised(form, entry), source, sizes)
    weakref.finalize(blueprint, forget, blueprint.python_module)
    return blueprint
