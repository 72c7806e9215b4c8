"""Which plans nobody should act on, by their outputs' memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.evaluation.wire.launch_plan import OutputPlace
from tools.evaluation.wire.plan_faults import are_apart
from tools.records import TensorSpec

VIEWS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), max_size=3)
"""Dimensions of a view: size and stride."""


def spec(shape: Sequence[int]) -> TensorSpec:
    """An output of float32."""
    return TensorSpec(name="out", dtype="float32", shape=tuple(shape))


def place(offset: int, strides: Sequence[int]) -> OutputPlace:
    """An output of float32 from an element on."""
    return OutputPlace(buffer=0, offset=4 * offset, strides=tuple(strides))


def touched(offset: int, dims: Sequence[tuple[int, int]]) -> set[int]:
    """Every element of a view."""
    return {offset + sum(steps) for steps in itertools.product(*([index * stride for index in range(size)] for size, stride in dims))}


@given(st.integers(0, 30), VIEWS, st.integers(0, 30), VIEWS)
def test_views_that_share_an_element_are_never_said_to_be_apart(
    one: int, its_dims: list[tuple[int, int]], other: int, dims: list[tuple[int, int]]
) -> None:
    """Whatever their strides: of one element, of equal strides, with repeats."""
    (its_shape, its_strides), (shape, strides) = ([[dim[at] for dim in each] for at in (0, 1)] for each in (its_dims, dims))
    if are_apart(place(one, its_strides), spec(its_shape), place(other, strides), spec(shape)):
        assert not touched(one, its_dims) & touched(other, dims)


@pytest.mark.parametrize(
    ("offset", "its_shape", "shape"),
    [(8 * 16, (2, 8, 16), (2, 24, 16)), (4, (2, 32, 4), (2, 32, 12)), (0, (2, 0, 16), (2, 32, 16))],
    ids=["rows", "columns", "empty"],
)
def test_parts_of_a_result_that_is_split_are_apart(offset: int, its_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Attention over words and picture gives each its part of one tensor: such a kernel was not sealed."""
    strides = (32 * 16, 16, 1)
    assert are_apart(place(0, strides), spec(its_shape), place(offset, strides), spec(shape))
    assert are_apart(place(offset, strides), spec(shape), place(0, strides), spec(its_shape))
