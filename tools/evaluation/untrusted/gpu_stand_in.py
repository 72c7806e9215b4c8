"""Stand-ins for a GPU where there is none: host code asks for its properties, moves tensors to it, tunes on it."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tools.records import HardwareSheet

if TYPE_CHECKING:
    import torch


def capability(sheet: HardwareSheet) -> tuple[int, int]:
    """Compute capability of a CUDA target, (0, 0) for others."""
    digits = sheet.arch.removeprefix("sm_").rstrip("a")
    return (int(digits[:-1]), int(digits[-1])) if sheet.backend == "cuda" else (0, 0)


def device_properties(sheet: HardwareSheet) -> types.SimpleNamespace:
    """What torch.cuda.get_device_properties would say of the target."""
    major, minor = capability(sheet)
    return types.SimpleNamespace(
        name=sheet.title,
        major=major,
        minor=minor,
        multi_processor_count=sheet.sms,
        total_memory=int(sheet.memory_gb * 1e9),
        warp_size=sheet.warp_size,
        max_threads_per_multi_processor=sheet.max_threads_per_sm,
        regs_per_multiprocessor=sheet.registers_per_sm,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=int(sheet.shared_kib_per_block * 1024),
        shared_memory_per_multiprocessor=int(sheet.shared_kib_per_sm * 1024),
        L2_cache_size=int(sheet.l2_mib * 1024 * 1024),
        gcnArchName=sheet.arch,
    )


class DriverStandIn:
    """Triton's driver for a device that is not there: answers questions, launches nothing."""

    def __init__(self, sheet: HardwareSheet) -> None:
        """Answer for the target `sheet`."""
        self._sheet = sheet
        self.utils = types.SimpleNamespace(get_device_properties=lambda _: self._properties())

    def _properties(self) -> dict[str, int]:
        sheet = self._sheet
        return {
            "max_shared_mem": int(sheet.shared_kib_per_block * 1024),
            "max_num_regs": sheet.registers_per_sm,
            "multiprocessor_count": sheet.sms,
            "warpSize": sheet.warp_size,
            "sm_clock_rate": int(sheet.clock_mhz * 1000),
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def get_current_target(self) -> Any:
        """Give the target as Triton names it."""
        from triton.backends.compiler import GPUTarget

        major, minor = capability(self._sheet)
        arch: int | str = major * 10 + minor if self._sheet.backend == "cuda" else self._sheet.arch
        return GPUTarget(self._sheet.backend, arch, self._sheet.warp_size)

    def get_current_device(self) -> int:
        """Give the only device."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Give the only device as torch names it."""
        import torch

        return torch.device("cuda", 0)

    def get_current_stream(self, device: int | None = None) -> int:
        """Give the default stream."""
        return 0

    def get_device_interface(self) -> Any:
        """Give torch's module for the device."""
        import torch

        return torch.cuda


entered = [False]
"""Whether host code of this process put work on a stream of its own choice."""


def enter_stream(_: object) -> contextlib.AbstractContextManager[None]:
    """Stay on the only stream, and remember that another was meant."""
    entered[0] = True
    return contextlib.nullcontext()


class Stream:
    """The only stream: what is put on it is done at once."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None:
        """Take whatever a stream is made with."""

    def __enter__(self) -> Stream:
        """Become the current stream, as it already is."""
        entered[0] = True
        return self

    def __exit__(self, *_: object) -> None:
        """Stay the current stream."""

    def wait_stream(self, _: object) -> None:
        """Wait for nothing."""

    def wait_event(self, _: object) -> None:
        """Wait for nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Give an event that has happened."""
        return event or Event()

    def synchronize(self) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Tell that all is done."""
        return True


class Event:
    """An event that has happened; nothing is timed where there is no device."""

    def __init__(self, *_: object, **__: object) -> None:
        """Take whatever an event is made with."""

    def record(self, _: object = None) -> None:
        """Happen."""

    def wait(self, _: object = None) -> None:
        """Wait for nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Tell that it has happened."""
        return True

    def elapsed_time(self, _: object) -> float:
        """Give a time that no tuner can choose by."""
        return 1.0


notes: dict[str, None] = {}
"""What a stand-in decided in this process that a device might have decided otherwise."""


Chooser = Callable[[str, Sequence[Callable[[], Any]]], Any]
"""Takes a kernel's name and what launches it, once for each configuration."""
_chooser: list[Chooser] = []


def follow_choices(chooser: Chooser) -> None:
    """Have `chooser` take launches of autotuned kernels from now on; where it gives nothing, the first that builds is taken."""
    _chooser[:] = [chooser]


def first_configuration(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an autotuned kernel with the first of its configurations that builds: nothing can be timed here."""
    autotuner.nargs = dict(zip(autotuner.arg_names, args, strict=False))
    configs = list(autotuner.prune_configs(kwargs)) or list(autotuner.configs)
    ways = [functools.partial(_configured, autotuner, config, args, kwargs) for config in configs]
    if len(ways) > 1:
        name = getattr(getattr(autotuner, "base_fn", None), "__name__", "a kernel")
        notes[f"{name} is autotuned: its first configuration was taken, as nothing was timed."] = None
        taken = _chooser[0](name, ways) if _chooser else None
        if taken is not None:
            return taken
    for way in ways:
        try:
            return way()
        except Exception:
            # a device would drop a configuration that does not build, and try the next
            if way is ways[-1]:
                raise
    return None


def _configured(autotuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    autotuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**autotuner.nargs, **kwargs, **config.all_kwargs()})
    return autotuner.fn.run(*args, **kwargs, **config.all_kwargs())


def install(sheet: HardwareSheet) -> None:
    """Answer questions about the device for the rest of this process as the target would."""
    import torch
    from triton.runtime import autotuner, driver

    properties = device_properties(sheet)
    replies: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: sheet.title,
        "get_device_capability": lambda *_: capability(sheet),
        "get_device_properties": lambda *_: properties,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
    }
    replies |= {"device": lambda _: contextlib.nullcontext(), "device_of": lambda _: contextlib.nullcontext()}
    replies |= {
        "Stream": Stream,
        "Event": Event,
        "current_stream": Stream,
        "default_stream": Stream,
        "stream": enter_stream,
        "set_stream": enter_stream,
    }
    for name, reply in replies.items():
        setattr(torch.cuda, name, reply)
    _follow_cudnn()
    # Triton ships no types
    tuned: Any = autotuner.Autotuner
    tuned.run = first_configuration
    active: Any = driver
    active.set_active(DriverStandIn(sheet))


_shapes: list[Any] = []
"""The library of operators' shapes, once it is made: it must outlive this module's functions."""


def _follow_cudnn() -> None:
    """Tell torch the shapes of cuDNN's fused convolutions, and how they lie: it only knows that on a device."""
    import torch
    from torch._prims_common import suggest_memory_format

    if _shapes:
        return
    library: Any = torch.library.Library
    _shapes.append(library("aten", "IMPL"))

    def convolved(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        made = torch.ops.aten.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)
        last = torch.channels_last if weight.dim() == 4 else torch.channels_last_3d
        # channels come last where either operand looks as if it had them last, and else they do not
        turned = last in (suggest_memory_format(x), suggest_memory_format(weight))
        return torch.empty_like(made, memory_format=last if turned else torch.contiguous_format)

    def added(x: Any, weight: Any, z: Any, alpha: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        del z, alpha
        return convolved(x, weight, bias, stride, padding, dilation, groups)

    for name, shape in (("cudnn_convolution_relu", convolved), ("cudnn_convolution_add_relu", added)):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
            _shapes[0].impl(name, shape, "Meta")
