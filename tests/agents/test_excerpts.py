"""Kernels cut out of a source, for memory."""

from __future__ import annotations

from agents.sources.triton import kernel_excerpt

SOURCE = """import triton


@triton.jit
def one(x):
    pass


@triton.jit
def two(x):
    return x


class ModelNew: ...
"""


def test_an_excerpt_has_the_region_s_kernels_whole() -> None:
    """The kernels that a region names are cut out with their decorators; where it names none, all are; none is cut in half."""
    assert kernel_excerpt(SOURCE, "two", 1000) == "@triton.jit\ndef two(x):\n    return x"
    assert kernel_excerpt(SOURCE, "r0", 1000).count("@triton.jit") == 2
    assert kernel_excerpt(SOURCE, "r0", 40) == "@triton.jit\ndef one(x):\n    pass"
    assert kernel_excerpt("def (", "one", 1000) == ""
