"""Where the cost model cuts a kernel in two rather than make a value again for each place that reads it."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.schedule.cuts import made_again
from tools.codegen.schedule.partition import natural_regions
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h200")
GRID = "torch.randn(64, 512, 1024)"


def _differences(times: int) -> str:
    """Take the limited difference of neighbours so often: each is read from two places by the next."""
    step = "(lambda q: torch.where((q - q.roll(1, -1)) * (q.roll(-1, -1) - q) > 0, torch.tanh(q - q.roll(1, -1)) / (2 + q * q), 0.0))"
    found = "x"
    for _ in range(times):
        found = f"{step}({found})"
    return found


def test_a_stencil_of_stencils_is_several_kernels() -> None:
    """In one kernel the first of four would be made again 81 times for each element of the last."""
    _, graph = traced_text(function(_differences(4), GRID))
    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    assert len(natural_regions(graph).regions) == 1
    assert len(first.schedule.regions) > 1
    assert {region.template for region in first.schedule.regions} <= {"tile", "pointwise"}


def test_one_stencil_stays_one_kernel() -> None:
    """Three reads of neighbours are cheaper than a tensor that is written and read."""
    _, graph = traced_text(function(_differences(1), GRID))
    assert len(modelled_choices(graph, SHEET, DEFAULT_POLICY)[0].schedule.regions) == 1


def test_what_is_read_from_several_places_may_be_cut_off() -> None:
    """Neither what all read where it lies nor what only one place reads is made again."""
    _, graph = traced_text(function("(lambda a, b: a[:, 1:] - a[:, :-1] + b[:, 1:].square())(torch.exp(x), torch.sin(x))"))
    (region,) = natural_regions(graph).regions
    assert made_again(graph, region) == ("exp",)
