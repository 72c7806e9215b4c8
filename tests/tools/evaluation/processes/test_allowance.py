"""A candidate's own time: what it computes and sleeps through is charged, what it waits for a core is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tools.evaluation.processes.allowance import Allowance, StarvedError
from tools.evaluation.processes.child import DeadlineError
from tools.evaluation.processes.own_time import Usage, usage_of

CHILD: Any = SimpleNamespace(pid=1)


def never(moment: float) -> None:
    """Wait in vain, as for a child that does not answer."""
    time.sleep(max(0.0, moment - time.monotonic()))
    raise DeadlineError


def waited(allowance: Allowance) -> type[DeadlineError]:
    """Wait for a child that never answers, and say how that ended."""
    allowance.begin(CHILD)
    with pytest.raises(DeadlineError) as ended:
        allowance.wait(never)
    return ended.type


def test_waiting_for_a_core_costs_nothing() -> None:
    """A process that would run and is not let is not charged: only the backstop ends it, which blames the machine."""
    allowance = Allowance(0.05, backstop_s=0.25, usage=lambda _: Usage(0.0, awake=True))

    assert waited(allowance) is StarvedError
    assert allowance.spent_s == 0
    assert "too busy" in allowance.starved()


def test_computing_is_charged_by_the_processor() -> None:
    """What a process computed counts, however long that took by the clock."""
    used = iter([3.0, 3.1, 3.2, 9.0])
    allowance = Allowance(5.0, backstop_s=60.0, usage=lambda _: Usage(next(used), awake=True))

    assert waited(allowance) is DeadlineError
    assert allowance.spent_s == pytest.approx(6.0)
    assert "--timeout" in allowance.overrun()


def test_sleeping_is_charged_by_the_clock() -> None:
    """A process in which nothing is awake uses its time up by sleeping, and that is said."""
    allowance = Allowance(0.2, backstop_s=60.0, usage=lambda _: Usage(0.0, awake=False))

    assert waited(allowance) is DeadlineError
    assert allowance.asleep_s == pytest.approx(allowance.spent_s)


def test_a_child_that_has_answered_does_not_pay_for_being_kept_waiting() -> None:
    """Between an answer and the next order a runner sleeps, and the supervisor may be slow."""
    allowance = Allowance(0.2, usage=lambda _: Usage(1.0, awake=False))
    allowance.begin(CHILD)
    time.sleep(0.05)

    assert allowance.charge() == 0


def test_usage_is_of_the_whole_tree() -> None:
    """A grandchild's work counts, and one that sleeps is not awake."""
    spin = "import os, time\nif os.fork() == 0:\n while time.process_time() < 0.1: pass\n time.sleep(60)\nprint(flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-S", "-c", spin], stdout=subprocess.PIPE, process_group=0) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            deadline = time.monotonic() + 20
            while ((found := usage_of(process.pid)) is None or found.processor_s < 0.05 or found.awake) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert found is not None
            assert found.processor_s >= 0.05
            assert not found.awake
        finally:
            os.killpg(process.pid, 9)


def test_nothing_is_known_of_a_process_that_is_gone() -> None:
    """No such process has no usage."""
    assert usage_of(2**22 + 5) is None


def test_processes_may_end_while_they_are_looked_at() -> None:
    """A tree whose children end between two looks is read all the same."""
    forks = "import os\nwhile True:\n pid = os.fork()\n if not pid: os._exit(0)\n os.waitpid(pid, 0)"
    with subprocess.Popen([sys.executable, "-S", "-c", forks]) as process:
        try:
            assert all(usage_of(process.pid) for _ in range(1000))
        finally:
            process.kill()
