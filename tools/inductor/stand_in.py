"""What Inductor asks of a CUDA device, answered where there is none; for the rest of a process that does nothing else."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tools.evaluation.untrusted import gpu_stand_in
from tools.records import HardwareSheet

if TYPE_CHECKING:
    import torch

WHOLE = "kernelwright::attention"
"""Attention as one operator: which of the library's kernels is taken is decided on the device, so nothing may look inside before."""
_LIBRARY: list[Any] = []
"""Keeps what is registered alive."""


def install(sheet: HardwareSheet) -> None:
    """Let Inductor write for the device `sheet`: questions are answered, and what it would try on the device is left out."""
    import torch
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor.fx_passes import misc_patterns
    from torch._inductor.runtime import triton_helpers

    gpu_stand_in.install(sheet)
    cuda: Any = torch.cuda
    cuda.get_rng_state = lambda *_: torch.empty(16, dtype=torch.uint8)
    cuda.set_rng_state = lambda *_: None
    if torch.version.cuda is None:
        torch.version.cuda = "13.0"
    # it may have been imported before the device was stood in for
    for name in ("current_device", "device_count", "get_device_properties", "current_stream", "synchronize"):
        setattr(CudaInterface, name, staticmethod(getattr(cuda, name)))
    cudnn = getattr(torch._C, "_ConvBackend").Cudnn  # noqa: B009 - torch ships no type of it
    patterns, helpers, native, tensor = misc_patterns, triton_helpers, torch._C, torch.Tensor
    _replace(native, "_cuda_getCurrentRawStream", lambda *_: 0)
    _replace(helpers, "set_driver_to_gpu", lambda: None)
    # patterns of random permutations, registered by running them on the device: no reference draws random numbers
    _replace(patterns, "_misc_patterns_init", lambda *_: None)
    _replace(native, "_select_conv_backend", lambda *_, **__: cudnn)
    _replace(native, "_conv_determine_backend_memory_format", _convolved_format)
    _replace(tensor, "copy_", _copied(torch.Tensor.copy_))
    _replace(tensor, "__getitem__", _indexed(torch.Tensor.__getitem__))
    _fold_on_cpu()
    _register_attention()


def _replace(owner: Any, name: str, function: Any) -> None:
    """Put `function` in a place that has no type."""
    setattr(owner, name, function)


def _convolved_format(x: torch.Tensor, weight: torch.Tensor, _: object) -> torch.memory_format:
    """Say how cuDNN lays out a convolution's result: channels last where an operand has them last."""
    import torch

    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
    if last and any(one.is_contiguous(memory_format=last) and not one.is_contiguous() for one in (x, weight)):
        return last
    return torch.contiguous_format


def _copied(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Copy as `copy_` does; its binding asks for a guard of the device, which torch built without CUDA lacks."""
    import torch

    def copy(self: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        if self.device.type != "cuda":
            return original(self, source, non_blocking)
        copied: torch.Tensor = torch.ops.aten.copy_.default(self, source, non_blocking)
        return copied

    return copy


def _indexed(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Index as Python does, by operators, for the same reason; what formulas of torch's own use."""
    import torch

    aten: Any = torch.ops.aten

    def index(self: torch.Tensor, given: Any) -> torch.Tensor:
        keys = list(given) if isinstance(given, tuple) else [given]
        if self.device.type != "cuda" or not all(_is_plain(key) for key in keys):
            return original(self, given)
        if Ellipsis in [key for key in keys if not isinstance(key, torch.Tensor)]:
            at = next(place for place, key in enumerate(keys) if key is Ellipsis)
            named = sum(key is not None and key is not Ellipsis for key in keys)
            keys[at : at + 1] = [slice(None)] * (self.dim() - named)
        found, axis, tensors = self, 0, []
        for key in keys:
            if isinstance(key, int):
                found = aten.select.int(found, axis, key)
                continue
            if key is None:
                found = aten.unsqueeze.default(found, axis)
            elif isinstance(key, slice) and key != slice(None):
                found = aten.slice.Tensor(found, axis, key.start, key.stop, key.step or 1)
            tensors.append(key if isinstance(key, torch.Tensor) else None)
            axis += 1
        return aten.index.Tensor(found, tensors) if any(one is not None for one in tensors) else found

    return index


def _is_plain(key: Any) -> bool:
    import torch

    return key is None or key is Ellipsis or isinstance(key, torch.Tensor | slice) or type(key) is int


def _fold_on_cpu() -> None:
    """Have constants of one value folded on the CPU instead of on the device."""
    import torch
    from torch._inductor.fx_passes import joint_graph
    from torch.utils._python_dispatch import TorchDispatchMode

    class OnCpu(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = dict(kwargs or {})
            if isinstance(given.get("device"), torch.device):
                given["device"] = torch.device("cpu")
            return func(*args, **given)

    folder: Any = joint_graph.UniformValueConstantFolder
    for name in ("_deduce_value", "_add_peephole_patterns"):
        if hasattr(folder, name):
            setattr(folder, name, _within(OnCpu, getattr(folder, name)))


def _within(mode: Callable[[], contextlib.AbstractContextManager[Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return function(*args, **kwargs)

    return run


def _register_attention() -> None:
    """Make the operator `WHOLE`, of the same arguments as the library's; its result lies as the fused kernels leave it."""
    import torch

    if _LIBRARY:
        return
    namespace, _, name = WHOLE.partition("::")
    library: Any = torch.library.Library
    _LIBRARY.append(library(namespace, "DEF"))
    arguments = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False"
    _LIBRARY[0].define(f"{name}({arguments}, *, float? scale=None, bool enable_gqa=False) -> Tensor")

    def attended(query: Any, key: Any, value: Any, *_: object, **__: object) -> Any:
        shape = [*query.shape[:-1], value.shape[-1]]
        if len(shape) != 4:
            return query.new_empty(shape)
        batch, heads, steps, width = shape
        return query.new_empty([batch, steps, heads, width]).transpose(1, 2)

    torch.library.register_fake(WHOLE, attended)
