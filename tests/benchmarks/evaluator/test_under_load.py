"""What the benchmarks of load and kills complain of, and what they see of a machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.evaluator.leftovers import alive, started_below
from benchmarks.evaluator.processor import counted
from benchmarks.evaluator.under_load import complaints
from benchmarks.kept_rows import Row


def _row(load: int, verdict: str = "PASS", seconds: float = 60.0, processor_s: float | None = None, others: int = 0) -> Row:
    return {
        "operator": "softmax",
        "policy": "exact",
        "load": load,
        "others": others,
        "status": 0,
        "delivered": "a",
        "seconds": seconds,
        "processor_s": processor_s,
        "verdicts": {"a": [verdict]},
    }


def test_other_verdicts_at_another_load_are_told() -> None:
    """The first load is what the others are held against; of time the clock's counts, and beside others' work the processor's."""
    assert complaints([_row(0), _row(4, seconds=900.0)]) == []
    assert complaints([_row(0), _row(8, "TIMED_OUT")]) == ["softmax (exact): verdicts differs at load 8."]
    assert complaints([_row(0, seconds=150.0)]) == ["softmax (exact): 150 s."]
    assert complaints([_row(0, seconds=150.0, processor_s=30.0)]) == ["softmax (exact): 150 s."]
    assert complaints([_row(0, seconds=900.0, processor_s=30.0, others=3)]) == []


def test_whatever_a_command_started_is_counted() -> None:
    """Work of a process that left its parents is in the processor's time of the command."""
    spin = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    ended, _, processor_s = counted(["setsid", "--fork", "--wait", sys.executable, "-S", "-c", spin])
    if processor_s is None:
        pytest.skip("this user may make no control group")
    assert ended.returncode == 0
    assert 0.2 < processor_s < 2.0


def test_a_process_is_alive_until_it_has_ended() -> None:
    """A process below this one is named by its number and its start, and is gone when it is killed, fetched or not."""
    with subprocess.Popen(["sleep", "60"]) as process:
        named = {pid: began for pid, began in started_below(os.getpid()).items() if pid == process.pid}
        assert alive(named) == [process.pid]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert alive(named) == []
