"""Whose turn it is on a device among several processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tools.errors import MachineError
from tools.evaluation.processes.device_lock import DeviceLock
from tools.evaluation.processes.device_turn import DeviceTurn

HOLDER = """
import sys, time
from pathlib import Path
from tools.evaluation.processes.device_turn import DeviceTurn
with DeviceTurn(Path(sys.argv[1])).alone():
    print("there", flush=True)
    time.sleep(60)
"""


def locks(file: Path) -> tuple[DeviceLock, DeviceLock]:
    """Make the locks of two pools on one device."""
    return DeviceLock(2, turn=DeviceTurn(file)), DeviceLock(2, turn=DeviceTurn(file))


def test_nobody_checks_while_another_pool_times(tmp_path: Path) -> None:
    """A check waits until the timing of another pool is over, and says for how long."""
    mine, theirs = locks(tmp_path / "device")
    order, waited = [], []

    def check() -> None:
        with theirs.shared() as stay:
            order.append("checked")
            waited.append(stay.waited_s)

    with mine.alone():
        other = threading.Thread(target=check)
        other.start()
        time.sleep(0.2)
        order.append("timed")
    other.join(10)
    assert order == ["timed", "checked"]
    assert waited[0] > 0.1


def test_checks_of_two_pools_meet(tmp_path: Path) -> None:
    """Checks stay side by side, whichever pool they belong to."""
    mine, theirs = locks(tmp_path / "device")
    began = time.monotonic()
    with mine.shared(), theirs.shared():
        assert time.monotonic() - began < 5


def test_a_process_that_dies_gives_the_device_back(tmp_path: Path) -> None:
    """What was killed while it timed keeps nobody waiting."""
    file = tmp_path / "device"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "there\n"
        began = time.monotonic()
        threading.Timer(0.3, holder.kill).start()
        with DeviceTurn(file, patience_s=30).alone():
            waited = time.monotonic() - began
    assert 0.2 < waited < 20


def test_who_waits_in_vain_is_told_and_times_nothing(tmp_path: Path) -> None:
    """Beside a pool that hangs on the device nothing is timed: the error says what holds it, and the lock is free for another try."""
    file = tmp_path / "device"
    hasty = DeviceLock(2, turn=DeviceTurn(file, patience_s=0.2))
    with DeviceTurn(file).alone():
        for stay in (hasty.alone, hasty.shared):
            with pytest.raises(MachineError, match="has not let go of the GPU"), stay():
                pass
    with hasty.alone():
        pass
