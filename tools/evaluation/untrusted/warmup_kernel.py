"""The kernel that warms a zygote up."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def copy(source, target, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803 - Triton's own form
    """Copy `n` elements."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # type: ignore[no-untyped-call]
    tl.store(target + index, tl.load(source + index, mask=index < n), mask=index < n)  # type: ignore[no-untyped-call]
