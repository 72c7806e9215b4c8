"""Tensors without contents on a device that need not be there, and host code that says `cuda` led to another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def fake_device() -> Iterator[None]:
    """Give tensors no contents, on a device that need not be there; torch built for CUDA would else start the real one.

    Modules may convert themselves, as constructors that say `self.half()` do.
    """
    import torch
    from torch._subclasses import fake_tensor

    # names differ between versions of torch
    module: Any = fake_tensor
    mode: Any = module.FakeTensorMode
    starters = [name for name in ("init_gpu_context", "init_cuda_context") if hasattr(module, name)]
    before = {name: getattr(module, name) for name in starters}
    avoid = mode.__dict__.get("avoid_device_init")
    for name in starters:
        setattr(module, name, lambda *_: None)
    mode.avoid_device_init = property(lambda _: True)
    try:
        with mode(allow_non_fake_inputs=True), patch.object(torch.utils, "swap_tensors", _take):
            yield
    finally:
        mode.avoid_device_init = avoid
        for name, function in before.items():
            setattr(module, name, function)


def _take(parameter: Any, converted: Any) -> None:
    """Make a parameter what it was converted to: torch swaps the two, and refuses where its own mode knows either by weak reference."""
    parameter.data = converted
    parameter.fake_device = converted.fake_device


def fake_name() -> str:
    """Name the device of tensors without contents: torch built without CUDA follows only some operators on a CUDA one."""
    import torch

    return "cuda:0" if torch.version.cuda or torch.version.hip else "cpu"


def on_device(device: str) -> Any:
    """Make a mode in which whatever is sent to `cuda` goes to `device` instead."""
    import torch
    from torch.overrides import TorchFunctionMode

    target = torch.device(device)
    # the getter of a C property
    is_cuda: Any = torch.Tensor.is_cuda
    asks_is_cuda = is_cuda.__get__

    class _OnDevice(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            # a property's getter is a new object each time it is looked up
            if func == asks_is_cuda:
                return True
            if func is torch.Tensor.cuda:
                return args[0].to(target)
            if func is torch.Tensor.to:
                args = (args[0], *(_placed(a, target) for a in args[1:]))
            return func(*args, **_placed_keywords(kwargs or {}, target))

    return _OnDevice()


def move(model: torch.nn.Module, device: str) -> None:
    """Put parameters and buffers on the device; `Module.to` cannot swap tensors without contents."""
    import torch

    for part in model.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = torch.nn.Parameter(_elsewhere(parameter, device), requires_grad=False)
        for name, value in part._buffers.items():
            if value is not None:
                part._buffers[name] = _elsewhere(value, device)


def _elsewhere(value: torch.Tensor, device: str) -> torch.Tensor:
    """Make a tensor like `value` on the device; `empty_like` would compute a constant for real."""
    import torch

    return torch.empty(value.shape, dtype=value.dtype, device=device)


def _placed(value: Any, target: torch.device) -> Any:
    """Replace a name of a CUDA device by `target`; leave everything else."""
    import torch

    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return target
    return target if isinstance(value, torch.device) and value.type == "cuda" else value


def _placed_keywords(given: dict[str, Any], target: torch.device) -> dict[str, Any]:
    kept = {name: _placed(value, target) if name == "device" else value for name, value in given.items()}
    if kept.get("pin_memory"):
        kept["pin_memory"] = False
    return kept
