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
