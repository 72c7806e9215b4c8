"""How many processor cores there are for this process."""

from __future__ import annotations

import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time that a container may use, and in how many: Linux's control groups, version 2."""


def usable_cores(quota: Path = QUOTA) -> int:
    """Count the cores that this process may use: fewer than the machine has under Slurm, taskset, or in a container; at least 1."""
    cores = len(os.sched_getaffinity(0))
    try:
        limit, period = quota.read_text().split()
        cores = min(cores, round(int(limit) / int(period)))
    except (OSError, ValueError):
        # no limit is set, or none can be read
        pass
    return max(1, cores)
