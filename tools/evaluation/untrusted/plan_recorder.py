"""Records a launch plan while the builder follows a candidate's host code on tensors without contents.

Whatever has no exact place in a plan makes the candidate unsealable, with the reason said; its tier is then another.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tools.evaluation.wire.launch_plan import POINTER, SCALARS, Argument, Buffer, Fill, KernelLaunch, LaunchPlan, OutputPlace
from tools.evaluation.wire.library_calls import WRITES, LibraryCall, View, written_down
from tools.evaluation.wire.tensor_maps import TensorMap, described, is_descriptor

if TYPE_CHECKING:
    import torch

_ALLOCATES = frozenset(["empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"])
_ZEROS = frozenset(["zeros", "zeros_like", "new_zeros", "zero_"])
_ONES = frozenset(["ones", "ones_like", "new_ones"])
_VALUE_AT = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1}
"""Operators that write a constant, and which argument it is."""
_FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint8": "B",
    "bool": "?",
}
"""How `struct` writes a value of a dtype; bfloat16 is a float32 without its lower half."""


class Unsealable(Exception):  # noqa: N818 - a finding, and no error of anybody
    """The candidate does what a plan cannot say."""


@dataclass(frozen=True)
class _Ground:
    """What every call of a module finds: its parameters, and what it packed of them."""

    storages: dict[int, int]
    kept: list[Any]
    buffers: list[Buffer]
    steps: list[KernelLaunch | Fill | LibraryCall]
    cubins: dict[bytes, int]
    reason: str


class Planner:
    """One call's plan in the making; a refusal is remembered and ends it, never the call."""

    def __init__(self) -> None:
        """Begin with none."""
        self.reason = ""
        """Why there is no plan; the first thing that has no place in one."""
        self._recording = False
        self._ground: _Ground | None = None

    def begin(self, inputs: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor]) -> None:
        """Begin with a module that has these parameters, in the ABI's order: with the step that packs them, if there is one."""
        self._recording = True
        self.reason = ""
        self._role: Literal["made", "packed"] = "packed"
        self._storages: dict[int, int] = {}
        # a storage that is gone may give its address to another
        self._kept: list[Any] = []
        self._buffers: list[Buffer] = []
        self._steps: list[KernelLaunch | Fill | LibraryCall] = []
        self._cubins: dict[bytes, int] = {}
        for index, tensor in enumerate(inputs):
            self._own(tensor, Buffer(role="input", index=index, nbytes=_storage_bytes(tensor)))
        for index, tensor in enumerate(parameters):
            self._own(tensor, Buffer(role="parameter", index=index, nbytes=_storage_bytes(tensor)))
        self._ground = None

    def begin_call(self) -> None:
        """Begin a call, which finds the module and what it packed."""
        if self._ground is None:
            reason = f"while it packs its weights, {self.reason}" if self.reason else ""
            self._ground = _Ground(self._storages, self._kept, self._buffers, self._steps, self._cubins, reason)
        ground = self._ground
        self._recording, self._role, self.reason = True, "made", ground.reason
        self._storages, self._kept, self._buffers = dict(ground.storages), list(ground.kept), list(ground.buffers)
        self._steps, self._cubins = [], dict(ground.cubins)

    def finish(self, outputs: Sequence[torch.Tensor]) -> LaunchPlan | None:
        """End the call; None where it has no plan, which `reason` explains."""
        self._recording = False
        if self.reason:
            return None
        try:
            places = tuple(self._output(tensor) for tensor in outputs)
        except Unsealable as refusal:
            self.reason = str(refusal)
            return None
        assert self._ground is not None
        return LaunchPlan(
            buffers=tuple(self._buffers),
            packing=tuple(self._ground.steps),
            steps=tuple(self._steps),
            outputs=places,
            cubins=tuple(base64.b64encode(code).decode() for code in self._cubins),
        )

    def refuse(self, reason: str) -> None:
        """Say that the call does what no plan can hold."""
        if self._recording:
            self.reason = self.reason or reason

    def operator(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, *, free: bool) -> None:
        """Take one operator of torch that host code called."""
        if not self._recording or self.reason:
            return
        name = str(func).split(".")[1]
        try:
            if name in _ALLOCATES:
                self._made(result)
            elif name in _ZEROS | _ONES or name in _VALUE_AT:
                self._filled(name, args, kwargs, result)
            elif not free:
                self._called(func, args, kwargs, result)
        except Unsealable as refusal:
            self.reason = str(refusal)

    def _called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Take an operator that computes something: while weights are packed, and there alone."""
        import torch

        call = None
        if self._role == "packed" and isinstance(result, torch.Tensor):
            if str(func) != WRITES:
                self._made(result)
            elif self._buffers[self._buffer(result)].role != "packed":
                raise Unsealable("its host code writes to a parameter")
            call = written_down(func, args, kwargs, result, self._view)
        if call is None:
            raise Unsealable(f"its host code calls the library's {func}")
        self._steps.append(call)

    def launch(self, kernel: Any, values: Mapping[str, Any], grid: Sequence[int]) -> None:
        """Take one launch of a compiled Triton kernel with `values` by name."""
        if not self._recording or self.reason:
            return
        try:
            self._steps.append(self._kernel(kernel, values, grid))
        except Unsealable as refusal:
            self.reason = f"kernel {kernel.metadata.name}: {refusal}"

    def _kernel(self, kernel: Any, values: Mapping[str, Any], grid: Sequence[int]) -> KernelLaunch:
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
                arguments += self._described(name, values[name], next(maps, None))
            elif kind != "constexpr":
                arguments.append(self._argument(name, kind, values))
        # the last two parameters of every kernel of Triton 3.4 and later
        for scratch in ("global_scratch_size", "profile_scratch_size"):
            arguments.append(self._scratch(int(getattr(metadata, scratch, 0)) * math.prod(size) * cluster))
        return KernelLaunch(
            cubin=self._cubins.setdefault(bytes(code), len(self._cubins)),
            function=str(metadata.name),
            grid=size,
            threads=32 * int(metadata.num_warps),
            shared_bytes=int(metadata.shared),
            cluster=cluster,
            cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
            overlapping=bool(getattr(metadata, "launch_pdl", False)),
            arguments=tuple(arguments),
        )

    def _argument(self, name: str, kind: Any, values: Mapping[str, Any]) -> Argument:
        import torch

        value = values.get(name)
        if isinstance(kind, str) and kind.startswith("*") and isinstance(value, torch.Tensor):
            return Argument(type=POINTER, buffer=self._buffer(value), offset=value.storage_offset() * value.element_size())
        if isinstance(kind, str) and kind in SCALARS and isinstance(value, bool | int | float):
            return Argument(type=kind, value=value if kind.startswith("f") else int(value))
        raise Unsealable(f"its argument {name} of type {kind} has no place in a plan")

    def _described(self, name: str, value: Any, known: Mapping[str, Any] | None) -> list[Argument | TensorMap]:
        """Give a descriptor as a kernel takes it: the map, then sizes and strides."""
        found = described(value, known, self._buffer(value.base)) if known is not None and is_descriptor(value) else None
        if found is None:
            raise Unsealable(f"its argument {name} is a tensor descriptor that has no place in a plan")
        sizes = [Argument(type="i32", value=size) for size in found.shape]
        return [found, *sizes, *(Argument(type="i64", value=stride) for stride in found.strides)]

    def _scratch(self, nbytes: int) -> Argument:
        if not nbytes:
            return Argument(type=POINTER)
        self._buffers.append(Buffer(role=self._role, nbytes=nbytes))
        return Argument(type=POINTER, buffer=len(self._buffers) - 1)

    def _made(self, tensor: torch.Tensor) -> None:
        self._own(tensor, Buffer(role=self._role, nbytes=_storage_bytes(tensor)))

    def _filled(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        if not name.endswith("_"):
            self._made(result)
        value = 0 if name in _ZEROS else 1 if name in _ONES else _constant(name, args, kwargs)
        if not _is_dense(result):
            raise Unsealable(f"its host code fills part of a tensor with gaps ({name})")
        item = result.element_size()
        width, pattern = _pattern(value, str(result.dtype).removeprefix("torch."), item)
        buffer = self._buffer(result)
        if self._buffers[buffer].role != self._role:
            raise Unsealable("its host code fills an input, a parameter, or in a call what it packed")
        offset, nbytes = result.storage_offset() * item, result.numel() * item
        self._steps.append(Fill(buffer=buffer, offset=offset, nbytes=nbytes, width=width, pattern=pattern))

    def _own(self, tensor: torch.Tensor, buffer: Buffer) -> None:
        storage = tensor.untyped_storage()
        self._kept.append(storage)
        self._storages[storage._cdata] = len(self._buffers)
        self._buffers.append(buffer)

    def _buffer(self, tensor: torch.Tensor) -> int:
        found = self._storages.get(tensor.untyped_storage()._cdata)
        if found is None:
            raise Unsealable("it uses a tensor that is no input, no parameter, and not made in the same call")
        return found

    def _view(self, tensor: torch.Tensor) -> View:
        offset = tensor.storage_offset() * tensor.element_size()
        dtype = str(tensor.dtype).removeprefix("torch.")
        return View(
            buffer=self._buffer(tensor),
            offset=offset,
            dtype=dtype,
            shape=tuple(map(int, tensor.shape)),
            strides=tuple(map(int, tensor.stride())),
        )

    def _output(self, tensor: torch.Tensor) -> OutputPlace:
        offset = tensor.storage_offset() * tensor.element_size()
        return OutputPlace(buffer=self._buffer(tensor), offset=offset, strides=tuple(map(int, tensor.stride())))


def _storage_bytes(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())


def _constant(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    place = _VALUE_AT[name]
    value = args[place] if len(args) > place else kwargs.get("fill_value", kwargs.get("value"))
    if not isinstance(value, bool | int | float):
        raise Unsealable(f"its host code fills a tensor with what is no plain number ({name})")
    return value


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements cover one contiguous part of the storage, in whatever order."""
    reach = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1):
        if stride != reach:
            return False
        reach *= size
    return True


def _pattern(value: float, dtype: str, item: int) -> tuple[Any, int]:
    """Width and value of the pattern that writes `value`; eight-byte elements need one that repeats."""
    if dtype == "bfloat16":
        # as torch rounds: to nearest, ties to even
        bits = struct.unpack("=I", struct.pack("=f", value))[0]
        data = struct.pack("=H", (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF)
    elif dtype in _FORMATS:
        code = _FORMATS[dtype]
        try:
            data = struct.pack("=" + code, float(value) if code in "dfe" else bool(value) if code == "?" else int(value))
        except (struct.error, OverflowError, ValueError):
            raise Unsealable(f"its host code fills a tensor of {dtype} with {value}") from None
    else:
        raise Unsealable(f"its host code fills a tensor of {dtype}")
    if len(set(data)) == 1:
        return 1, data[0]
    if item <= 4:
        return item, int.from_bytes(data, "little")
    if data[:4] == data[4:]:
        return 4, int.from_bytes(data[:4], "little")
    raise Unsealable(f"its host code fills a tensor of {dtype} with {value}, which no memory set can")
