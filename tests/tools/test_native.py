"""What outlives the threads that trace."""

from __future__ import annotations

import threading

import pytest
import torch

from tools.native import lasting_guard


def test_what_torch_ties_to_a_thread_is_tied_to_one_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for a missing device is made in a thread that is still there when the thread that asked for it has ended."""
    makers: list[threading.Thread] = []
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: makers.append(threading.current_thread()))
    asking = threading.Thread(target=lasting_guard.__wrapped__)
    asking.start()
    asking.join()
    assert len(makers) == 1
    assert makers[0] is not asking
    assert makers[0].is_alive()
    assert makers[0].daemon
