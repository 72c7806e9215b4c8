"""Device memory that two processes share by a descriptor: what passes between them never touches the host's memory.

CUDA's virtual memory management (CUDA programming guide, "Virtual Memory Management"): whoever makes it exports a POSIX descriptor,
whoever is handed that maps the same memory, also inside of other namespaces and as another user.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from tools.evaluation.wire.driver_api import Driver
from tools.evaluation.wire.memory import Memory
from tools.records import TensorSpec

if TYPE_CHECKING:
    import torch

_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class _Bytes:
    """Memory as torch takes it over from other libraries without copying."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


class DeviceMemory:
    """Memory on this process's current device, its own or another's; nothing reads it once it is closed."""

    def __init__(self, size: int, fd: int | None = None, *, device: int = 0) -> None:
        """Make at least `size` bytes on `device`, or map those that `fd` stands for; raises DriverError where the driver refuses."""
        import torch

        # the driver's calls need a context, which is torch's own
        torch.empty(1, device=f"cuda:{device}")
        self._driver = Driver()
        location = _Location(_ON_DEVICE, device)
        properties = _Properties(_PINNED, _DESCRIPTOR, location)
        granularity = ctypes.c_size_t()
        self._driver.ask("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
        self.size = -(-max(size, 1) // granularity.value) * granularity.value
        self._handle, self._address = ctypes.c_uint64(), ctypes.c_uint64()
        whole = ctypes.c_size_t(self.size)
        if fd is None:
            self._driver.ask("cuMemCreate", ctypes.byref(self._handle), whole, ctypes.byref(properties), ctypes.c_uint64(0))
        else:
            self._driver.ask("cuMemImportFromShareableHandle", ctypes.byref(self._handle), ctypes.c_void_p(fd), _DESCRIPTOR)
        nothing = ctypes.c_uint64(0)
        self._driver.ask("cuMemAddressReserve", ctypes.byref(self._address), whole, ctypes.c_size_t(0), nothing, nothing)
        self._driver.ask("cuMemMap", self._address, whole, ctypes.c_size_t(0), self._handle, nothing)
        access = _Access(location, _READ_WRITE)
        self._driver.ask("cuMemSetAccess", self._address, whole, ctypes.byref(access), ctypes.c_size_t(1))
        self._bytes: torch.Tensor = torch.as_tensor(_Bytes(self._address.value, self.size), device=f"cuda:{device}")

    def export(self) -> int:
        """Give a descriptor that stands for it; the caller closes that."""
        fd = ctypes.c_int(-1)
        self._driver.ask("cuMemExportToShareableHandle", ctypes.byref(fd), self._handle, _DESCRIPTOR, ctypes.c_uint64(0))
        return fd.value

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        """View `nbytes` at `offset` as uint8."""
        return self._bytes[offset : offset + nbytes]

    def tensor_at(self, spec: TensorSpec, offset: int) -> torch.Tensor:
        """View the tensor `spec` at `offset`, sharing the memory."""
        import torch

        dtype: torch.dtype = getattr(torch, spec.dtype)
        if spec.numel == 0:
            return torch.empty(spec.shape, dtype=dtype, device=self._bytes.device)
        return self.bytes_at(offset, spec.nbytes).view(dtype).view(spec.shape)

    def close(self) -> None:
        """Unmap it, what uses it having ended; the memory is given back when every process has done so."""
        import torch

        torch.cuda.synchronize(self._bytes.device)
        self._driver.ask("cuMemUnmap", self._address, ctypes.c_size_t(self.size))
        self._driver.ask("cuMemAddressFree", self._address, ctypes.c_size_t(self.size))
        self._driver.ask("cuMemRelease", self._handle)


def carried(size: int, device: str) -> tuple[Memory | DeviceMemory, int]:
    """Make memory of `size` bytes where `device` computes, and a descriptor of it, which the caller closes."""
    if device == "cpu":
        memory = Memory(size)
        return memory, os.dup(memory.fd)
    made = DeviceMemory(size)
    return made, made.export()


def attach(fd: int, size: int, device: str) -> Memory | DeviceMemory:
    """Map such memory in another process and close the descriptor."""
    if device == "cpu":
        return Memory.attach(fd)
    try:
        return DeviceMemory(size, fd)
    finally:
        os.close(fd)
