"""Whose turn it is among the pools of a machine."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tools.evaluation.processes.host_turn import HostTurn


def test_others_wait_until_the_last_worker_is_done(tmp_path: Path) -> None:
    """A pool's workers have the turn together; another pool's come when all of them have left."""
    mine, theirs = HostTurn(tmp_path / "turn", 10), HostTurn(tmp_path / "turn", 10)
    order: list[str] = []

    def work() -> None:
        with theirs.had():
            order.append("theirs")

    with mine.had():
        with mine.had():
            other = threading.Thread(target=work)
            other.start()
            time.sleep(0.1)
        order.append("mine")
        time.sleep(0.1)
    other.join(10)
    assert order == ["mine", "theirs"]


def test_who_has_waited_long_enough_goes_on_without(tmp_path: Path) -> None:
    """A pool that keeps its turn for ever stops nobody for longer than they have patience."""
    mine, theirs = HostTurn(tmp_path / "turn", 10), HostTurn(tmp_path / "turn", 0.2)
    with mine.had():
        began = time.monotonic()
        with theirs.had():
            waited = time.monotonic() - began
    assert 0.2 <= waited < 5


def test_without_a_place_for_turns_nobody_waits(tmp_path: Path) -> None:
    """Where the file cannot be opened everybody works at once."""
    mine, theirs = HostTurn(tmp_path / "no" / "turn", 10), HostTurn(tmp_path / "no" / "turn", 10)
    began = time.monotonic()
    with mine.had(), theirs.had():
        assert time.monotonic() - began < 5
