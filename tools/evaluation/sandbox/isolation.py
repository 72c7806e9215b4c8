"""Which walls a sandbox has, and the limits inside them: plain records that travel to the process that builds the walls."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.evaluation.wire.defences import NONE, Defences
from tools.records import Record


class Isolation(Record):
    """The walls around one untrusted process."""

    user_namespace: bool = False
    """The launcher is not root and becomes it in a user namespace of its own first."""
    namespaces: bool = True
    """Own mounts, network, IPC, host name and processes."""
    files: Literal["private", "landlock", "shared"] = "private"
    """`private`: a root of its own with read-only system folders; `landlock`: read-only but for scratch; `shared`: ordinary permissions."""
    landlock: bool = False
    """Landlock on top of a private root."""
    other_user: bool = True
    """Runs under a user id of its own without privileges."""
    seccomp: bool = True
    """System calls are filtered."""
    group: bool = False
    """A control group bounds memory and processes of the whole sandbox."""
    loopback: bool = False
    """Its network namespace has a loopback interface, and sockets may be made on it: Nsight Compute's two halves talk by it."""

    @property
    def sentence(self) -> str:
        """Say in words what was in force."""
        walls = []
        if self.namespaces:
            walls.append(
                "own mount, network, process, IPC and host-name namespaces" + (" in a user namespace" if self.user_namespace else "")
            )
        walls.append(
            {
                "private": "a private root with read-only system folders",
                "landlock": "files read-only but for scratch (Landlock)",
                "shared": "files by ordinary permissions only",
            }[self.files]
        )
        if self.landlock:
            walls.append("Landlock")
        walls.append("another user" if self.other_user else "the same user")
        walls.append("no new privileges")
        walls.append("seccomp deny list" if self.seccomp else "no seccomp filter")
        if self.loopback:
            walls.append("internet sockets on a loopback interface of its own alone")
        walls.append("limits on memory, processes, files and time" + (", by a control group too" if self.group else ""))
        weak = "" if self.namespaces or self.files == "landlock" else "Crash isolation only: "
        return weak + ", ".join(walls)


class Limits(Record):
    """What one untrusted process may use."""

    memory_bytes: int = 0
    """Private memory of each process, bytes; 0 means no limit (CUDA reserves far more than it uses)."""
    total_bytes: int = 8 << 30
    """Memory of the whole sandbox, shared memory and scratch included, where a control group can bound it."""
    processes: int = 256
    """Processes and threads together."""
    file_bytes: int = 1 << 30
    """Largest file it may write."""
    scratch_bytes: int = 1 << 30
    """All files in scratch together, where scratch is its own file system."""
    open_files: int = 1024


class Box(Record):
    """Everything the launcher needs to build the walls around one process."""

    isolation: Isolation
    limits: Limits
    uid: int
    """User id inside (and outside, where the launcher is root)."""
    scratch: str
    """A folder on this machine made for this process alone; its mount point or its scratch itself."""
    readable: tuple[str, ...]
    """Trees that a private root holds, read-only; deeper ones may lie below those that are hidden."""
    hidden: tuple[str, ...] = ()
    """Folders of those trees that are empty in it."""
    devices: tuple[str, ...] = ()
    """Device nodes it may use, e.g. `/dev/nvidia0`; empty without a GPU."""
    groups: tuple[str, ...] = ()
    """Files to join the sandbox's control group by."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables it gets, and no others."""
    missing: Defences = NONE
    """Walls that a test leaves out."""


PLAIN_UIDS = range(61184, 65520)
"""Ids that systemd reserves for short-lived services, so no person or daemon has one; each running sandbox gets its own."""


def ladder(root: bool, gpu: bool) -> tuple[Isolation, ...]:
    """List the walls to try, strongest first; Landlock breaks CUDA's start (error 304), so a GPU goes without."""
    bottom = Isolation(namespaces=False, files="shared", other_user=root, seccomp=False)
    steps = [
        Isolation(user_namespace=not root, landlock=not gpu, other_user=root),
        Isolation(user_namespace=not root, other_user=root),
        Isolation(user_namespace=not root, files="shared" if gpu else "landlock", other_user=root),
        Isolation(user_namespace=not root, files="shared", other_user=root),
        Isolation(namespaces=False, files="shared" if gpu else "landlock", other_user=root),
        Isolation(namespaces=False, files="shared", other_user=root),
        bottom,
    ]
    return tuple(dict.fromkeys(steps))
