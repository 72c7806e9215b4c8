"""Sums and maxima over a convolution's channels, made where its result is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.templates.convolution.test_convolution import SINGLE, SINGLE_ERROR, in_halves
from tests.tools.codegen.templates.matmul.test_products import whole
from tools.codegen import emit
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import can_generate, plan_region
from tools.cost.launches import region_launches
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

LEAST = module(
    "self.conv = torch.nn.Conv2d(c, 20, 3)", "return torch.min(self.conv(x) * 2, dim=1, keepdim=True)[0]", "torch.randn(2, 8, 7, 9)"
)
SOURCES = {
    "least": LEAST,
    # strides make positions of several remainders; channels end before the tile does, and so do positions
    "softmax": module(
        "self.conv = torch.nn.ConvTranspose2d(c, 20, 4, stride=2, padding=1); self.bias = torch.nn.Parameter(torch.randn(20, 1, 1))",
        "return torch.sigmoid((torch.softmax(self.conv(x), dim=1) + self.bias) * 2)",
        "torch.randn(2, 8, 5, 6)",
    ),
    "volume": module(
        "self.conv = torch.nn.Conv3d(c, 12, 3)", "return F.hardswish(torch.logsumexp(self.conv(x), dim=1))", "torch.randn(2, 8, 4, 5, 6)"
    ),
    "slices": module(
        "self.conv = torch.nn.Conv3d(c, 12, 3, padding=1)",
        "y = self.conv(x); return (y - y.mean(1, keepdim=True)) / y.std(1, keepdim=True)",
        "torch.randn(2, 8, 4, 5, 6)",
    ),
    "head": module("self.conv = torch.nn.Conv2d(c, 20, 1)", "return torch.log_softmax(self.conv(x), dim=1)", "torch.randn(2, 8, 7, 9)"),
    "place": module("self.conv = torch.nn.Conv2d(c, 20, 3)", "return torch.argmax(self.conv(x), dim=1)", "torch.randn(2, 8, 7, 9)"),
    "both": module(
        "self.conv = torch.nn.Conv2d(c, 20, 3)", "y = self.conv(x); return y, y.amax(1), (y > 0).sum(1)", "torch.randn(2, 8, 7, 9)"
    ),
}
SETTING = {**SINGLE, "BLOCK_N": 32}


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run each in the interpreter."""
    return made_once(tmp_path_factory, "convolution_folds", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    settings = {name: {**SETTING, **({"SLICES": 2} if name == "slices" else {})} for name in SOURCES}
    # which of two channels is larger is not to be asked of halves
    settings["place"], settings["both"] = ({**SETTING, "precision": "ieee"} for _ in range(2))
    jobs = [write_job(folder, name, *in_halves(source, settings[name])) for name, source in SOURCES.items()]
    return dict(zip(SOURCES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_what_looks_along_channels_is_right(results: Any, name: str) -> None:
    """A softmax, a minimum, a norm or a position over channels is what the reference gives, in the convolution's own kernel."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= (1.0 if name in ("place", "both") else SINGLE_ERROR)


def test_a_tile_has_all_channels() -> None:
    """First values and all that fit have one tile of channels; another is refused in words, and more channels by the host function."""
    problem, graph, schedule = whole(LEAST)
    assert "assert n_cols <= 32" in emit(problem, graph, schedule).source
    (region,) = schedule.regions
    planned, sheet = plan_region(graph, region.nodes), load_sheet("h100")
    assert planned.defaults(132)["BLOCK_N"] == 32
    few = {**planned.defaults(132), **SINGLE, "BLOCK_N": 16}
    assert not planned.fits(few, "BLOCK_N", sheet)
    assert "BLOCK_N" in planned.template.refusal(planned.kernel, few)


@pytest.mark.parametrize(
    "forward", ["torch.min(self.conv(x), dim=2)[0]", "torch.cumsum(self.conv(x), dim=1)", "torch.amax(self.conv(x), dim=(1, 2))"]
)
def test_other_dimensions_are_no_tiles(forward: str) -> None:
    """What looks along positions, or writes sums so far, is a kernel of its own."""
    _, graph = traced_text(module("self.conv = torch.nn.Conv2d(c, 20, 3)", f"return {forward}", "torch.randn(2, 8, 7, 9)"))
    assert not can_generate(graph, [node.name for node in graph.nodes if not is_view(node)])


def test_what_is_folded_is_not_written() -> None:
    """A minimum over channels comes with the convolution: its result does not pass through memory, which the model knows."""
    source = module("self.conv = torch.nn.Conv2d(64, 128, 3)", "return torch.min(self.conv(x), dim=1)[0]", "torch.randn(16, 64, 128, 128)")
    _, graph = traced_text(source)
    sheet = load_sheet("h100")
    first = modelled_choices(graph, sheet, DEFAULT_POLICY, most=1)[0].schedule
    (region,) = first.regions
    assert region.template == "convolution"
    assert region_launches(plan_region(graph, region.nodes), region.parameters, sheet)[0].dram_bytes < 16 * 64 * 128 * 128 * 4


def test_results_that_strides_set_apart_want_more_threads() -> None:
    """Their addresses do not fit beside 128 sums a thread: a softmax over channels took 1.17 times as long so (an H100)."""
    source = module(
        "self.conv = torch.nn.ConvTranspose2d(64, 128, 4, stride=2)",
        "return torch.softmax(self.conv(x), 1)",
        "torch.randn(128, 64, 64, 64)",
    )
    _, graph, schedule = whole(source)
    (region,) = schedule.regions
    plan, sheet = plan_region(graph, region.nodes), load_sheet("h100")
    setting = {**region.parameters, **SINGLE, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "num_stages": 3}
    few, many = (region_launches(plan, {**setting, "num_warps": warps}, sheet)[0] for warps in (4, 8))
    assert few.lane_work > 1.1 * many.lane_work
