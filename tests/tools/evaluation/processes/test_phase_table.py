"""How a phase's process begins."""

from __future__ import annotations

import os
import socket

import pytest

from tools.evaluation.processes import phase_table
from tools.evaluation.wire.phase import Phase

QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


@pytest.mark.parametrize(("name", "queues"), [("oracle_server", "1"), ("admission", "1"), ("runner", None), ("baseline", None)])
def test_only_what_is_not_timed_has_one_queue_to_the_device(name: str, queues: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates and baselines have as many as a user's process has: work on several streams runs side by side there."""
    monkeypatch.setenv(QUEUES, "")
    monkeypatch.delenv(QUEUES)
    found: list[str | None] = []
    monkeypatch.setattr(phase_table, "phase_function", lambda _: lambda _: found.append(os.environ.get(QUEUES)))
    here, there = socket.socketpair()
    with here, there:
        phase_table.run(name, Phase(b"", here))
    assert found == [queues]
