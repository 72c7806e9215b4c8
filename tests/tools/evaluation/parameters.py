"""Reads a kernel's parameters out of a cubin, for comparison: the `KPARAM_INFO` attributes of its `.nv.info` section (ELF64)."""

from __future__ import annotations

import struct

_KPARAM_INFO = 0x1704
"""Format 4 (a sized value), attribute 0x17: index in the parameter list, ordinal, offset, and the size from bit 18 on."""


def kernel_parameters(code: bytes, function: str) -> list[tuple[int, int]]:
    """Offset and size of each parameter, in order."""
    data = _section(code, f".nv.info.{function}")
    found, at = {}, 0
    while at < len(data):
        kind, value = struct.unpack_from("<HH", data, at)
        at += 4
        if kind & 0xFF != 4:
            continue
        if kind == _KPARAM_INFO:
            _, ordinal, offset, size = struct.unpack_from("<IHHI", data, at)
            found[ordinal] = (offset, size >> 18)
        at += value
    return [found[ordinal] for ordinal in sorted(found)]


def _section(code: bytes, name: str) -> bytes:
    table, size, count, names = struct.unpack_from("<Q", code, 0x28)[0], *struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, table + index * size) for index in range(count)]
    start = headers[names][4]
    for label, _, _, _, offset, length in headers:
        end = code.index(b"\0", start + label)
        if code[start + label : end].decode() == name:
            return code[offset : offset + length]
    return b""
