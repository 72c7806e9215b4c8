"""What the benchmarks of load and kills complain of, and what they see of a machine."""

from __future__ import annotations

import os
import subprocess

from benchmarks.evaluator.leftovers import alive, started_below
from benchmarks.evaluator.under_load import Row, complaints


def _row(load: int, verdict: str = "PASS", seconds: float = 60.0) -> Row:
    return {
        "operator": "softmax",
        "policy": "exact",
        "load": load,
        "status": 0,
        "delivered": "a",
        "seconds": seconds,
        "verdicts": {"a": [verdict]},
    }


def test_other_verdicts_at_another_load_are_told() -> None:
    """The first load is what the others are held against; time counts on idle cores alone."""
    assert complaints([_row(0), _row(4, seconds=900.0)]) == []
    assert complaints([_row(0), _row(8, "TIMED_OUT")]) == ["softmax (exact): verdicts differs at load 8."]
    assert complaints([_row(0, seconds=150.0)]) == ["softmax (exact): 150 s on idle cores."]


def test_a_process_is_alive_until_it_has_ended() -> None:
    """A process below this one is named by its number and its start, and is gone when it is killed, fetched or not."""
    with subprocess.Popen(["sleep", "60"]) as process:
        named = {pid: began for pid, began in started_below(os.getpid()).items() if pid == process.pid}
        assert alive(named) == [process.pid]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert alive(named) == []
