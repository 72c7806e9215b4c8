"""Whole numbers that floats were rounded to: at an edge either is right, anywhere else one alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tools.evaluation.trusted.free_rounding import FreeRounding
from tools.evaluation.trusted.nudged import MovedPlaceError, Nudged, may_nudge
from tools.evaluation.trusted.numerics import EXACT
from tools.evaluation.trusted.tolerance import Tolerance
from tools.evaluation.wire.distributions import AS_MADE
from tools.problems import load_problem

REFERENCE = """
import torch


def reference(x):
    {body}


def example_inputs():
    return (torch.randn(64, 40),)
"""
CODES = "return (x * 20.3).round().clamp(-128, 127).to(torch.int8)"
COUNTS = "return (x * 20.3).to(torch.int32)"
PICKED = "return torch.arange(200.0)[(x.abs() * 20.3).floor().long().clamp(max=199)].int()"
WRITTEN = (
    "y = (x * 20.3).round().clamp(-128, 127).to(torch.int8); cache = torch.zeros(70, 40, dtype=torch.int8); "
    "cache[torch.arange(64) + 3] = y; return cache"
)
PACKED = "y = (x * 20.3).round().clamp(0, 15).to(torch.uint8); return y[:, :20] | (y[:, 20:] << 4)"
NEIGHBOURS = "return (x * 20.3 < 12.0).sum(1)"
SMALL = "times 2^-20"
LABELS = "scores, labels = x.sigmoid().max(1); return torch.where(scores > 0.5, labels, -1)"
"""What follows from a choice, and is none itself."""


def _is_right(folder: Path, body: str, x: torch.Tensor, found: torch.Tensor, distribution: str = AS_MADE) -> bool:
    (folder / "reference.py").write_text(REFERENCE.format(body=body))
    problem = load_problem(folder / "reference.py")
    (held,) = FreeRounding(Tolerance(problem, {}, "cpu"), lambda: [x.clone()], distribution).held([[found]], [EXACT])
    return held.errors[0].within(EXACT)


def _near_edges(edge: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs of which some lie a roundoff from an edge, on either side; the products, and where they do."""
    torch.manual_seed(3)
    x = torch.randn(64, 40)
    places = torch.arange(x.numel()).view_as(x) % 9 == 0
    below = (edge((x * 20.3).double()) / 20.3).float()
    x = torch.where(places, torch.nextafter(below, torch.full_like(x, torch.inf).copysign(torch.randn(64, 40))), x)
    return x, x * 20.3, places


def _halves(value: torch.Tensor) -> torch.Tensor:
    return value.floor() + 0.5


@pytest.mark.parametrize(
    ("body", "edge", "made"), [(CODES, _halves, torch.round), (COUNTS, torch.round, torch.trunc)], ids=["codes", "counts"]
)
def test_either_side_of_an_edge_is_right(
    body: str, edge: Callable[[torch.Tensor], torch.Tensor], made: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path
) -> None:
    """A product that is off by roundoffs gives another number at edges; a number off by one elsewhere, or by two there, is wrong."""
    x, value, places = _near_edges(edge)
    dtype = torch.int8 if body == CODES else torch.int32
    exact, honest = (made(each).clamp(-128, 127).to(dtype) for each in (value, value * (1 + 4 * 2.0**-24)))
    other = made(value * (1 - 4 * 2.0**-24)).clamp(-128, 127).to(dtype)
    assert bool((honest != exact).any() | (other != exact).any())
    assert _is_right(tmp_path, body, x, honest)
    assert _is_right(tmp_path, body, x, other)
    clear = (~places & ((value - edge(value)).abs() > 0.01)).nonzero()[0]
    for off, (row, column) in ((1, clear), (2, places.nonzero()[1])):
        hostile = exact.clone()
        hostile[row, column] += off
        assert not _is_right(tmp_path, body, x, hostile)
    assert not _is_right(tmp_path, body, x, (value + 0.01 if body == CODES else value * 1.001).round().to(dtype))


def test_two_codes_in_a_byte_have_edges_of_their_own(tmp_path: Path) -> None:
    """One may be rounded up and the other down; and a byte of which one code is off by two is wrong."""
    torch.manual_seed(5)
    x = torch.randint(0, 15, (64, 40)) + 0.5
    up, down = x.ceil().to(torch.uint8), x.floor().to(torch.uint8)
    chosen = torch.where(torch.rand(64, 40) < 0.5, up, down)
    found = chosen[:, :20] | (chosen[:, 20:] << 4)
    assert _is_right(tmp_path, PACKED, x / 20.3, found)
    hostile = found.clone()
    hostile[3, 4] = (chosen[3, 4] + 2) % 16 | (chosen[3, 24] << 4)
    assert not _is_right(tmp_path, PACKED, x / 20.3, hostile)


def test_numbers_that_were_whole_before_they_were_rounded_are_exact(tmp_path: Path) -> None:
    """A count is no edge."""
    whole = torch.arange(2560.0).view(64, 40)
    assert not _is_right(tmp_path, "return x.floor().to(torch.int32)", whole, (whole - 1).to(torch.int32))


