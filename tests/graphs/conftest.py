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


@pytest.fixture(scope="session", autouse=True)
def begun_early(request: pytest.FixtureRequest) -> None:
    """Have these processes import beside this folder's first tests, where a test will ask for them."""
    if any("runs" in getattr(item, "fixturenames", ()) and "tests/graphs/" in item.nodeid for item in request.session.items):
        request.getfixturevalue("runs")
