"""The reference at its declared precision and in float64: for trusted processes only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tools.errors import KernelwrightError
from tools.records import Problem

if TYPE_CHECKING:
    import torch


@contextmanager
def _defaults(dtype: torch.dtype, *, tf32: bool) -> Iterator[None]:
    import torch

    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


class DeclaredReference:
    """A problem's reference on a device, at the precision the policy declares."""

    def __init__(self, problem: Problem, device: str) -> None:
        """Open it on `device`."""
        from tools.problems import open_problem

        self._problem = problem
        self._device = device
        self._reference = open_problem(problem)
        self._reference.module.to(device)
        self._half: torch.dtype | None = None

    def parameters(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by state-dict key."""
        return self._reference.parameters()

    def load(self, values: Mapping[str, torch.Tensor]) -> None:
        """Replace parameters and buffers."""
        if self._problem.abi.parameters:
            self._reference.module.load_state_dict(dict(values), strict=True)

    def inputs(self, seed: int) -> list[Any]:
        """Positional arguments of one call."""
        return list(self._reference.inputs(seed, self._device))

    def outputs(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Run at the declared precision; outputs have the ABI's dtypes where the policy is `exact`."""
        import torch

        policy = self._problem.policy.name
        halves = {"fp16": torch.float16, "bf16": torch.bfloat16}
        if policy in halves:
            return self._in_half(arguments, halves[policy])
        if policy == "tf32" and self._device == "cpu":
            # no CPU rounds to TF32: its inputs, rounded, stand for it
            arguments = [_to_tf32(value) for value in arguments]
        with _defaults(torch.float32, tf32=policy == "tf32"):
            return self._reference.outputs(arguments)

    def _in_half(self, arguments: list[Any], dtype: torch.dtype) -> list[torch.Tensor]:
        if self._half is not dtype:
            self._reference.module.to(dtype)
            self._half = dtype
        return self._reference.outputs([_as(value, dtype) for value in arguments])


class Oracle:
    """The same reference with every float in float64."""

    def __init__(self, problem: Problem, parameters: Mapping[str, torch.Tensor], device: str) -> None:
        """Open it on `device` with these parameters."""
        import torch

        from tools.problems import open_problem

        self._device = device
        self._reference = open_problem(problem)
        if problem.abi.parameters:
            self._reference.module.load_state_dict(dict(parameters), strict=True)
        self._reference.module.to(device=device, dtype=torch.float64)

    def outputs(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Run in float64."""
        import torch

        with _defaults(torch.float64, tf32=False):
            return self._reference.outputs([_as(value, torch.float64) for value in arguments])

    def sensitivity(self, arguments: list[Any], roundoff: float) -> list[torch.Tensor]:
        """Run in float64 with every float input moved by one `roundoff`, up or down at random."""
        import torch

        moved = []
        for value in arguments:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                exact = value.double()
                sign = torch.randint(0, 2, exact.shape, device=exact.device).double() * 2 - 1
                moved.append(exact * (1 + roundoff * sign))
            else:
                moved.append(value)
        return self.outputs(moved)


class NoOracleError(KernelwrightError):
    """The reference cannot be run in float64, so nothing can be judged against it."""


def _as(value: Any, dtype: torch.dtype) -> Any:
    import torch

    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _to_tf32(value: Any) -> Any:
    """Round a float32 tensor to TF32's 10 bits of mantissa, to nearest."""
    import torch

    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return value
    bits = value.view(torch.int32)
    return torch.where(torch.isfinite(value), ((bits + 0x1000) & ~0x1FFF).view(torch.float32), value)
