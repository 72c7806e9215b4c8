"""One court for all hostile kernels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.hacks.court import Court
from tools.hardware.devices import first_device


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """A court without a GPU."""
    made = Court(tmp_path_factory.mktemp("hacks"))
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="session")
def gpu_court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """A court of the first GPU."""
    made = Court(tmp_path_factory.mktemp("hacks"), first_device())
    yield made
    asyncio.run(made.close())
