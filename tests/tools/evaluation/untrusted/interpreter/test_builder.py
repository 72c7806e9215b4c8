"""What the interpreter's builder does otherwise than Triton's."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tools.evaluation.untrusted.interpreter.builder import ShortFloatBuilder

OPS: Any = interpreter


def test_a_comparison_of_numbers_is_a_mask_of_a_block() -> None:
    """What says once whether a whole block is read may stand beside what says it of each element."""
    builder = ShortFloatBuilder()
    said = builder.create_icmpSGE(OPS.TensorHandle(np.array([31], np.int32), tl.int32), OPS.TensorHandle(np.array([0], np.int32), tl.int32))
    spread = builder.create_splat(tl.block_type(tl.int1, [8]), said)
    mask = builder.create_and(OPS.TensorHandle(np.arange(8) < 4, tl.int1), spread)
    assert mask.data.dtype == np.bool_
    assert mask.data.tolist() == [True] * 4 + [False] * 4


def test_powers_near_one_are_rounded_to_nearest() -> None:
    """What multiplies hundreds of them adds up their errors, and numpy's own are a tenth of an ulp too small on average."""
    given = -np.random.default_rng(0).random(100_000, np.float32) * np.float32(4e-6)
    for make, exact in ((ShortFloatBuilder().create_exp2, np.exp2), (ShortFloatBuilder().create_exp, np.exp)):
        found = make(OPS.TensorHandle(given, tl.float32)).data
        off = (found.astype(np.float64) - exact(given.astype(np.float64))) / 2.0**-24
        assert found.dtype == np.float32
        assert abs(off).max() <= 0.5
        assert abs(off.mean()) < 0.01
