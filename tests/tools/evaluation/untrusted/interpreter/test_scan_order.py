"""Scans in the order of a device."""

from __future__ import annotations

import numpy as np
import pytest

from tools.evaluation.untrusted.interpreter.scan_order import tree_scan


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 17)])
@pytest.mark.parametrize("axis", [0, -1])
def test_it_scans_integers_exactly(shape: tuple[int, ...], axis: int) -> None:
    """On integers, where no order rounds, it gives what a sequential scan gives."""
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 7 + 1
    assert (tree_scan(values, axis, np.add) == np.cumsum(values, axis=axis)).all()


def test_its_rounding_is_that_of_a_tree() -> None:
    """On a long constant row, the worst case of a sequential float32 sum, it stays within a few roundoffs of float64."""
    values = np.full(4096, np.float32(1.1))
    exact = np.cumsum(values.astype(np.float64))
    tree = np.abs(tree_scan(values, 0, np.add) / exact - 1).max()
    sequential = np.abs(np.cumsum(values) / exact - 1).max()
    assert tree < 12 * 2.0**-24 < sequential
