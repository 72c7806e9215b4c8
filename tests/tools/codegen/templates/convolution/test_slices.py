"""Several slices of a convolution's result made by one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import unlike
from tests.tools.codegen.compute_samples import DIRECT, module
from tests.tools.codegen.harness import made_once, run_worker, write_job
from tests.tools.codegen.templates.convolution.test_convolution import HALVES, SINGLE, SINGLE_ERROR, in_halves
from tests.tools.codegen.templates.matmul.test_products import whole
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.convolution.knobs import convolution_fits
from tools.cost.launch_time import launch_time_us
from tools.cost.launches import region_launches
from tools.hardware import load_sheet

VOLUME = module(
    "self.conv = torch.nn.Conv3d(20, 18, 3, padding=1)", "return self.conv(x).relu() + x[:, :18]", "torch.randn(2, 20, 5, 4, 6)"
)
CUBE = module("self.conv = torch.nn.Conv3d(32, 32, 3, padding=1)", "return self.conv(x)", "torch.randn(1, 32, 16, 16, 16)")
SOURCES = {
    "volume": VOLUME,
    # an input that ends before the slices of the last program do, and a kernel that leaves it at both ends
    "strides": module(
        "self.conv = torch.nn.Conv3d(17, 3, 3, stride=2, padding=2)", "return self.conv(x)", "torch.randn(1, 17, 7, 6, 5) ** 7 * 1e9"
    ),
    "no_padding": module("self.conv = torch.nn.Conv3d(16, 3, (4, 1, 2))", "return self.conv(x)", "torch.randn(1, 16, 8, 3, 4)"),
    "dilated": module("self.conv = torch.nn.Conv2d(16, 5, 3, dilation=2, padding=1)", "return self.conv(x)", "torch.randn(2, 16, 9, 8)"),
    "groups": module("self.conv = torch.nn.Conv2d(34, 6, 3, groups=2, padding=1)", "return self.conv(x)", "torch.randn(2, 34, 5, 6)"),
    # rows of the kernel become channels
    "few_channels": module("self.conv = torch.nn.Conv3d(1, 5, 3, padding=1)", "return self.conv(x)", "torch.randn(1, 1, 6, 5, 7)"),
}
TOGETHER: dict[str, dict[str, Any]] = {
    name: {**(HALVES if name == "groups" else SINGLE), "SLICES": 2 if name == "groups" else 4, "BLOCK_M": 16} for name in SOURCES
}
RUN = unlike(SOURCES, {"dilated", "no_padding"})
"""Without those that run no line of the generator which none of the others runs, but in `make test-all`."""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run each in the interpreter."""
    return made_once(tmp_path_factory, "convolution_slices", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = [write_job(folder, name, *in_halves(SOURCES[name], TOGETHER[name])) for name in RUN]
    return dict(zip(RUN, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_slices_made_together_are_right(results: Any, name: str) -> None:
    """Slices that a program makes together are what the convolution gives, at odd sizes, with strides, groups and dilation."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= (1.0 if name == "groups" else SINGLE_ERROR)


def test_what_slices_share_is_read_once() -> None:
    """Four slices of a kernel of three read six of the input and three of the weights in a step, and add twelve products."""
    text = in_halves(VOLUME, TOGETHER["volume"])[1]
    loop = text[text.index("    for step in range(0, 9 * steps)") : text.index("    sums = ")]
    assert (loop.count("tl.load(x_high"), loop.count("tl.load(conv_weight_high"), loop.count("tl.dot(")) == (6, 3, 12)


def test_the_model_counts_what_slices_read() -> None:
    """Four slices of a program read six where one slice reads three; the products stay the same."""
    _, graph, schedule = whole(CUBE)
    (region,) = schedule.regions
    plan = plan_region(graph, region.nodes)
    setting = {**region.parameters, **SINGLE, "BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32, "num_warps": 8}
    one, four = (region_launches(plan, {**setting, "SLICES": count}, load_sheet("h200"))[0] for count in (1, 4))
    images, weights = 64 * 32 * 2, 32 * 32 * 2
    written = 16**3 * 32 * 4
    assert (one.programs, four.programs) == (64, 16)
    assert one.product_flops == four.product_flops
    assert one.l2_bytes - written == one.programs * 27 * (images + weights)
    assert four.l2_bytes - written == four.programs * 9 * (6 * images + 3 * weights)


def test_only_slices_that_share_are_made_together() -> None:
    """Transposed convolutions, kernels of one slice and more slices than the result has are left alone."""
    sheet = load_sheet("h200")
    sources = {
        "volume": VOLUME,
        "transposed": DIRECT["transposed"],
        "one_slice": module("self.conv = torch.nn.Conv3d(20, 18, (1, 3, 3))", "return self.conv(x)", "torch.randn(2, 20, 5, 4, 6)"),
        "line": module("self.conv = torch.nn.Conv1d(20, 18, 3)", "return self.conv(x)", "torch.randn(2, 20, 50)"),
        "flat": module("self.conv = torch.nn.Conv3d(20, 18, 3)", "return self.conv(x)", "torch.randn(2, 20, 5, 4, 6)"),
    }
    for name, source in sources.items():
        _, graph, schedule = whole(source)
        (region,) = schedule.regions
        kernel = plan_region(graph, region.nodes).kernel
        assert convolution_fits(kernel, {**region.parameters, **TOGETHER["volume"]}, "SLICES", sheet) == (name == "volume"), name


def test_two_programs_of_few_warps_are_expected_to_beat_one() -> None:
    """Four slices of 32 channels in two stages leave room for a second program: 154 µs where three stages took 200 (an H100)."""
    source = module("self.conv = torch.nn.Conv3d(32, 32, 3, padding=1)", "return self.conv(x)", "torch.randn(1, 32, 96, 96, 96)")
    _, graph, schedule = whole(source)
    (region,) = schedule.regions
    plan, sheet = plan_region(graph, region.nodes), load_sheet("h100")
    setting = {**region.parameters, **SINGLE, "BLOCK_M": 128, "BLOCK_N": 32, "BLOCK_K": 32, "SLICES": 4, "num_warps": 4}
    two, three = (launch_time_us(region_launches(plan, {**setting, "num_stages": stages}, sheet)[0], sheet) for stages in (2, 3))
    assert 1.15 < three / two < 1.45
