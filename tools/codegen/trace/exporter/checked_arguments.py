"""Tracing without the checks of `torch.distributions`: each reads a number from a tensor, and goes on by it; no kernel has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_checked_arguments() -> Iterator[None]:
    """Have distributions take their parameters and samples as they are, unless one asks for checks itself."""
    from torch.distributions import Distribution

    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)
