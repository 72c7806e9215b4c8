"""What is published of a candidate whose recorded launches ended otherwise than its own process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.makers import timing
from tools.evaluation.supervisor.checking.correctness import Outcome
from tools.evaluation.supervisor.timed import sealed_session
from tools.evaluation.wire.library_calls import LibraryCall, View, ready
from tools.records import Timing, Verdict


def crash(call: LibraryCall, x: torch.Tensor) -> str:
    """Make a call that was recorded to make something else; give what is said of it."""
    with pytest.raises(ValueError, match="aten") as raised:
        ready(call, lambda view: lambda: x, "cpu", keep=lambda view, made: None)()
    return f"While it was timed: it raised an exception in its forward call: ValueError: {raised.value}"


def published(monkeypatch: pytest.MonkeyPatch, said: str) -> tuple[Outcome | Timing, list[str]]:
    """Publish what a sealed session's crash leaves of a candidate that its own process timed."""
    monkeypatch.setattr(sealed_session, "unsealable", lambda build, request: "")
    case: Any = SimpleNamespace(notes=[], build=None)
    return sealed_session.published(None, case, timing(10.0), Outcome(Verdict.CRASHED, notes=[said])), case.notes  # type: ignore[arg-type]


def test_a_library_that_lays_its_result_otherwise_is_no_crash_of_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention without a GPU was recorded in another layout than the device's: the candidate's own time stays, and says so."""
    lies = View(buffer=0, offset=0, dtype="float32", shape=(2, 3), strides=(3, 1))
    said = crash(LibraryCall(operator="aten.relu.default", arguments=(lies,), results=(lies,)), torch.randn(3, 2).T)
    found, notes = published(monkeypatch, said)
    assert isinstance(found, Timing)
    assert "in strides [1, 2]" in found.unsealed
    assert notes == [f"Not sealed: {found.unsealed}"]


def test_another_crash_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes outside of what is theirs is found out where nothing else is in memory."""
    found, _ = published(monkeypatch, "While it was timed: CUDA error: an illegal memory access was encountered")
    assert isinstance(found, Outcome)
    assert found.verdict is Verdict.CRASHED
