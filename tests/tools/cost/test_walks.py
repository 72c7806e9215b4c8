"""Walks that regions share: where their kernels are alike, and nowhere else."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen import initial_schedule
from tools.codegen.schedule.plan import Planned, plan_region
from tools.cost.schedule_model import ScheduleModel
from tools.cost.walks import Walks
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

SHEET, EXACT = load_sheet("h100"), PrecisionPolicy()
THREE = function("torch.softmax(x, -1), torch.softmax(x.exp(), -1), torch.softmax(x.t(), -1)", "torch.randn(4096, 1024)")
BEFORE = function("torch.softmax(torch.softmax(x, -1).cumsum(0), -1)", "torch.randn(4096, 1024)")


def planned(name: str) -> Planned:
    """Lower one softmax of three; the last has other rows."""
    return plan_region(traced_text(THREE)[1], (name,))


def test_regions_whose_kernels_are_alike_share_a_walk() -> None:
    """What is done to two tensors of one shape is asked about once; under another shape, policy or start it is asked again."""
    walks = Walks(SHEET)
    first, other, turned = planned("softmax"), planned("softmax_1"), planned("softmax_2")
    start = first.defaults(SHEET.sms)
    walk = walks.of(first, start, EXACT)
    assert walks.of(other, start, EXACT) is walk
    assert walks.of(turned, start, EXACT) is not walk
    assert walks.of(other, start, PrecisionPolicy(name="tf32")) is not walk
    assert walks.of(other, {**start, "num_warps": 1}, EXACT) is not walk


def test_shared_walks_change_no_choice() -> None:
    """A model says the same of a graph whether or not another graph's regions were asked about before."""
    graph, walks = traced_text(THREE)[1], Walks(SHEET)
    before = traced_text(BEFORE)[1]
    ScheduleModel(before, SHEET, EXACT, walks=walks).choices(initial_schedule(before), 2)
    start = initial_schedule(graph)
    assert ScheduleModel(graph, SHEET, EXACT, walks=walks).choices(start, 4) == ScheduleModel(graph, SHEET, EXACT).choices(start, 4)
