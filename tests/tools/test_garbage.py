"""How often Python looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tools.garbage import SELDOM, USUAL, look_as_usual, look_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave this worker's own thresholds as they were."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_is_looked_for_seldom_or_as_usual() -> None:
    """Commands look seldom; one that holds tensors with contents goes back to what this Python had."""
    look_seldom()
    assert gc.get_threshold() == SELDOM
    look_as_usual()
    assert gc.get_threshold() == USUAL
