"""Pointwise work moves from the start of a row kernel to the end of the kernel before it, where the model gains by it."""

from __future__ import annotations

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import problem_of, trace_problem
from tools.codegen import OperatorGraph
from tools.cost.prologue_to_epilogue import moved_prologues
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

SHEET, EXACT = load_sheet("h200"), PrecisionPolicy()
LAYERS = "self.conv = torch.nn.Conv2d(c, 32, 3); self.norm = torch.nn.GroupNorm(8, 32)"
LONG, SHORT = "torch.randn(64, 64, 256, 256)", "torch.randn(64, 64, 18, 18)"


def graph_of(forward: str, inputs: str) -> OperatorGraph:
    """Trace a convolution and a norm with something between them."""
    source = module(LAYERS, forward, inputs).replace("return [8]", "return [64]")
    return trace_problem(problem_of(source))


def regions(graph: OperatorGraph) -> list[tuple[str, ...]]:
    """List the generated regions of the model's first choice that generates the convolution."""
    choices = [choice.schedule for choice in modelled_choices(graph, SHEET, EXACT)]
    own = next(schedule for schedule in choices if any(r.template == "convolution" for r in schedule.regions))
    return [region.nodes for region in own.regions if region.is_generated]


def test_gelu_before_a_norm_of_long_rows_ends_the_convolution() -> None:
    """The norm would work it out in each of its two walks."""
    assert regions(graph_of("return self.norm(F.gelu(self.conv(x)))", LONG)) == [("conv2d", "gelu"), ("group_norm",)]


def test_work_before_a_norm_of_short_rows_stays() -> None:
    """A row in registers is walked once: nothing is gained."""
    assert ("conv2d",) in regions(graph_of("return self.norm(self.conv(x) * 2)", SHORT))


@pytest.mark.parametrize(
    ("forward", "head"),
    [
        ("y = self.conv(x); return self.norm(y + torch.mode(y, 1, True)[0])", "add"),
        ("return self.norm(torch.exp(x[:, :32]))", "exp"),
    ],
)
def test_what_reads_something_else_last_does_not_move(forward: str, head: str) -> None:
    """The kernel before must be a product or a convolution, and the last to make what is read: here a mode is, or nothing."""
    graph = graph_of(forward, LONG)
    schedules = [choice.schedule for choice in modelled_choices(graph, SHEET, EXACT)]
    with_head = [schedule for schedule in schedules if any(r.nodes[0] == head and r.template == "rows" for r in schedule.regions)]
    assert with_head
    assert not any(list(moved_prologues(graph, schedule, SHEET)) for schedule in with_head)
