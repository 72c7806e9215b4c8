"""Prints what kernels give and how they are refused, first by Triton's interpreter as it comes, then with its shortcuts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch

from tests.tools.evaluation.untrusted.interpreter import shortcut_kernels as kernels
from tools.evaluation.untrusted.interpreter import shortcuts

DTYPES = (torch.float32, torch.float16, torch.int32, torch.int64, torch.uint8)
OPERATIONS = ("add", "sub", "mul", "div", "floordiv", "mod", "less", "equal", "and", "shift", "maximum", "where")
REFUSED = ("sizes", "odd", "fraction", "pointers", "too large", "mask", "negative")


def _inputs(dtype: torch.dtype, count: int, seed: int) -> torch.Tensor:
    return (torch.randn(count, generator=torch.Generator().manual_seed(seed)) * 3).abs().add(1).to(dtype)


def _binary(one: torch.dtype, other: torch.dtype, operation: str) -> torch.Tensor:
    out = torch.zeros(8, 8, dtype=torch.float64)
    launch: Any = kernels.binary[(1,)]
    launch(_inputs(one, 8, 1), _inputs(other, 8, 2), out, OPERATION=operation, N=8)
    return out


def _row() -> torch.Tensor:
    x = _inputs(torch.float32, 3 * 21, 3).view(3, 21)
    out = torch.zeros_like(x)
    launch: Any = kernels.row[(3,)]
    launch(x, out, 21, BLOCK=16)
    return out


def _refused(what: str) -> torch.Tensor:
    out = torch.zeros(8)
    launch: Any = kernels.refused[(1,)]
    launch(_inputs(torch.float32, 8, 4), out, WHAT=what)
    return out


def _told(function: Callable[..., torch.Tensor], *words: Any) -> str:
    try:
        return str(function(*words).numpy().tobytes().hex())
    except Exception as error:
        causes = [error, error.__cause__]
        return "; ".join(f"{type(cause).__name__}: {cause}" for cause in causes)


def told() -> Iterator[tuple[str, str]]:
    """What each kernel gives, or how it is refused."""
    for one, other, operation in product(DTYPES, DTYPES, OPERATIONS):
        yield f"{operation} of {one} and {other}", _told(_binary, one, other, operation)
    yield "a row", _told(_row)
    for what in REFUSED:
        yield f"refused: {what}", _told(_refused, what)


if __name__ == "__main__":
    plain = dict(told())
    shortcuts.install()
    sys.stdout.write(json.dumps({"plain": plain, "shorter": dict(told())}))
