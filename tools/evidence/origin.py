"""Where a bundle came from: the version that judged, the command, the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tools
from tools.records import Record

_GIT_S = 10.0
_LOGIN = re.compile(r"//[^/@\s]+@")


class Origin(Record):
    """Facts about the making of a bundle; they are told, and nothing can prove them."""

    kernelwright: str
    """Version; `unknown` where it is not installed."""
    commit: str
    """Commit of the checkout, with `+changes` where files differ from it; empty outside of a checkout."""
    judge: str
    """SHA-256 over the sources of `tools`: equal judges are the same code, commit or not."""
    command: str
    """The command line, without logins in addresses."""
    created: str
    """UTC, ISO 8601."""
    run: str = ""
    """Name of the run; empty for an evaluation by hand."""
    evaluator: str = ""
    """Name of the pool, e.g. `local (GPU 0: NVIDIA H200)`."""
    machine: str
    """Operating system, processor architecture and cores."""

    @classmethod
    def here(cls, run: str = "", evaluator: str = "") -> Origin:
        """Describe this process."""
        return cls(
            kernelwright=_version(),
            commit=_commit(_root()),
            judge=judge(),
            command=_LOGIN.sub("//…@", shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            run=run,
            evaluator=evaluator,
            machine=f"{platform.platform()}, {os.cpu_count()} cores",
        )


def _root() -> Path:
    return Path(tools.__file__).resolve().parents[1]


def _version() -> str:
    try:
        return version("kernelwright")
    except PackageNotFoundError:
        return "unknown"


def _commit(root: Path) -> str:
    """Commit of the checkout in `root`; an installed package may lie inside somebody else's, which is not asked."""
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "HEAD").strip()
        return head + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no").strip() else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=_GIT_S, check=True)
    return done.stdout


@cache
def judge() -> str:
    """Hash the sources of `tools`, which alone decide what is right and how fast."""
    folder = Path(tools.__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
