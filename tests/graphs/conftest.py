"""Runs that can be killed, from two processes that import once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.killed_run import KilledRuns


@pytest.fixture(scope="session")
def runs() -> Iterator[KilledRuns]:
    """Where runs come from that are killed."""
    with KilledRuns() as runs:
        yield runs
