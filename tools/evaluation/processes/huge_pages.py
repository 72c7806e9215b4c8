"""Memory in huge pages, for a process that is forked often: a fork copies one entry for 2 MB, and no longer one for each 4 KB.

What a child then writes is still copied in pages of 4 KB.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

BORN_HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""In the environment of a program that begins: malloc asks for huge pages from the start, where the machine gives them to who asks."""
_MAPS = Path("/proc/self/maps")
_SIZE = 2 << 20
"""On x86 and on ARM with pages of 4 KB; elsewhere the kernel refuses."""
_MADV_COLLAPSE = 25
"""Since Linux 6.1."""


def collapse() -> None:
    """Move this process's own memory into huge pages, a few tenths of a second for 250 MB; what the kernel refuses stays as it is."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in list(_own()):
        madvise(start, end - start, _MADV_COLLAPSE)


def _own() -> Iterator[tuple[int, int]]:
    """List what is written to and stands in no file, as far as whole huge pages fit in."""
    for line in _MAPS.read_text().splitlines():
        place, rights, _, _, inode, *name = line.split()
        if rights != "rw-p" or inode != "0" or name not in ([], ["[heap]"]):
            continue
        start, end = (int(bound, 16) for bound in place.split("-"))
        start, end = -(-start // _SIZE) * _SIZE, end // _SIZE * _SIZE
        if start < end:
            yield start, end
