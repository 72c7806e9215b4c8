"""The sealed call: a launch plan run in a process that never held the candidate's host code.

The process is a runner as any other, inside the same walls, since the driver reads machine code that a stranger made; it takes a plan in
the place of a source. So no host code of the candidate is near the clock: events, streams, threads and lazy tensors are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tools.evaluation.untrusted.sealed_memory import Allotted, BreachError, Held
from tools.evaluation.untrusted.sealed_steps import Issuer
from tools.evaluation.wire.driver_api import Driver
from tools.evaluation.wire.launch_plan import LaunchPlan, OutputPlace
from tools.evaluation.wire.library_calls import LibraryCall, View
from tools.records import ABI, TensorSpec

if TYPE_CHECKING:
    import torch


class SealedModel:
    """A plan ready to be called like a module: buffers made, kernels loaded, launches laid out."""

    def __init__(
        self, plan: LaunchPlan, abi: ABI, parameters: Sequence[torch.Tensor], device: str = "cuda", driver: Driver | None = None
    ) -> None:
        """Make everything on `device`; raises DriverError or BreachError where the plan does not fit its code.

        Without a device nothing can be tuned or captured: the first configurations are taken, and launches are issued one by one.
        """
        self._plan = plan
        self._device = device
        allotted = plan.allotted
        self._memory = [
            Allotted(allotted[place]) if place in allotted else Held(buffer, f"{buffer.role} {buffer.index}", device)
            for place, buffer in enumerate(plan.buffers)
        ]
        self.inputs = [self._argument("input", index, spec) for index, spec in enumerate(abi.inputs)]
        """What the call reads, to be written by whoever calls."""
        self._parameters = [self._argument("parameter", index, spec) for index, spec in enumerate(abi.parameters)]
        for mine, value in zip(self._parameters, parameters, strict=True):
            mine.copy_(value)
        self._names = {spec.name: place for place, spec in enumerate(abi.parameters)}
        self._changed = self._kept(parameters)
        self._driver = driver or Driver()
        self._issuer = Issuer(plan, self._memory, self._driver, device)
        self._packing, self._steps = (self._issuer.prepared(steps) for steps in (plan.packing, plan.steps))
        self.pack()
        self._outputs = [self._output(place, spec) for place, spec in zip(plan.outputs, abi.returned, strict=True)]
        if device != "cpu" and (plan.tuned or plan.captured):
            self._settle(parameters)

    def __call__(self, *_: object) -> list[torch.Tensor]:
        """Issue every step in order on the default stream; the outputs are there when the device has ended."""
        self._issuer.forget()
        self._issuer.issue(self._steps)
        return [output() for output in self._outputs]

    def parameter(self, name: str) -> torch.Tensor:
        """Give a parameter or buffer by its name."""
        return self._parameters[self._names[name]]

    def pack(self) -> None:
        """Issue the steps that pack weights, if there are any."""
        self._issuer.issue(self._packing)

    def poison(self, byte: int) -> None:
        """Fill all that is neither input nor parameter with a pattern and pack the weights anew: nothing of an earlier call is left.

        What calls change of the parameters, such as running statistics, is as it was before the first.
        """
        self._issuer.forget()
        for held in self._memory:
            if isinstance(held, Held) and held.buffer.role in ("made", "packed"):
                held.inside.fill_(byte)
        for mine, value in self._changed:
            mine.copy_(value)
        self.pack()

    def check_borders(self) -> None:
        """Raise BreachError where anything around a buffer has changed."""
        for held in self._memory:
            if isinstance(held, Held) and not held.is_whole():
                raise BreachError(f"a kernel wrote outside of its memory, beside its {held.name}")

    def _settle(self, parameters: Sequence[torch.Tensor]) -> None:
        """Choose the configurations of autotuned kernels, then capture the graphs: on inputs of zeros, with everything put back after."""
        for tensor in self.inputs:
            tensor.zero_()
        self._steps = self._issuer.settled(self._steps)
        for mine, value in zip(self._parameters, parameters, strict=True):
            mine.copy_(value)
        self.pack()

    def _kept(self, parameters: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Give the parameters that a call of the library changes, each with a copy of what it was."""
        changed = {view.buffer for step in self._plan.steps if isinstance(step, LibraryCall) for view in step.written}
        indices = [self._plan.buffers[place].index for place in sorted(changed) if self._plan.buffers[place].role == "parameter"]
        return [(self._parameters[index], self._parameters[index].clone()) for index in indices]

    def _argument(self, role: str, index: int, spec: TensorSpec) -> torch.Tensor:
        import torch

        held = next((h for h in self._memory if isinstance(h, Held) and h.buffer.role == role and h.buffer.index == index), None)
        dtype: torch.dtype = getattr(torch, spec.dtype)
        if held is None or not spec.numel:
            # nothing reads it
            return torch.empty(spec.shape, dtype=dtype, device=self._device)
        return held.inside.view(dtype).view(spec.shape)

    def _output(self, place: OutputPlace, spec: TensorSpec) -> Callable[[], torch.Tensor]:
        view = View(buffer=place.buffer, offset=place.offset, dtype=spec.dtype, shape=spec.shape, strides=place.strides)
        return self._memory[place.buffer].getter(view)
