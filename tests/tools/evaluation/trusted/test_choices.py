"""Whole numbers that the reference's own rounding decides may be any that it gives; all others are as strict as ever."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.evaluation.trusted.free_rounding import FreeRounding
from tools.evaluation.trusted.numerics import EXACT, Errors
from tools.evaluation.trusted.tolerance import Tolerance
from tools.evaluation.wire.distributions import AS_MADE
from tools.problems import load_problem

NEAREST = """
import torch


def nearest(x, centres):
    near = (x @ centres.T * -2 + centres.square().sum(1)).argmin(1)
    return near, torch.zeros_like(centres).index_add(0, near, x)


def example_inputs():
    return torch.randn(400, 8), torch.randn(16, 8)
"""
STAGES = """
import torch


def coded(x, centres):
    codes = []
    for stage in range(2):
        near = (x @ centres[stage].T * -2 + centres[stage].square().sum(1)).argmin(1)
        x = x - centres[stage][near]
        codes.append(near)
    return torch.stack(codes, -1), x


def example_inputs():
    return torch.randn(400, 8), torch.randn(2, 16, 8)
"""
"""Residual quantisation: each code is chosen by what the one before leaves."""

LIMITS = [EXACT, Errors(1e-6, 2e-6)]
"""Of the choices, and of what is made by them."""


@pytest.fixture
def given() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Points and centres, of which some points are as near to one as to another; the nearest and the second."""
    torch.manual_seed(0)
    centres = torch.randn(16, 8)
    x = torch.randn(400, 8)
    for place in range(0, 400, 10):
        one, two = ((x[place].double() - centres.double()).square().sum(1)).argsort()[:2]
        middle, way = (centres[one].double() + centres[two]) / 2, (centres[two] - centres[one]).double()
        x[place] -= ((x[place].double() - middle) @ way / way.square().sum() * way).float()
    distances = (x.double()[:, None] - centres.double()).square().sum(-1).argsort(1)
    return x, centres, distances[:, 0], distances[:, 1]


def _sums(x: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    return torch.zeros(16, 8).index_add(0, near, x)


def test_any_choice_of_the_references_roundings_is_right(given: tuple[torch.Tensor, ...], tmp_path: Path) -> None:
    """A point between two centres may be either's, with sums to match; and never another's, nor may one that is nearer to one."""
    x, centres, first, second = given
    (tmp_path / "nearest.py").write_text(NEAREST)
    problem = load_problem(tmp_path / "nearest.py")
    exact, places = _nearest(x, centres), torch.arange(400)
    some = places % 20 == 0
    honest = torch.where(some, torch.where(exact == first, second, first), exact)

    def judged(near: torch.Tensor, sums: torch.Tensor) -> bool:
        (held,) = FreeRounding(Tolerance(problem, {}, "cpu"), lambda: [x.clone(), centres.clone()], AS_MADE).held([[near, sums]], LIMITS)
        return all(map(Errors.within, held.errors, LIMITS))

    assert judged(honest, _sums(x, honest))
    clear = torch.where(places == 5, second, honest)
    third = torch.where(places == 20, next(at for at in range(16) if at not in (first[20], second[20])), honest)
    for hostile in (clear, third):
        assert not judged(hostile, _sums(x, hostile))
    assert not judged(torch.where(some, 16, exact), _sums(x, honest))
    for sums in (_sums(x, exact), _sums(x, honest) * (1 + 1e-4), _sums(x * (places % 20 > 0)[:, None], honest)):
        assert not judged(honest, sums)


def test_choices_that_are_stacked_are_choices(given: tuple[torch.Tensor, ...], tmp_path: Path) -> None:
    """The second code is held against what the candidate's own first code leaves; a second code of another remainder is wrong."""
    x, centres, first, second = given
    (tmp_path / "coded.py").write_text(STAGES)
    problem = load_problem(tmp_path / "coded.py")
    stages = torch.stack([centres, centres.flip(0) * 0.3])
    exact, some = _nearest(x, centres), torch.arange(400) % 20 == 0
    codes = torch.where(some, torch.where(exact == first, second, first), exact)
    rest = x - centres[codes]
    after, stale = _nearest(rest, stages[1]), _nearest(x - centres[exact], stages[1])

    def judged(second_codes: torch.Tensor, left: torch.Tensor) -> bool:
        run = [torch.stack([codes, second_codes], -1), left]
        (held,) = FreeRounding(Tolerance(problem, {}, "cpu"), lambda: [x.clone(), stages.clone()], AS_MADE).held([run], LIMITS)
        return all(map(Errors.within, held.errors, LIMITS))

    assert bool((after != stale)[some].any())
    assert judged(after, rest - stages[1][after])
    assert not judged(stale, x - centres[exact] - stages[1][stale])
    assert not judged((after + (torch.arange(400) == 5)) % 16, rest - stages[1][after])


def _nearest(x: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    return (x @ centres.T * -2 + centres.square().sum(1)).argmin(1)
