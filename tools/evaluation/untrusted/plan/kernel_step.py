"""A launch of a compiled Triton kernel as a step of a plan: its machine code, its grid, and each argument as the device gets it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tools.evaluation.untrusted.plan.fill_patterns import Unsealable
from tools.evaluation.wire.launch_plan import POINTER, SCALARS, Argument, KernelLaunch
from tools.evaluation.wire.tensor_maps import TensorMap, described, is_descriptor

if TYPE_CHECKING:
    import torch


class Places(Protocol):
    """The plan in the making, which knows where everything is."""

    def place(self, tensor: torch.Tensor) -> int:
        """Give the place of a tensor's memory; Unsealable where it is unknown."""
        ...

    def scratch(self, nbytes: int) -> int:
        """Give the place of as much new memory."""
        ...

    def cubin(self, code: bytes) -> int:
        """Number a kernel's machine code."""
        ...


def launched(kernel: Any, values: Mapping[str, Any], grid: Sequence[int], places: Places) -> KernelLaunch:
    """Write a launch of a kernel down with `values` by name; Unsealable where an argument has no place in a plan."""
    metadata = kernel.metadata
    code = kernel.asm.get("cubin")
    if code is None:
        raise Unsealable("it is compiled for no NVIDIA device")
    size = (*(int(n) for n in grid), 1, 1, 1)[:3]
    cluster = int(getattr(metadata, "num_ctas", 1))
    maps = iter(getattr(metadata, "tensordesc_meta", None) or ())
    arguments: list[Argument | TensorMap] = []
    for name, kind in kernel.src.signature.items():
        if str(kind).startswith("tensordesc"):
            arguments += _described(name, values[name], next(maps, None), places)
        elif kind != "constexpr":
            arguments.append(_argument(name, kind, values, places))
    # the last two parameters of every kernel of Triton 3.4 and later
    for scratch in ("global_scratch_size", "profile_scratch_size"):
        arguments.append(_scratch(int(getattr(metadata, scratch, 0)) * math.prod(size) * cluster, places))
    return KernelLaunch(
        cubin=places.cubin(bytes(code)),
        function=str(metadata.name),
        grid=size,
        threads=32 * int(metadata.num_warps),
        shared_bytes=int(metadata.shared),
        cluster=cluster,
        cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
        overlapping=bool(getattr(metadata, "launch_pdl", False)),
        arguments=tuple(arguments),
    )


def _argument(name: str, kind: Any, values: Mapping[str, Any], places: Places) -> Argument:
    import torch

    value = values.get(name)
    if isinstance(kind, str) and kind.startswith("*") and isinstance(value, torch.Tensor):
        return Argument(type=POINTER, buffer=places.place(value), offset=value.storage_offset() * value.element_size())
    if isinstance(kind, str) and kind in SCALARS and isinstance(value, bool | int | float):
        return Argument(type=kind, value=value if kind.startswith("f") else int(value))
    raise Unsealable(f"its argument {name} of type {kind} has no place in a plan")


def _described(name: str, value: Any, known: Mapping[str, Any] | None, places: Places) -> list[Argument | TensorMap]:
    """Give a descriptor as a kernel takes it: the map, then sizes and strides."""
    found = described(value, known, places.place(value.base)) if known is not None and is_descriptor(value) else None
    if found is None:
        raise Unsealable(f"its argument {name} is a tensor descriptor that has no place in a plan")
    sizes = [Argument(type="i32", value=size) for size in found.shape]
    return [found, *sizes, *(Argument(type="i64", value=stride) for stride in found.strides)]


def _scratch(nbytes: int, places: Places) -> Argument:
    return Argument(type=POINTER, buffer=places.scratch(nbytes)) if nbytes else Argument(type=POINTER)
