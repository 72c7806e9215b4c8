"""Makes functions of texts: one that differs from another in its values alone is compiled once."""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any


def function_of(text: str, name: str, values: dict[str, Any]) -> Any:
    """Give the function `name` that a text defines, which finds `values` by their names."""
    exec(_compiled(text), values)  # noqa: S102 - texts of this package's own: what a caller named stands in them as literals
    return values[name]


@functools.lru_cache(512)
def _compiled(text: str) -> CodeType:
    return compile(text, "<kernelwright>", "exec")
