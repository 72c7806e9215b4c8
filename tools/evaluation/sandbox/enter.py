"""Walks a process into its sandbox; called in the forked child, before it meets any candidate code."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from pathlib import Path

from tools.evaluation.sandbox import landlock, seccomp, syscalls
from tools.evaluation.sandbox.isolation import Box
from tools.evaluation.wire.defences import Defence, Defences

SCRATCH = Path("/scratch")
"""Where scratch is inside a private root."""

_PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PR_SET_DUMPABLE = 4


def unshare(box: Box) -> None:
    """Join the control group and leave the machine's namespaces; the next fork is the first process of the new ones."""
    for file in box.groups:
        Path(file).write_text("0")
    if not box.isolation.namespaces:
        return
    if box.isolation.user_namespace:
        uid, gid = os.getuid(), os.getgid()
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{box.uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{box.uid} {gid} 1")
    syscalls.unshare(_namespaces(box.missing))


def _namespaces(missing: Defences) -> int:
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUTS
    if missing.isdisjoint([Defence.OWN_PROCESSES, Defence.END_OF_TREE]):
        flags |= syscalls.CLONE_NEWPID
    if Defence.OWN_NETWORK not in missing:
        flags |= syscalls.CLONE_NEWNET
    if Defence.OWN_IPC not in missing:
        flags |= syscalls.CLONE_NEWIPC
    return flags


def enter(box: Box) -> Path:
    """Build the walls around the calling process for good and return its scratch folder."""
    isolation = box.isolation
    scratch = Path(box.scratch)
    # whatever the launcher's is: another user is to pass through the folders that are made here
    os.umask(0o022)
    if isolation.namespaces:
        syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        if isolation.files == "private":
            _private_root(box)
            scratch = SCRATCH
        else:
            syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    os.chdir(scratch)
    if isolation.loopback:
        syscalls.raise_loopback()
    _limit(box)
    if isolation.other_user:
        os.setgroups([])
        os.setresgid(box.uid, box.uid, box.uid)
        os.setresuid(box.uid, box.uid, box.uid)
    syscalls.prctl(_PR_SET_DUMPABLE, 1)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    syscalls.prctl(syscalls.PR_CAP_AMBIENT, syscalls.PR_CAP_AMBIENT_CLEAR_ALL)
    syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if isolation.landlock or isolation.files == "landlock":
        landlock.restrict((Path("/"),), (scratch, Path("/dev/null"), Path("/dev/shm")))  # noqa: S108 - its own, or refused by the mode
    if isolation.seccomp:
        seccomp.install(loopback=isolation.loopback)
    os.environ.clear()
    os.environ.update(box.environment | _homes(scratch))
    tempfile.tempdir = None
    return scratch


def _homes(scratch: Path) -> dict[str, str]:
    home = str(scratch)
    names = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")
    return dict.fromkeys(names, home) | {"USER": "kernel", "LOGNAME": "kernel", "TRITON_CACHE_DIR": f"{home}/triton"}


def _limit(box: Box) -> None:
    limits = box.limits
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    # without an own user the count would be of all the launching user's processes
    if box.isolation.other_user or box.isolation.user_namespace:
        bounds[resource.RLIMIT_NPROC] = limits.processes
    if limits.memory_bytes:
        bounds[resource.RLIMIT_DATA] = limits.memory_bytes
    for kind, value in bounds.items():
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def _private_root(box: Box) -> None:
    """Mount a new root that holds only the listed trees, fresh /proc, /dev and scratch, and leave the old one."""
    root = Path(box.scratch)
    owner = f"uid={box.uid},gid={box.uid}"
    syscalls.mount("root", root, "tmpfs", syscalls.MS_NOSUID, "mode=0755,size=1m")
    (root / "dev").mkdir(exist_ok=True)
    for device in (*_PLAIN_DEVICES, *box.devices):
        _bind(root, Path(device), readonly=False)
    for name, size, mode in (
        ("scratch", box.limits.scratch_bytes, "0700"),
        ("dev/shm", box.limits.scratch_bytes, "1777"),
        ("tmp", 1 << 24, "1777"),
    ):
        (root / name).mkdir(exist_ok=True)
        if name == "dev/shm" and Defence.PRIVATE_MEMORY_FILES in box.missing:
            syscalls.mount("/dev/shm", root / name, None, syscalls.MS_BIND)  # noqa: S108 - the machine's own, on purpose
            continue
        syscalls.mount(name, root / name, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, f"mode={mode},size={size},{owner}")
    # after the writable folders: Python itself may live in one of them
    for tree in sorted({*map(Path, box.readable), *map(Path, box.hidden)}, key=lambda tree: len(tree.parts)):
        if str(tree) in box.hidden:
            _hide(root, tree)
        else:
            _bind(root, tree, readonly=True)
    (root / "proc").mkdir()
    syscalls.mount("proc", root / "proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    old = root / "old"
    old.mkdir()
    syscalls.pivot_root(root, old)
    os.chdir("/")
    syscalls.umount("/old")
    Path("/old").rmdir()
    syscalls.mount("root", "/", None, syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | syscalls.MS_NOSUID)


def _hide(root: Path, path: Path) -> None:
    """Lay an empty folder over `path`, as far as it is below `root`."""
    target = root / path.relative_to("/")
    if target.is_dir():
        syscalls.mount("hidden", target, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=0755,size=64k")


def _bind(root: Path, path: Path, *, readonly: bool) -> None:
    """Show `path` at the same place below `root`; links stay links."""
    target = root / path.relative_to("/")
    if target.exists() or target.is_symlink() or not path.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
        return
    if path.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    syscalls.mount(str(path), target, None, syscalls.MS_BIND | (syscalls.MS_REC if path.is_dir() else 0))
    if readonly:
        syscalls.make_readonly(target)
