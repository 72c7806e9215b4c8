"""A loop is traced at few steps only where few steps show what is done at all of them."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import unseen
from tools.codegen.trace.short_lengths import FURTHER, LENGTHS, shortened

DECAYED = """
import torch

ROWS, STEPS = 8, 200

def f(x):
    state, out = {first}, []
    for t in range(x.shape[1]):
        state = 0.9 * state + 0.1 * x[:, t]
        out.append(state)
    return torch.stack(out, 1)

def example_inputs():
    return (torch.randn(ROWS, STEPS),)
"""


@pytest.mark.parametrize(
    ("first", "more"), [("x.mean(1)", 0), ("x[:, :20].mean(1)", FURTHER), ("x[:, -30:].var(1)", FURTHER), ("x[:, :60].mean(1)", None)]
)
def test_a_slice_of_fixed_length_is_seen_where_there_is_more_than_it_takes(first: str, more: int | None) -> None:
    """Five steps of two hundred have no twenty-first: the reference is traced at longer loops, or whole."""
    short = shortened(unseen(DECAYED.format(first=first)), ())
    assert (short and short.at) == (None if more is None else tuple(length + more for length in LENGTHS))
