"""The few calls of CUDA's driver API that launch recorded kernels and share memory: ctypes on the library that every driver brings.

They work in the context that is current, which is torch's own once torch has used the device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_PREFER_SHARED = 1  # CU_FUNC_CACHE_PREFER_SHARED
_PLAIN_SHARED = 48 << 10
"""More must be asked for."""
_COOPERATIVE, _CLUSTER, _CLUSTER_POLICY, _OVERLAPPING = 2, 4, 5, 6  # CUlaunchAttributeID
_SPREAD = 1  # CU_CLUSTER_SCHEDULING_POLICY_SPREAD
_INVALID_VALUE = 1


class DriverError(Exception):
    """The driver refused; the device's word on a candidate, or on the machine."""


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


class Launchable:
    """One launch with everything laid out, so that issuing it is a single call."""

    def __init__(self, api: Any, function: ctypes.c_void_p, config: _Config, values: list[bytes]) -> None:
        """Keep what the driver will read."""
        self._values = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = [ctypes.cast(value, ctypes.c_void_p) for value in self._values]
        self._parameters = (ctypes.c_void_p * len(pointers))(*pointers)
        self._config = config
        self._reference = ctypes.byref(config)
        self._function = function
        self._launch = api.cuLaunchKernelEx

    def __call__(self) -> int:
        """Issue it; 0 where the driver took it."""
        result: int = self._launch(self._reference, self._function, self._parameters, None)
        return result


class Driver:
    """CUDA's driver in this process."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        """Load the library; DriverError where there is none."""
        try:
            self._api = ctypes.CDLL(library)
        except OSError as error:
            raise DriverError(f"the CUDA driver's library cannot be loaded: {error}") from None

    def function(self, code: bytes, name: str, shared_bytes: int) -> ctypes.c_void_p:
        """Load machine code and find a kernel in it that may use `shared_bytes` of shared memory."""
        return self.functions(code, (name,), shared_bytes)[0]

    def functions(self, code: bytes, names: Sequence[str], shared_bytes: int) -> list[ctypes.c_void_p]:
        """Load machine code once, or compile it where it is PTX, and find kernels in it that may each use `shared_bytes`."""
        module = ctypes.c_void_p()
        self.check(self._api.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(code)), f"loading {names[0]}")
        return [self._function(module, name, shared_bytes) for name in names]

    def _function(self, module: ctypes.c_void_p, name: str, shared_bytes: int) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self.check(self._api.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"finding {name}")
        if shared_bytes > _PLAIN_SHARED:
            self.check(self._api.cuFuncSetCacheConfig(function, _PREFER_SHARED), f"preferring shared memory for {name}")
            self.check(self._api.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared_bytes), f"shared memory of {name}")
        return function

    def layout(self, function: ctypes.c_void_p) -> list[tuple[int, int]]:
        """Offset and size of each of a kernel's parameters, as its machine code says (CUDA 12.4 and later)."""
        found: list[tuple[int, int]] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        while True:
            result = self._api.cuFuncGetParamInfo(function, ctypes.c_size_t(len(found)), ctypes.byref(offset), ctypes.byref(size))
            if result == _INVALID_VALUE:
                return found
            self.check(result, "reading a kernel's parameters")
            found.append((offset.value, size.value))

    def launchable(
        self,
        function: ctypes.c_void_p,
        grid: tuple[int, int, int],
        threads: int,
        shared_bytes: int,
        values: list[bytes],
        *,
        cluster: int = 1,
        cooperative: bool = False,
        overlapping: bool = False,
        stream: int = 0,
    ) -> Launchable:
        """Lay a launch out; `grid` counts clusters where these have several blocks, in the first dimension."""
        wanted: list[tuple[int, tuple[int, ...]]] = []
        if overlapping:
            wanted.append((_OVERLAPPING, (1,)))
        if cooperative:
            wanted.append((_COOPERATIVE, (1,)))
        if cluster > 1:
            wanted += [(_CLUSTER, (cluster, 1, 1)), (_CLUSTER_POLICY, (_SPREAD,))]
        attributes = (_Attribute * max(len(wanted), 1))()
        for attribute, (number, parts) in zip(attributes, wanted, strict=False):
            attribute.id = number
            for place, part in enumerate(parts):
                attribute.value[place] = part
        config = _Config(
            (ctypes.c_uint * 3)(grid[0] * cluster, grid[1], grid[2]),
            (ctypes.c_uint * 3)(threads, 1, 1),
            shared_bytes,
            ctypes.c_void_p(stream),
            attributes,
            len(wanted),
        )
        return Launchable(self._api, function, config, values)

    def fill(self, address: int, pattern: int, width: int, count: int, stream: int = 0) -> int:
        """Write a pattern of `width` bytes `count` times; 0 where the driver took it."""
        call = {1: self._api.cuMemsetD8Async, 2: self._api.cuMemsetD16Async, 4: self._api.cuMemsetD32Async}[width]
        kind = {1: ctypes.c_ubyte, 2: ctypes.c_ushort, 4: ctypes.c_uint}[width]
        result: int = call(ctypes.c_uint64(address), kind(pattern), ctypes.c_size_t(count), ctypes.c_void_p(stream))
        return result

    def ask(self, name: str, *arguments: Any) -> None:
        """Make one call of the driver's by its name; DriverError where it does not succeed."""
        self.check(getattr(self._api, name)(*arguments), name)

    def check(self, result: int, what: str) -> None:
        """Raise where a call did not succeed, with the driver's own name for it."""
        if result:
            name = ctypes.c_char_p()
            self._api.cuGetErrorName(result, ctypes.byref(name))
            raise DriverError(f"{what}: {(name.value or b'unknown error').decode()} ({result})")
