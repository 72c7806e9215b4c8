"""Halves between a norm and the convolutions that read it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.templates.convolution.test_convolution import SINGLE, SINGLE_ERROR
from tools.codegen import OperatorGraph, Schedule, emit, initial_schedule
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.ir.schedule import CHANNELS_LAST, FORMAT, Region
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.device.library import LIBRARY_HELPERS
from tools.records import Problem

STEP = "F.leaky_relu(self.norm(self.one(x)), 0.1)"
VOLUME = (
    "self.one = torch.nn.Conv3d(5, 16, 3, padding=1); self.norm = torch.nn.InstanceNorm3d(16, affine=True); "
    "self.two = torch.nn.Conv3d(16, 6, 3, padding=1)"
)
SOURCES = {
    "volume": module(VOLUME, f"return self.two({STEP})", "torch.randn(2, 5, 4, 5, 6)"),
    # weights that take the norm's result far from one, and an image with a large element
    "range": module(
        f"{VOLUME}; torch.nn.init.normal_(self.norm.weight, std=1e12); torch.nn.init.normal_(self.norm.bias, std=1e9)",
        f"return self.two({STEP})",
        "torch.randn(1, 5, 4, 5, 6) ** 9",
    ),
    "groups": module(
        "self.one = torch.nn.Conv2d(3, 32, 3); self.norm = torch.nn.GroupNorm(4, 32); self.two = torch.nn.Conv2d(32, 6, 3, groups=2)",
        "y = F.silu(self.norm(self.one(x))); return self.two(y)",
        "torch.randn(2, 3, 9, 8)",
    ),
}
KEPT = {
    "returned": module(VOLUME, f"y = {STEP}; return self.two(y), y", "torch.randn(1, 5, 4, 5, 6)"),
    "read_otherwise": module(VOLUME, f"y = {STEP}; return self.two(y) + y.mean()", "torch.randn(1, 5, 4, 5, 6)"),
    "unbounded": module(VOLUME, "y = self.norm(self.one(x)); return self.two(y * 3)", "torch.randn(1, 5, 4, 5, 6)"),
    "no_weights": module(VOLUME.replace(", affine=True", ""), f"return self.two({STEP})", "torch.randn(1, 5, 4, 5, 6)"),
    "filled_up": module(VOLUME.replace("16", "12"), f"return self.two({STEP})", "torch.randn(1, 5, 4, 5, 6)"),
}


def ours(source: str, precision: str = "fp16x1") -> tuple[Problem, OperatorGraph, Schedule]:
    """Generate everything: convolutions with their channels last, the rest as it fuses naturally."""
    problem, graph = traced_text(source)
    regions: list[Region] = []
    for region in initial_schedule(graph).regions:
        planned = plan_region(graph, region.nodes)
        settings = planned.defaults(132)
        if any(graph.by_name[name].op in CONVOLUTIONS for name in region.nodes):
            settings = {**settings, **SINGLE, FORMAT: CHANNELS_LAST, "precision": precision, "weights": "every_call"}
        regions.append(region.model_copy(update={"template": planned.template.name, "parameters": settings}))
    return problem, graph, Schedule(regions=tuple(regions))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run each in the interpreter."""
    return made_once(tmp_path_factory, "halves_between", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name, source in SOURCES.items():
        problem, graph, schedule = ours(source)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, schedule).source))
    return dict(zip(SOURCES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_halves_that_are_handed_on_have_the_digits_of_tf32(results: Any, name: str) -> None:
    """A convolution of what a norm wrote as halves is no further from float64 than with TF32, whatever the norm's weights."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= SINGLE_ERROR


@pytest.mark.parametrize("name", SOURCES)
def test_no_pass_over_the_image_is_left(name: str) -> None:
    """Only the first convolution's image is brought to halves; the norm writes the second's, and its power of two is made once."""
    problem, graph, schedule = ours(SOURCES[name])
    text = emit(problem, graph, schedule).source
    forward = text[text.index("def forward") :]
    assert len(re.findall(r"= image_halves\(", text)) == 1
    assert "norm_scale(" in text[text.index("def pack_weights") : text.index("def forward")]
    assert "norm_scale(" not in forward
    assert "dtype=torch.float16" in text[text.index("leaky_relu(" if "leaky" in text else "silu(") :]


@pytest.mark.parametrize("name", KEPT)
def test_what_others_read_or_nothing_bounds_stays_as_it_is(name: str) -> None:
    """Values that forward returns, that others read, that leave a norm's bound, or whose channels would be filled up."""
    _, graph, schedule = ours(KEPT[name])
    assert not any(node.scale for node in bind(graph, schedule).laid_out.nodes)


def test_only_single_halves_are_handed_on() -> None:
    """A convolution of two halves an element, as the exact policy has it, reads float32."""
    _, graph, schedule = ours(SOURCES["volume"], "fp16x3")
    assert not any(node.scale for node in bind(graph, schedule).laid_out.nodes)


@pytest.mark.slow
def test_kernels_that_hand_halves_on_compile(tmp_path: Path) -> None:
    """For Hopper: the norm's, which writes halves, and the convolution's, which makes four slices of what it reads."""
    problem, graph, schedule = ours(SOURCES["volume"])
    for region in schedule.regions:
        if region.template == "convolution" and region.nodes[0] != "conv3d":
            schedule = schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, "SLICES": 4}}))
    job = {**write_job(tmp_path, "volume", problem, emit(problem, graph, schedule).source), "arch": 90}
    (result,) = run_worker("compile_worker.py", [job], interpret=False)
    assert "crash" not in result, result["crash"]


@pytest.mark.parametrize(("weight", "bias"), [(1.0, 0.0), (3e-30, 1e-32), (2e20, 7.0), (0.0, 0.0), (float("inf"), 2.0), (1e-3, 5e4)])
def test_the_power_of_two_is_exact_and_leaves_no_element_out(weight: float, bias: float) -> None:
    """It takes 2 ** 16 times the largest weight and the bias to between 2 ** 14 and 2 ** 15, as far as float32 has such powers."""
    given: dict[str, Any] = {"torch": torch}
    exec(LIBRARY_HELPERS["norm_scale"], given)
    scale = given["norm_scale"](torch.tensor([0.0, -weight]), torch.tensor([0.0, bias])).item()
    assert math.frexp(scale)[0] == 0.5
    peak = 2.0**16 * weight + bias
    if 0.0 < peak < math.inf and 2.0**-126 < scale < 2.0**126:
        assert 2**14 <= peak * scale < 2**15
