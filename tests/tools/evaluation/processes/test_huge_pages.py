"""A process's memory in huge pages: what is in it stays, and its forks copy less."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.evaluation.processes.huge_pages import BORN_HUGE

ROOT = Path(__file__).parents[4]
HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
KERNEL = tuple(map(int, os.uname().release.split(".")[:2]))
FILLED = """
import re, sys
from pathlib import Path
from tools.evaluation.processes import huge_pages

def huge_mb():
    return int(re.search(r"AnonHugePages: *(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) >> 10

held = [bytes([number % 251]) * 1000 for number in range(16_000)]
before = huge_mb()
if "collapse" in sys.argv:
    huge_pages.collapse()
print(before, huge_mb(), all(one == bytes([number % 251]) * 1000 for number, one in enumerate(held)))
"""
pytestmark = pytest.mark.skipif(not HUGE.exists() or KERNEL < (6, 1), reason="this machine's kernel collapses no memory")


def _run(environment: dict[str, str], *words: str) -> tuple[int, int, str]:
    done = subprocess.run(
        [sys.executable, "-c", FILLED, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    before, after, same = done.stdout.split()
    return int(before), int(after), same


def test_memory_moves_and_its_contents_stay() -> None:
    """Most of 16 MB is in huge pages afterwards, and holds what it held."""
    before, after, same = _run({"PATH": os.environ["PATH"]}, "collapse")

    assert after - before >= 12
    assert same == "True"


@pytest.mark.skipif("[madvise]" not in HUGE.read_text() if HUGE.exists() else True, reason="here all get huge pages, or none")
def test_a_program_that_asks_for_it_begins_with_huge_pages() -> None:
    """Where the machine gives huge pages to who asks, malloc does."""
    before, _, _ = _run({"PATH": os.environ["PATH"]} | BORN_HUGE)

    assert before >= 12
