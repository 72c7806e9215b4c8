"""Landlock: a file view without privileges, for where no mount namespace is to be had."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tools.evaluation.sandbox import syscalls

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE | _READ_FILE | _TRUNCATE
# access rights known to each version of the interface: 13 at first, then refer, truncate, (network), ioctl on devices
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Tell which version of the interface the kernel has; 0 where it has none."""
    try:
        return syscalls.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    except OSError:
        return 0


def restrict(readable: tuple[Path, ...], writable: tuple[Path, ...]) -> None:
    """Leave the calling process only these trees (and all it starts); needs no_new_privs; raises OSError where refused."""
    interface = version()
    rights = _RIGHTS[min(interface, 5)]
    # from version 6: no abstract sockets and no signals to processes outside
    ruleset = _Ruleset(rights, 0, 0b11 if interface >= 6 else 0)
    size = 8 if interface < 4 else 16 if interface < 6 else 24
    fd = syscalls.syscall(_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint(0))
    try:
        for paths, access in ((readable, _READ), (writable, rights)):
            for path in paths:
                _allow(fd, path, access & rights)
        syscalls.syscall(_RESTRICT, ctypes.c_int(fd), ctypes.c_uint(0))
    finally:
        os.close(fd)


def _allow(ruleset: int, path: Path, access: int) -> None:
    if not path.exists():
        return
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(access if path.is_dir() else access & _ON_FILES, parent)
        syscalls.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint(0))
    finally:
        os.close(parent)
