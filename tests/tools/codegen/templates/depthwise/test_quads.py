"""Lines by fours: which blocks four neighbours look at, where they are made together, and what it is worth."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import traced_text
from tools.codegen.ir.geometry import Depthwise
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.depthwise.quads import OWN, blocks, by_quads
from tools.cost.launch_time import launch_time_us
from tools.cost.launches import region_launches
from tools.hardware import load_sheet

SHEET = load_sheet("h100")


def planned(conv: str, inputs: str, forward: str = "return self.conv(x)") -> Planned:
    """Plan a convolution of a sample."""
    _, graph = traced_text(module(f"self.conv = torch.nn.{conv}", forward, inputs), "lines")
    return plan_region(graph, tuple(node.name for node in graph.nodes if node.op.startswith("conv")))


def us(region: Planned) -> float:
    """Model a region with its first values."""
    return sum(launch_time_us(work, SHEET) for work in region_launches(region, region.defaults(SHEET.sms), SHEET))


def test_blocks_bring_every_element_that_four_neighbours_look_at() -> None:
    """For any size and padding the first block begins at or before the first element, the last holds the last, and none is idle."""
    line = Depthwise(
        size=(1,), stride=(1,), padding=(0,), dilation=(1,), expr=0, source=0, weight=1, dims=(), multiplier=1, extra=(0,), transposed=False
    )  # fmt: skip
    for size, padding in itertools.product(range(2, 40), range(20)):
        first, count = blocks(replace(line, size=(size,), padding=(padding,)))
        begin, end = -padding, size - 1 - padding + OWN - 1
        assert OWN * first <= begin < OWN * (first + 1)
        assert OWN * (first + count - 1) <= end < OWN * (first + count)


@pytest.mark.parametrize(
    ("conv", "inputs"),
    [
        ("Conv1d(8, 8, 5, groups=8, stride=2)", "torch.randn(2, 8, 64)"),
        ("Conv1d(8, 8, 5, groups=8, dilation=2)", "torch.randn(2, 8, 64)"),
        ("Conv1d(8, 8, 5, groups=8)", "torch.randn(2, 8, 61)"),
        ("Conv2d(8, 8, 5, groups=8)", "torch.randn(2, 8, 64, 64)"),
        ("ConvTranspose1d(8, 8, 5, groups=8)", "torch.randn(2, 8, 64)"),
    ],
)
def test_other_convolutions_have_a_lane_for_each_result(conv: str, inputs: str) -> None:
    """Strides, dilations, lines that Triton cannot see aligned, planes and transposes are made as they were."""
    assert not by_quads(planned(conv, inputs).kernel)


def test_a_long_kernel_costs_a_fraction_of_a_load_for_each_element() -> None:
    """31 elements of halves take a third of the time of as many with a dilation, whose results are gathered one by one."""
    inputs = "torch.randn(16, 256, 1024).half()"
    quads = planned("Conv1d(256, 256, 31, padding=15, groups=256).half()", inputs)
    others = planned("Conv1d(256, 256, 31, padding=30, dilation=2, groups=256).half()", inputs)
    assert by_quads(quads.kernel)
    assert 3 * us(quads) < us(others)


def test_what_comes_turned_is_copied_and_counts() -> None:
    """Planes that lie with their channels last are copied by PyTorch before the kernel, which the model adds."""
    turned = planned("Conv2d(64, 64, 3, padding=1, groups=64)", "torch.randn(8, 112, 112, 64)", "return self.conv(x.permute(0, 3, 1, 2))")
    plain = planned("Conv2d(64, 64, 3, padding=1, groups=64)", "torch.randn(8, 64, 112, 112)")
    moved_us = 2 * 4 * 8 * 64 * 112 * 112 / 0.27 / 3.35e6
    assert us(turned) - us(plain) == pytest.approx(moved_us, rel=0.25)
