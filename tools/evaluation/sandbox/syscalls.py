"""The few Linux calls that Python does not offer: namespaces, mounts, capabilities, process options."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 0x1
_MOUNT_ATTR_NOSUID = 0x2
# the number of mount_setattr(2) is the same on every architecture
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def machine() -> str:
    """Name the processor architecture as the kernel does, e.g. `x86_64`."""
    return platform.machine()


def checked(result: int, what: str) -> int:
    """Return `result`, or raise OSError with errno where it is -1."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a raw system call."""
    return checked(int(_libc.syscall(ctypes.c_long(number), *arguments)), f"syscall {number}")


def unshare(flags: int) -> None:
    """Move the calling process into new namespaces."""
    checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def prctl(option: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> None:
    """Set an option of the calling process."""
    arguments = (ctypes.c_ulong(value) for value in (first, second, third, fourth))
    checked(_libc.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def mount(source: str, target: Path | str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
    """Mount `source` at `target`."""
    filesystem = kind.encode() if kind else None
    result = _libc.mount(source.encode(), str(target).encode(), filesystem, ctypes.c_ulong(flags), data.encode() or None)
    checked(result, f"mount {target}")


def umount(target: Path | str) -> None:
    """Detach the mount at `target`."""
    checked(_libc.umount2(str(target).encode(), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def make_readonly(target: Path | str) -> None:
    """Make every mount at and below `target` read-only, without set-uid programs (Linux 5.12)."""
    attr = _MountAttr(_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    syscall(
        _SYS_MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(str(target).encode()),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attr),
        ctypes.c_size_t(ctypes.sizeof(attr)),
    )


def pivot_root(new: Path | str, old: Path | str) -> None:
    """Make `new` the root and put the old one at `old`."""
    syscall(_SYS_PIVOT_ROOT[machine()], ctypes.c_char_p(str(new).encode()), ctypes.c_char_p(str(old).encode()))


def raise_loopback() -> None:
    """Switch the loopback interface of the calling process's network namespace on; it must be its own, and the caller its root."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING))


def drop_capabilities() -> None:
    """Give up every capability of the calling thread."""
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapData * 2)()
    syscall(_SYS_CAPSET[machine()], ctypes.byref(header), ctypes.byref(data))
