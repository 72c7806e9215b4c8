"""cuDNN's fused epilogue: a library convolution and the relu after it as one call, where that is what the reference says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import run_worker, traced_text, write_job
from tests.tools.codegen.interpreter_worker import load
from tools.codegen import IllegalAction, OperatorGraph, Schedule, apply, emit, initial_schedule, options
from tools.codegen.schedule.cudnn_fusion import SCOPE, epilogues
from tools.cost.cudnn_fusion import with_epilogues
from tools.hardware import load_sheet
from tools.records import Action, ActionKind

CONV = "self.conv = torch.nn.Conv2d(c, 12, 3, padding=1, stride=2)"
SIDE = "; self.side = torch.nn.Conv2d(c, 12, 1, stride=2, bias=False)"
INPUT = "torch.randn(3, 8, 9, 10)"
RELU = module(CONV, "return torch.relu(self.conv(x))", INPUT)
ADDED = module(CONV + SIDE, "return torch.relu(self.conv(x) + self.side(x))", INPUT)
NOT = {
    "read elsewhere": module(CONV, "y = self.conv(x); return torch.relu(y) + y", INPUT),
    "returned": module(CONV, "y = self.conv(x); return torch.relu(y), y", INPUT),
    "another activation": module(CONV, "return torch.tanh(self.conv(x))", INPUT),
    "one image without a batch": module(CONV, "return torch.relu(self.conv(x))", "torch.randn(8, 9, 10)"),
    "relu6": module(CONV, "return F.relu6(self.conv(x))", INPUT),
    "more in one kernel": module(CONV, "return torch.relu(self.conv(x)) * 3", INPUT),
    "added twice": module(CONV, "return torch.relu(self.conv(x) + 1.0 + 2.0)", INPUT),
    "a bias of its own": module(
        f"{CONV}; self.b = torch.nn.Parameter(torch.randn(12, 1, 1))", "return torch.relu(self.conv(x) + self.b)", INPUT
    ),
    "float64": module(CONV.replace("stride=2", "stride=2, dtype=torch.float64"), "return torch.relu(self.conv(x))", f"{INPUT}.double()"),
}
SHEET = load_sheet("h200")


def offered(source: str) -> tuple[OperatorGraph, Schedule, list[Action]]:
    """Trace a reference and list the epilogues among its options."""
    _, graph = traced_text(source)
    schedule = initial_schedule(graph)
    return graph, schedule, [action for action in options(graph, schedule, SHEET) if action.parameters.get("scope") == SCOPE]


@pytest.mark.parametrize("name", NOT)
def test_nothing_else_is_offered(name: str) -> None:
    """Where more is done with the result, or something else, cuDNN's call is no option."""
    assert offered(NOT[name])[2] == []


def test_other_devices_have_no_cudnn() -> None:
    """Nothing is offered for AMD, and what is no such pair is refused with the reason."""
    graph, schedule, _ = offered(RELU)
    assert not any(action.parameters.get("scope") == SCOPE for action in options(graph, schedule, load_sheet("mi300x")))
    wrong = Action(kind=ActionKind.FUSION, region="r0+r1", parameters={"scope": SCOPE})
    other, plain, _ = offered(NOT["another activation"])
    with pytest.raises(IllegalAction, match="with a relu that alone reads it"):
        apply(other, plain, wrong)


def test_one_call_gives_what_the_reference_gives(tmp_path: Path) -> None:
    """The emitted forward makes one call of both and is as accurate as the reference, with a tensor added or not."""
    jobs = []
    for name, source, call in (("relu", RELU, "convolution_relu(x, self.conv.weight"), ("added", ADDED, "added=conv2d")):
        problem, graph = traced_text(source)
        schedule = initial_schedule(graph)
        pair = next(iter(epilogues(graph, schedule)))
        action = Action(kind=ActionKind.FUSION, region="+".join(region.id for region in pair), parameters={"scope": SCOPE})
        text = emit(problem, graph, apply(graph, schedule, action)).source
        assert call in text
        assert "relu = F.relu(" not in text
        jobs.append(write_job(tmp_path, name, problem, text))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", 9.0) <= 1.0, result


def test_a_fused_region_keeps_its_layout_and_can_be_generated() -> None:
    """The layout of such a region is the reference's, and one action makes a kernel of it again."""
    graph, schedule, (action,) = offered(RELU)
    fused = apply(graph, schedule, action)
    assert len(fused.regions) == len(schedule.regions) - 1
    legal = options(graph, fused, SHEET)
    assert not any("memory_format" in one.parameters for one in legal)
    again = next(one for one in legal if one.kind is ActionKind.FUSION and one.parameters.get("scope") == "each")
    assert all(region.is_generated for region in apply(graph, fused, again).regions)


def test_the_model_saves_the_pass_after_the_convolution() -> None:
    """A relu that becomes an epilogue saves its pass, one with an addition half of it."""
    graph, schedule, _ = offered(RELU)
    found = with_epilogues(graph, schedule, lambda region: 8.0)
    assert found is not None
    assert found[1] == 8.0
    assert with_epilogues(graph, found[0], lambda region: 8.0) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
def test_cudnn_does_both(tmp_path: Path) -> None:
    """On a GPU the call is cuDNN's: what it gives is the reference's within a few roundings, and no other operator runs."""
    problem, graph = traced_text(RELU)
    schedule = initial_schedule(graph)
    (action,) = (one for one in options(graph, schedule, SHEET) if one.parameters.get("scope") == SCOPE)
    (tmp_path / "fused.py").write_text(emit(problem, graph, apply(graph, schedule, action)).source)
    model = load(str(tmp_path / "fused.py")).ModelNew(8).cuda()
    x = torch.randn(3, 8, 9, 10, device="cuda")
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        made = model(x)
    names = {event.key for event in profile.key_averages()}
    assert "aten::cudnn_convolution_relu" in names
    assert "aten::relu" not in names
    exact = torch.relu(model.double().conv(x.double()))
    assert ((made.double() - exact).norm() / exact.norm()).item() < 1e-6
