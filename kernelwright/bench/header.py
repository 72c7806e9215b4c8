"""What a bench ran on and with: the facts that every figure of its report needs beside it."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time

import kernelwright
from tools.cores import usable_cores
from tools.hardware.detect import device_title
from tools.profiling.nvml import driver_version
from tools.profiling.software import installed
from tools.records import Record

COMMIT_VARIABLE = "KERNELWRIGHT_COMMIT"
"""Names the commit where the code runs away from its repository."""


class Header(Record):
    """Hardware, versions, code and command of one shard."""

    started: str
    """UTC."""
    command: str
    device: str
    """The GPU that was timed; empty where there is none and times are estimated."""
    driver: str
    host: str
    """Processor architecture, cores that the bench might use, system; no host name."""
    versions: dict[str, str]
    commit: str
    """Commit, with `+changes` where files differ from it; empty where neither git nor the variable says."""
    code: str
    """Hash of kernelwright's own Python files: equal for equal code, whatever the commit."""

    def incompatible(self, other: Header) -> list[str]:
        """Name what forbids putting the rows of both into one table."""
        pairs = {"device": (self.device, other.device), "driver": (self.driver, other.driver), "code": (self.code, other.code)}
        pairs |= {name: (self.versions.get(name, ""), other.versions.get(name, "")) for name in ("torch", "triton")}
        return [f"{name} is {one or 'none'} and {two or 'none'}" for name, (one, two) in pairs.items() if one != two]


def read_header(command: str) -> Header:
    """Look at this machine and this code."""
    return Header(
        started=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        command=command,
        device=device_title() or "",
        driver=driver_version() or "",
        host=f"{platform.machine()}, {usable_cores()} cores, {platform.system()} {platform.release()}",
        versions={"kernelwright": kernelwright.__version__, "python": platform.python_version(), **installed("torch", "triton", "numpy")},
        commit=_commit(),
        code=_code(),
    )


def _commit() -> str:
    if told := os.environ.get(COMMIT_VARIABLE):
        return told
    if not (kernelwright.HOME / ".git").exists():
        return ""
    head, changes = (_git(*words) for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--untracked-files=no")))
    return f"{head}+changes" if head and changes else head


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(kernelwright.HOME), *words], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _code() -> str:
    digest = hashlib.sha256()
    for folder in ("kernelwright", *kernelwright.FOLDERS):
        for path in sorted((kernelwright.HOME / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(kernelwright.HOME)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
