"""What a sandbox sees of this machine: the folders of its private root, and the device nodes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import tools
from tools.errors import MachineError
from tools.machine_code import compilers
from tools.profiling.nvml import opened_nvml

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
)
_GPU_TREES = ("/sys", "/etc/nvidia", "/etc/OpenCL", "/run/nvidia-persistenced", "/opt/nvidia", "/usr/local/nvidia")
_GPU_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps")


def readable_trees(*, gpu: bool) -> tuple[str, ...]:
    """List the folders a private root shows: the system's, Python's, and those that hold torch and triton; outer ones first."""
    trees = {Path(tree) for tree in (*_SYSTEM, sys.prefix, sys.base_prefix)}
    for package in ("torch", "triton", "numpy"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            trees.add(Path(spec.origin).parent.parent)
    trees |= _compiler_trees()
    if gpu:
        trees |= {Path(tree) for tree in (*_GPU_TREES, *os.environ.get("LD_LIBRARY_PATH", "").split(":")) if tree}
    return tuple(str(tree) for tree in sorted(trees, key=lambda tree: len(tree.parts)) if tree.is_absolute())


def hidden_trees(readable: Sequence[str]) -> tuple[str, ...]:
    """List what of those folders no sandbox shows: this project, where it is installed or cloned below one of them.

    So a candidate sees the same wherever the project lies: the system, Python's environment, and the empty folders on the way to that.
    """
    own = Path(tools.__file__).resolve().parents[1]
    return (str(own),) if any(Path(tree) in own.parents for tree in readable) and str(own) not in readable else ()


def _compiler_trees() -> set[Path]:
    """Installation prefixes of the compilers: those that Triton calls to build a kernel's launcher, and CUDA's."""
    named = (os.environ.get("CC"), os.environ.get("CXX"), "gcc", "g++", "clang", "cc")
    found = (shutil.which(name) for name in named if name)
    trees = {Path(place).parent.parent for path in found if path for place in (path, Path(path).resolve())}
    home = compilers.cuda_home()
    return trees | ({Path(home), Path(home).resolve()} if home else set())


@cache
def device_nodes(device: int) -> tuple[str, ...]:
    """List the nodes by which one NVIDIA device is used, and no other; MachineError without a driver."""
    nvml = opened_nvml()
    if nvml is None:
        raise MachineError(f"There is no NVIDIA driver for GPU {device} here.", "Look at it with nvidia-smi.")
    # NVML's order is PCI order, as the environment asks CUDA to count; nodes carry minor numbers
    minor = nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByIndex(device))
    return (*_GPU_NODES, f"/dev/nvidia{minor}")
