"""Anonymous shared memory of a fixed size, and where the tensors of an ABI lie in it."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tools.records import TensorSpec

if TYPE_CHECKING:
    import numpy
    import torch

_ALIGNMENT = 256
_PIECE = 1 << 20


class Memory:
    """Shared memory that no holder can resize, so that reading it never faults."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        """Make `size` bytes, or map the `fd` of such memory."""
        if fd is None:
            fd = os.memfd_create("kernelwright", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, max(size, _ALIGNMENT))
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self._map = mmap.mmap(fd, self.size)

    @classmethod
    def attach(cls, fd: int) -> Memory:
        """Map memory that another process made."""
        return cls(0, fd)

    def bytes_at(self, offset: int, nbytes: int) -> numpy.ndarray:
        """View `nbytes` at `offset` as uint8."""
        import numpy as np

        return np.frombuffer(self._map, dtype=np.uint8, count=nbytes, offset=offset)

    def tensor_at(self, spec: TensorSpec, offset: int) -> torch.Tensor:
        """View the tensor `spec` at `offset`, on the CPU, sharing the memory."""
        import torch

        dtype: torch.dtype = getattr(torch, spec.dtype)
        if spec.numel == 0:
            return torch.empty(spec.shape, dtype=dtype)
        return torch.frombuffer(self._map, dtype=dtype, count=spec.numel, offset=offset).view(spec.shape)

    def equals(self, other: numpy.ndarray, offset: int) -> bool:
        """Compare what lies at `offset` with the bytes of `other`, in pieces that stay in the cache."""
        import numpy as np

        mine = self.bytes_at(offset, other.nbytes)
        pieces = range(0, other.nbytes, _PIECE)
        return all(np.array_equal(mine[start : start + _PIECE], other[start : start + _PIECE]) for start in pieces)

    def close(self) -> None:
        """Give the descriptor back; the mapping goes when its last view does."""
        os.close(self.fd)
        try:
            self._map.close()
        except BufferError:
            # a view is still in use
            return


class HoldsTensors(Protocol):
    """Memory in which tensors lie."""

    def tensor_at(self, spec: TensorSpec, offset: int) -> torch.Tensor:
        """View the tensor `spec` at `offset`."""


class Block:
    """Tensors one after the other, aligned, from `start` on."""

    def __init__(self, specs: Sequence[TensorSpec], start: int = 0) -> None:
        """Lay `specs` out."""
        self.specs = tuple(specs)
        offsets = []
        end = start
        for spec in self.specs:
            offsets.append(end)
            end += -(-spec.nbytes // _ALIGNMENT) * _ALIGNMENT
        self.start = start
        self.offsets = tuple(offsets)
        self.end = end

    @property
    def nbytes(self) -> int:
        """Bytes from the first tensor to the end of the last."""
        return self.end - self.start

    def at(self, start: int) -> Block:
        """Give the same tensors from another place on."""
        return Block(self.specs, start)

    def tensors(self, memory: HoldsTensors) -> list[torch.Tensor]:
        """View every tensor in `memory`."""
        return [memory.tensor_at(spec, offset) for spec, offset in zip(self.specs, self.offsets, strict=True)]

    def raw(self, memory: Memory) -> numpy.ndarray:
        """View all bytes of the block in `memory`."""
        return memory.bytes_at(self.start, self.nbytes)

    def fill(self, memory: Memory, contents: numpy.ndarray) -> None:
        """Copy the tensors' own bytes out of the `contents` of a block like this one; what is old between them stays there."""
        for spec, place, start in zip(self.specs, self.offsets, self.at(0).offsets, strict=True):
            memory.bytes_at(place, spec.nbytes)[:] = contents[start : start + spec.nbytes]
