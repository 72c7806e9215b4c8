"""The sealed call: a launch plan run in a process that never held the candidate's host code.

The process is a runner as any other, inside the same walls, since the driver reads machine code that a stranger made; it takes a plan in
the place of a source. So no host code of the candidate is near the clock: events, streams, threads and lazy tensors are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tools.evaluation.wire.driver_api import Driver
from tools.evaluation.wire.launch_plan import BASES, Argument, Buffer, Fill, KernelLaunch, LaunchPlan, layout, pack
from tools.evaluation.wire.library_calls import LibraryCall, View, ready
from tools.evaluation.wire.tensor_maps import TensorMap
from tools.records import ABI, TensorSpec

if TYPE_CHECKING:
    import torch

RED_BYTES = 4096
"""Before and after each buffer."""
_RED = 0xA5


class BreachError(Exception):
    """A kernel wrote outside of its buffers, or its code is not what the plan says."""


class SealedModel:
    """A plan ready to be called like a module: buffers made, kernels loaded, launches laid out."""

    def __init__(
        self, plan: LaunchPlan, abi: ABI, parameters: Sequence[torch.Tensor], device: str = "cuda", driver: Driver | None = None
    ) -> None:
        """Make everything on `device`; raises DriverError or BreachError where the plan does not fit its code."""
        self._plan = plan
        self._device = device
        self._held = [_Held(buffer, f"{buffer.role} {buffer.index}", device) for buffer in plan.buffers]
        self.inputs = [self._argument("input", index, spec) for index, spec in enumerate(abi.inputs)]
        """What the call reads, to be written by whoever calls."""
        for index, (spec, value) in enumerate(zip(abi.parameters, parameters, strict=True)):
            self._argument("parameter", index, spec).copy_(value)
        self._outputs = [self._output(place.buffer, place.offset, place.strides, spec) for place, spec in _places(plan, abi)]
        self._driver = driver or Driver()
        addresses = tuple(held.inside.data_ptr() for held in self._held)
        self._packing, self._steps = ([self._prepared(step, addresses) for step in steps] for steps in (plan.packing, plan.steps))
        self.pack()

    def __call__(self, *_: object) -> list[torch.Tensor]:
        """Issue every step in order on the default stream; the outputs are there when the device has ended."""
        self._issue(self._steps)
        return self._outputs

    def pack(self) -> None:
        """Issue the steps that pack weights, if there are any."""
        self._issue(self._packing)

    def poison(self, byte: int) -> None:
        """Fill all that is neither input nor parameter with a pattern and pack the weights anew: nothing of an earlier call is left."""
        for held in self._held:
            if held.buffer.role in ("made", "packed"):
                held.inside.fill_(byte)
        self.pack()

    def _issue(self, steps: Sequence[Callable[[], int]]) -> None:
        for step in steps:
            result = step()
            if result:
                self._driver.check(result, "launching a recorded kernel")

    def check_borders(self) -> None:
        """Raise BreachError where anything around a buffer has changed."""
        for held in self._held:
            if not held.is_whole():
                raise BreachError(f"a kernel wrote outside of its memory, beside its {held.name}")

    def _argument(self, role: str, index: int, spec: TensorSpec) -> torch.Tensor:
        import torch

        held = next((held for held in self._held if held.buffer.role == role and held.buffer.index == index), None)
        dtype: torch.dtype = getattr(torch, spec.dtype)
        if held is None:
            # nothing reads it
            return torch.empty(spec.shape, dtype=dtype, device=self._device)
        return held.inside.view(dtype).view(spec.shape) if spec.numel else torch.empty(spec.shape, dtype=dtype, device=self._device)

    def _output(self, buffer: int, offset: int, strides: tuple[int, ...], spec: TensorSpec) -> torch.Tensor:

        return self._tensor(View(buffer=buffer, offset=offset, dtype=spec.dtype, shape=spec.shape, strides=strides))

    def _tensor(self, view: View) -> torch.Tensor:
        import torch

        dtype: torch.dtype = getattr(torch, view.dtype)
        item = dtype.itemsize
        inside = self._held[view.buffer].inside
        whole = inside[: inside.numel() // item * item].view(dtype)
        return whole.as_strided(view.shape, view.strides, whole.storage_offset() + view.offset // item)

    def _prepared(self, step: KernelLaunch | Fill | LibraryCall, addresses: tuple[int, ...]) -> Callable[[], int]:
        if isinstance(step, Fill):
            address, count = addresses[step.buffer] + step.offset, step.nbytes // step.width
            return lambda: self._driver.fill(address, step.pattern, step.width, count) if count else 0
        if isinstance(step, LibraryCall):
            return ready(step, self._tensor)
        function = self._driver.function(self._plan.code(step.cubin), step.function, step.shared_bytes)
        found = self._driver.layout(function)
        if all(found != layout(step.arguments, base) for base in BASES):
            raise BreachError(f"{step.function} takes parameters at {found}, the plan gives them at {layout(step.arguments)}")
        return self._driver.launchable(
            function,
            step.grid,
            step.threads,
            step.shared_bytes,
            [self._packed(argument, addresses) for argument in step.arguments],
            cluster=step.cluster,
            cooperative=step.cooperative,
            overlapping=step.overlapping,
        )

    def _packed(self, argument: Argument | TensorMap, addresses: tuple[int, ...]) -> bytes:
        if isinstance(argument, TensorMap):
            return argument.encode(self._driver, addresses[argument.buffer])
        return pack(argument, addresses)


class _Held:
    """One buffer on the device between two borders of a known pattern."""

    def __init__(self, buffer: Buffer, name: str, device: str) -> None:
        import torch

        self.buffer = buffer
        self.name = name
        room = -(-buffer.nbytes // RED_BYTES) * RED_BYTES
        self._whole = torch.full((RED_BYTES + room + RED_BYTES,), _RED, dtype=torch.uint8, device=device)
        self.inside = self._whole[RED_BYTES : RED_BYTES + buffer.nbytes]

    def is_whole(self) -> bool:
        """Whether both borders hold their pattern."""
        before, after = self._whole[:RED_BYTES], self._whole[RED_BYTES + self.buffer.nbytes :]
        return bool((before == _RED).all()) and bool((after == _RED).all())


def _places(plan: LaunchPlan, abi: ABI) -> list[tuple[Any, TensorSpec]]:
    return list(zip(plan.outputs, abi.outputs, strict=True))
