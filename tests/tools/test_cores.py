"""How many cores there are to work on."""

import os
from pathlib import Path

from tools.cores import usable_cores


def test_cores_are_those_that_the_process_may_use(tmp_path: Path) -> None:
    """A scheduler that binds a job to one core of many leaves it one."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores(tmp_path / "none") == 1
    finally:
        os.sched_setaffinity(0, before)
    assert usable_cores(tmp_path / "none") == len(before)


def test_a_containers_quota_counts(tmp_path: Path) -> None:
    """Half of a core's time in a period is one core, no limit is all of them."""
    quota = tmp_path / "cpu.max"
    for text, cores in (("50000 100000\n", 1), ("100000 100000\n", 1), ("max 100000\n", len(os.sched_getaffinity(0)))):
        quota.write_text(text)
        assert usable_cores(quota) == cores
