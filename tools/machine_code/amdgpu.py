"""Reads what an AMD code object says of its kernels: the metadata note of its ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tools.errors import MachineError

_SHT_NOTE = 7
_METADATA_NOTE = 32
"""NT_AMDGPU_METADATA (LLVM, User Guide for AMDGPU Backend, code object V3 and above: note records)."""


def kernel_metadata(code: bytes) -> dict[str, dict[str, Any]]:
    """Return the metadata map of each kernel in a code object by name; keys as in LLVM's guide, e.g. `.vgpr_count`."""
    try:
        for kind, content in _notes(code):
            if kind == _METADATA_NOTE:
                kernels = _Reader(content).value()["amdhsa.kernels"]
                return {str(k[".name"]): k for k in kernels}
    except (struct.error, KeyError, IndexError, TypeError, UnicodeDecodeError) as error:
        raise _unreadable(f"its metadata does not parse ({error!r})") from error
    raise _unreadable("it has no metadata note")


def _unreadable(why: str) -> MachineError:
    return MachineError(f"The AMD code object cannot be read: {why}.", "Check that the compiler's output is whole, and its version.")


def _notes(code: bytes) -> Iterator[tuple[int, bytes]]:
    if code[:6] != b"\x7fELF\x02\x01":
        raise _unreadable("it is no 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    for index in range(count):
        kind, _, _, offset, length = struct.unpack_from("<IQQQQ", code, table + index * size + 4)
        if kind == _SHT_NOTE:
            yield from _notes_of(code[offset : offset + length])


def _notes_of(section: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(section):
        name_size, size, kind = struct.unpack_from("<III", section, at)
        start = at + 12 + _padded(name_size)
        yield kind, section[start : start + size]
        at = start + _padded(size)


def _padded(size: int) -> int:
    return (size + 3) & ~3


_SCALARS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


class _Reader:
    """A MessagePack reader for what LLVM writes: maps, lists, strings, numbers (no binary, no extension types)."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> Any:
        """Read the next value."""
        tag = self._take(">B")
        if tag <= 0x7F or tag >= 0xE0:
            return tag if tag <= 0x7F else tag - 256
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _SCALARS:
            return self._take(_SCALARS[tag])
        return self._sized(tag)

    def _sized(self, tag: int) -> Any:
        if 0xA0 <= tag <= 0xBF or tag in (0xD9, 0xDA, 0xDB):
            length = tag & 0x1F if tag <= 0xBF else self._take(_LENGTHS[tag])
            self._at += length
            return self._data[self._at - length : self._at].decode()
        if 0x90 <= tag <= 0x9F or tag in (0xDC, 0xDD):
            length = tag & 0x0F if tag <= 0x9F else self._take(_LENGTHS[tag])
            return [self.value() for _ in range(length)]
        length = tag & 0x0F if tag <= 0x8F else self._take(_LENGTHS[tag])
        return {self.value(): self.value() for _ in range(length)}

    def _take(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return number
