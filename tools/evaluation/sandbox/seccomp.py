"""A seccomp filter: a deny list of system calls that no kernel needs, refused with EPERM."""

from __future__ import annotations

import ctypes
import errno
import socket
import struct

from tools.evaluation.sandbox import syscalls

# By name: (x86_64, aarch64); None where the architecture lacks the call. Numbers from the kernel's syscall tables.
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
}
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_PRCTL = (157, 167)
_AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_X32_BIT = 0x4000_0000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_GREATER_EQUAL = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF_0000
_KILL = 0x8000_0000
_REFUSE = 0x0005_0000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENT0 = 0, 4, 16

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _refuse(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _REFUSE | number)


def _if_call(number: int, body: list[_Instruction]) -> list[_Instruction]:
    """Run `body` where the call has this number; it must end in a return."""
    return [(_LOAD, 0, 0, _OFFSET_NUMBER), (_JUMP_EQUAL, 0, len(body), number), *body]


def _socket_body(families: tuple[int, ...]) -> list[_Instruction]:
    tests = [(_JUMP_EQUAL, len(families) - index, 0, family) for index, family in enumerate(families)]
    return [(_LOAD, 0, 0, _OFFSET_ARGUMENT0), *tests, _refuse(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]


def program(machine: str, *, loopback: bool = False) -> list[_Instruction]:
    """Assemble the filter for `machine`: refuse the list, all sockets but local ones, new user namespaces.

    With `loopback` internet sockets may be made too: for a network namespace that has no other interface.
    """
    column = 0 if machine == "x86_64" else 1
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        code += [(_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT), _refuse(errno.ENOSYS)]
    local = (int(socket.AF_UNIX), int(socket.AF_NETLINK))
    internet = (int(socket.AF_INET), int(socket.AF_INET6)) if loopback else ()
    code += _if_call(_SOCKET[column], _socket_body((*local, *internet)))
    code += _if_call(_SOCKETPAIR[column], _socket_body(local[:1]))
    # glibc falls back to clone, whose flags a filter can read
    code += _if_call(_CLONE3[column], [_refuse(errno.ENOSYS)])
    namespaces = (
        syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC
    ) | syscalls.CLONE_NEWUTS
    code += _if_call(
        _CLONE[column],
        [(_LOAD, 0, 0, _OFFSET_ARGUMENT0), (_JUMP_ANY_BIT, 0, 1, namespaces), _refuse(errno.EPERM), (_RETURN, 0, 0, _ALLOW)],
    )
    # a process must not outlive its warden
    code += _if_call(
        _PRCTL[column],
        [
            (_LOAD, 0, 0, _OFFSET_ARGUMENT0),
            (_JUMP_EQUAL, 0, 1, syscalls.PR_SET_PDEATHSIG),
            _refuse(errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ],
    )
    code.append((_LOAD, 0, 0, _OFFSET_NUMBER))
    denied = sorted(number for pair in _DENIED.values() if (number := pair[column]) is not None)
    code += [(_JUMP_EQUAL, len(denied) - index, 0, number) for index, number in enumerate(denied)]
    return [*code, (_RETURN, 0, 0, _ALLOW), _refuse(errno.EPERM)]


def install(*, loopback: bool = False) -> None:
    """Put the filter on the calling process and all it will start; needs no_new_privs; raises OSError where refused."""
    code = program(syscalls.machine(), loopback=loopback)
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    filter_program = _Program(len(code), packed)
    pointer = ctypes.cast(ctypes.pointer(filter_program), ctypes.c_void_p).value
    assert pointer is not None
    syscalls.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, pointer)