def test_a_count_of_what_lies_at_a_bound_may_have_it_or_not(tmp_path: Path) -> None:
    """A neighbour at the cutoff may be one or not; two more than lie there, or one where none does, are wrong."""
    torch.manual_seed(7)
    x = torch.randn(64, 40)
    x[(x * 20.3 - 12.0).abs() < 1.0] = 0.0
    x[::2, 5] = torch.nextafter(torch.tensor(12.0 / 20.3), torch.tensor(1.0))
    more = (x * 20.3 * (1 - 4 * 2.0**-24) < 12.0).sum(1)
    less = (x * 20.3 * (1 + 4 * 2.0**-24) < 12.0).sum(1)
    assert bool((more == less + (torch.arange(64) % 2 == 0)).all())
    mixed = torch.where(torch.arange(64) % 4 == 0, more, less)
    assert _is_right(tmp_path, NEIGHBOURS, x, more)
    assert _is_right(tmp_path, NEIGHBOURS, x, less)
    assert _is_right(tmp_path, NEIGHBOURS, x, mixed)
    assert not _is_right(tmp_path, NEIGHBOURS, x, more + (torch.arange(64) == 4))
    assert not _is_right(tmp_path, NEIGHBOURS, x, more + (torch.arange(64) == 5))


def test_numbers_that_lead_to_places_are_exact(tmp_path: Path) -> None:
    """Another one might be no place at all."""
    x, value, places = _near_edges(torch.round)
    exact = value.abs().floor().int()
    row, column = places.nonzero()[0]
    hostile = exact.clone()
    hostile[row, column] += 1
    assert not _is_right(tmp_path, PICKED, x, hostile)
    assert not may_nudge(["aten.index.Tensor", "aten.mul.Tensor"])
    assert may_nudge(["aten.mul.Tensor", "prims.convert_element_type.default"])


def test_numbers_that_are_written_to_places_that_others_say_have_edges(tmp_path: Path) -> None:
    """Codes that go into a cache at places which no rounding made are right on either side of an edge, and nowhere else."""
    x, value, places = _near_edges(_halves)
    exact, honest = (torch.zeros(70, 40, dtype=torch.int8) for _ in range(2))
    exact[3:67], honest[3:67] = (torch.round(each).clamp(-128, 127).to(torch.int8) for each in (value, value * (1 + 4 * 2.0**-24)))
    assert bool((honest != exact).any())
    assert _is_right(tmp_path, WRITTEN, x, honest)
    row, column = (~places & ((value - _halves(value)).abs() > 0.01)).nonzero()[0]
    for place in (row + 3, 68):
        hostile = exact.clone()
        hostile[place, column] += 1
        assert not _is_right(tmp_path, WRITTEN, x, hostile)


def _written_in_part(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(4)
    made[1:3].copy_(x[:2].trunc())
    return made.long()


@pytest.mark.parametrize(
    "place",
    [
        lambda x: x.floor().long(),
        lambda x: torch.stack([x.floor(), x]).view(-1).long(),
        lambda x: torch.zeros(4).copy_(x.round()).add_(1).long(),
        _written_in_part,
        lambda x: torch.arange(8).index_put((torch.arange(4),), x.long()),
        lambda x: int(x.round()[0]),
    ],
    ids=["rounded", "stacked", "copied", "written in part", "put", "told"],
)
def test_what_follows_from_a_moved_number_leads_to_no_place(place: Callable[[torch.Tensor], torch.Tensor | int]) -> None:
    """Through views, buffers that are written in part, values put elsewhere and Python: the run ends before it reads there."""
    x, given = torch.tensor([0.2, 1.4, 2.6, 3.1]), torch.arange(9.0)
    with pytest.raises(MovedPlaceError), Nudged(1, follows=True):
        given[place(x)]


def test_memory_that_is_used_again_is_forgotten() -> None:
    """Where a moved number lay, another tensor may lie later, and lead to a place."""
    x, given = torch.tensor([0.2, 1.4, 2.6, 3.1]), torch.arange(9.0)
    with Nudged(1, follows=True):
        for _ in range(50):
            x.floor()
            assert given[torch.arange(4)].shape == (4,)


def test_a_choice_with_another_number_where_it_is_masked_is_free_as_the_choice_is(tmp_path: Path) -> None:
    """Of scores that rounding alone tells apart either label is right; a label of a clearly lower score is not."""
    torch.manual_seed(4)
    x = torch.randn(64, 40) * 2.0**-20
    scores = x.sigmoid()
    moved = torch.where(torch.rand_like(x) < 0.5, torch.nextafter(scores, torch.ones(())), scores)
    exact, other = (torch.where(each > 0.5, label, -1) for each, label in (scores.max(1), moved.max(1)))
    assert bool((exact != other).any())
    assert _is_right(tmp_path, LABELS, x, other, SMALL)
    assert not _is_right(tmp_path, LABELS, x, torch.where(torch.arange(64) == 5, x.argmin(1), exact), SMALL)
