"""Workers that stand still while one is timed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.wild.neighbours import children_of, resume_children

TIMED = """
import os
from benchmarks.wild.neighbours import children_of, still_neighbours
with still_neighbours():
    for pid in children_of(os.getppid()):
        print(pid, open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0])
"""


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_neighbours_stop_while_one_is_timed_and_go_on_afterwards() -> None:
    """Another child of the same parent is stopped within the block, and is not when the block has ended."""
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            text = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, check=True).stdout
            assert f"{other.pid} T" in text
            assert other.pid in children_of(os.getpid())
            assert _state(other.pid) != "T"
            other.send_signal(signal.SIGSTOP)
            resume_children()
            assert _state(other.pid) != "T"
        finally:
            other.kill()
