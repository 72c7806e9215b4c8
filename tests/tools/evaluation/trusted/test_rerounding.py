"""Rounding otherwise: by one unit at most, up as well as down, and only where an operator rounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tools.evaluation.trusted.numerics import ROUNDOFF
from tools.evaluation.trusted.rerounding import OutOfRangeError, Rerounded, rerounded

X = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
PLACES = torch.arange(999, -1, -1)
EXACT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "views": lambda x: x.T[5:].reshape(-1, 4, 1)[:, 1],
    "copies": lambda x: torch.cat([x.flip(0), x.clone()]).contiguous(),
    "choices": lambda x: x.relu().clamp(max=1.0).maximum(-x).amax(-1),
    "places": lambda x: x[:, PLACES].gather(1, PLACES.expand(4, -1)).sort().values,
    "wider formats": lambda x: x.double(),
    "writes": lambda x: torch.zeros(4, 1000).copy_(x).index_put_((torch.tensor([1]),), x[0]).masked_fill_(x > 1, 2.0),
    "comparisons": lambda x: (x > 0.5) | x.isnan(),
}
ROUNDING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "products": lambda x: x * 3,
    "sums": lambda x: torch.zeros(4, 1000).index_add(1, PLACES, x),
    "written": lambda x: x.clone().mul_(3),
    "shorter formats": lambda x: x.bfloat16(),
    "gathered": lambda x: torch.zeros(4, 1000).index_put_((torch.tensor([0, 1, 2, 3]),), x * 1, accumulate=True),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x) * 1.5),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_number_moves_to_a_neighbour_or_stays(dtype: torch.dtype) -> None:
    """A quarter of them move, as many up as down, and none by more than two roundoffs."""
    value = X.to(dtype)
    moved = rerounded(value).double() - value.double()
    unit = 2 * ROUNDOFF[str(dtype).removeprefix("torch.")]
    assert float((moved.abs() / value.double().abs()).max()) <= unit
    for way in (moved > 0, moved < 0):
        assert 0.08 < float(way.double().mean()) < 0.17


def test_what_is_exact_or_no_number_stays() -> None:
    """Zero and a count have no neighbour that another rounding gives."""
    value = torch.tensor([0.0, -0.0, 3.0, -1024.0, float("inf"), float("-inf"), float("nan")]).repeat(100)
    assert torch.equal(rerounded(value).nan_to_num(7.0), value.nan_to_num(7.0))


@pytest.mark.parametrize("name", EXACT)
def test_what_rounds_nothing_is_left(name: str) -> None:
    """Operators that move, choose or compare give what they give, to the last bit."""
    with Rerounded():
        found = EXACT[name](X)
    assert torch.equal(found, EXACT[name](X))


@pytest.mark.parametrize("name", ROUNDING)
def test_what_rounds_is_moved(name: str) -> None:
    """Floats that come of arithmetic are rounded otherwise, those too that are written into what there was."""
    with Rerounded():
        found = ROUNDING[name](X)
    assert 0.1 < float((found != ROUNDING[name](X)).double().mean()) < 0.5


def test_what_was_not_written_to_is_left() -> None:
    """Of a tensor that an operator adds to in some places the others are not rounded once more."""
    with Rerounded():
        found = X.clone().index_add_(1, torch.arange(500), X[:, :500])
    assert torch.equal(found[:, 500:], X[:, 500:])
    assert not torch.equal(found[:, :500], X[:, :500] * 2)


@pytest.mark.parametrize("made", [lambda x: x.long(), lambda x: torch.bucketize(x, x[0].sort().values)])
def test_numbers_that_become_indices_are_refused(made: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Rounded otherwise one may be out of range, which ends a CUDA context."""
    with pytest.raises(OutOfRangeError), Rerounded():
        made(X)
