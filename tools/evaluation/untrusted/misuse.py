"""Uses that a candidate was not made for, followed without data up to the first launch, to see which it takes without a word."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.evaluation.untrusted import fake_device, loading
from tools.evaluation.untrusted.launch_recorder import ReachedLaunch, Recorder
from tools.records import ABI, TensorSpec

if TYPE_CHECKING:
    import torch


class _Use(NamedTuple):
    """One argument unlike the one that the candidate was made for."""

    name: str
    arguments: list[Any]
    gradients: bool = False


def taken(module: Any, abi: ABI, recorder: Recorder) -> tuple[str, ...]:
    """Name the wrong uses for which a candidate launches a kernel; what raises before that is guarded, whatever it raises."""
    import torch

    device, found = fake_device.fake_name(), []
    with contextlib.ExitStack() as modes:
        modes.enter_context(fake_device.fake_device())
        modes.enter_context(fake_device.on_device(device))
        with torch.no_grad():
            model = loading.make_model(module, abi)
            fake_device.move(model, device)
            if (step := loading.packing_step(model)) is not None:
                step()
        modes.enter_context(recorder.stopping())
        for use in _uses(abi, device):
            try:
                with torch.set_grad_enabled(use.gradients):
                    model(*use.arguments)
            except ReachedLaunch:
                found.append(use.name)
            except Exception:  # noqa: S112 - whatever it says, it is not silent
                continue
    return tuple(found)


def _uses(abi: ABI, device: str) -> Iterator[_Use]:
    """List wrong uses: each changes one argument."""
    import torch

    right: list[Any] = [_empty(spec, device) if isinstance(spec, TensorSpec) else spec.value for spec in abi.arguments]
    for place, spec in enumerate(abi.arguments):
        if not isinstance(spec, TensorSpec):
            continue
        value = right[place]
        double = torch.complex128 if value.is_complex() else torch.float64
        other = double if value.dtype != double else torch.float32
        yield _Use(f"{spec.name} of rank {value.dim() + 1}", _with(right, place, value[None]))
        yield _Use(f"{spec.name} in {str(other).removeprefix('torch.')}", _with(right, place, value.to(other)))
        if value.dim():
            yield _Use(f"{spec.name} without elements", _with(right, place, value[:0]))
        if spec.is_float:
            yield _Use(f"a gradient of {spec.name}", _with(right, place, _empty(spec, device).requires_grad_()), gradients=True)


def _empty(spec: TensorSpec, device: str) -> torch.Tensor:
    import torch

    return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=device)


def _with(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]
