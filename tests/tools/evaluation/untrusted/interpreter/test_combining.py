"""Reductions and scans of the interpreter by a function of the candidate's."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter

from tools.evaluation.untrusted.interpreter.combining import _reduced, _scanned

OPS: Any = interpreter


def _block(values: np.ndarray) -> Any:
    return tl.tensor(OPS.TensorHandle(values, tl.float32), tl.block_type(tl.float32, list(values.shape)))


def _each(function: Callable[..., Any]) -> Any:
    """A combine function on blocks, by numpy."""

    def combine(*blocks: Any) -> Any:
        made = function(*(block.handle.data for block in blocks))
        return tuple(map(_block, made)) if isinstance(made, tuple) else _block(made)

    return SimpleNamespace(fn=combine)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_keeps_the_order_of_its_operands(axis: int) -> None:
    """Functions compose in order, which does not commute: here x → a x + b, as pairs."""
    scale, shift = np.random.default_rng(0).uniform(0.5, 1.5, (2, 8, 16)).astype(np.float32)
    combine = _each(lambda a, b, c, d: (a * c, b * c + d))
    made = _reduced(OPS.ReduceOps(axis, combine, False), (_block(scale), _block(shift)))
    total = np.zeros_like(np.take(scale, 0, axis))
    for place in range(scale.shape[axis]):
        total = total * np.take(scale, place, axis) + np.take(shift, place, axis)
    assert np.allclose(made[1].handle.data, total, rtol=1e-5)


def test_a_reduction_of_everything_is_a_scalar() -> None:
    """Without an axis one number is left, or with kept dimensions a block of one."""
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    for keep, shape in ((False, ()), (True, (1, 1))):
        [made] = _reduced(OPS.ReduceOps(None, _each(np.maximum), keep), (_block(values),))
        assert made.handle.data.max() == 31
        assert tuple(int(size) for size in made.shape) == shape


def test_a_scan_rounds_as_a_tree_does() -> None:
    """A long constant row, the worst of a sequential sum, stays within a few roundoffs of float64."""
    values = np.full((2, 4096), np.float32(1.1))
    [made] = _scanned(OPS.ScanOps(1, _each(np.add), False), (_block(values),))
    exact = np.cumsum(values.astype(np.float64), axis=1)
    assert np.abs(made.handle.data / exact - 1).max() < 12 * 2.0**-24
