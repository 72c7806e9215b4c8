"""Which software is here: what decides, beside the device, how fast a kernel is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from tools.profiling.nvml import driver_version


def versions(*packages: str) -> dict[str, str]:
    """Give the versions of Python, of the system's kernel, of those `packages` that are installed, and of the driver if there is one."""
    found = {"python": platform.python_version(), "kernel": os.uname().release} | installed(*packages)
    driver = driver_version()
    return found | ({"driver": driver} if driver else {})


def installed(*packages: str) -> dict[str, str]:
    """Give the versions of those `packages` that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
