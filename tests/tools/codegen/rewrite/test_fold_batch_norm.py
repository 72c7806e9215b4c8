"""Batch norm in eval mode folded into weights: where it may be, right for every kind of layer, made again when anything of it changes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import made_once, problem_of, run_worker, trace_problem, traced_text, write_job
from tests.tools.codegen.interpreter_worker import load
from tests.tools.codegen.templates.convolution.test_convolution import HALVES
from tools.codegen import IllegalAction, OperatorGraph, Schedule, apply, emit, initial_schedule, options
from tools.codegen.rewrite.fold_batch_norm import folded_batch_norms
from tools.codegen.schedule.cudnn_fusion import SCOPE
from tools.codegen.schedule.fold import FOLD_BATCH_NORM
from tools.codegen.schedule.push_down import ALGEBRA
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.problems import with_changing_weights
from tools.records import Action, ActionKind, Problem

SHEET = load_sheet("h200")
IMAGES = "torch.randn(3, 8, 9, 10)"


def normed(layer: str, norm: str, forward: str = "return self.norm(self.layer(x))", inputs: str = IMAGES) -> str:
    """Write a reference in eval mode whose running statistics are not those of a fresh norm."""
    statistics = "torch.nn.init.uniform_(self.norm.running_mean, -1, 1); torch.nn.init.uniform_(self.norm.running_var, 0.25, 4)"
    return module(f"self.layer = torch.nn.{layer}; self.norm = torch.nn.{norm}; {statistics}; self.eval()", forward, inputs)


CONV = "Conv2d(c, 12, 3, padding=1)"
RESIDUAL = normed(CONV, "BatchNorm2d(12)", "return torch.relu(self.norm(self.layer(x)) + self.side(x))").replace(
    "self.eval()", "self.side = torch.nn.Conv2d(c, 12, 1)\n        self.eval()"
)
SAMPLES = {
    "plain": normed(CONV, "BatchNorm2d(12)"),
    "no_bias": normed("Conv2d(c, 12, 3, stride=2, dilation=2, bias=False)", "BatchNorm2d(12, eps=0.01)"),
    "no_scale": normed(CONV, "BatchNorm2d(12, affine=False)", "return F.gelu(self.norm(self.layer(x)))"),
    "depthwise": normed("Conv2d(c, 16, 3, groups=8)", "BatchNorm2d(16)"),
    "line": normed("Conv1d(c, 6, 5)", "BatchNorm1d(6)", inputs="torch.randn(3, 8, 19)"),
    "volume": normed("Conv3d(c, 6, 3)", "BatchNorm3d(6)", inputs="torch.randn(2, 8, 5, 6, 4)"),
    "transposed": normed("ConvTranspose2d(c, 6, 3, stride=2)", "BatchNorm2d(6)"),
    "linear": normed("Linear(c, 20)", "BatchNorm1d(20)", "return self.norm(self.layer(x)).sum(1)", "torch.randn(5, 8)"),
    "residual": RESIDUAL,
}
NOT = {
    "training": SAMPLES["plain"].replace("self.eval()", "self.train()"),
    "no statistics": module(
        f"self.layer = torch.nn.{CONV}; self.norm = torch.nn.BatchNorm2d(12, track_running_stats=False); self.eval()",
        "return self.norm(self.layer(x))",
        IMAGES,
    ),
    "read elsewhere": normed(CONV, "BatchNorm2d(12)", "y = self.layer(x); return self.norm(y) + y"),
    "returned": normed(CONV, "BatchNorm2d(12)", "y = self.layer(x); return self.norm(y), y"),
    "an activation between": normed(CONV, "BatchNorm2d(12)", "return self.norm(torch.relu(self.layer(x)))"),
    "one line without a batch": normed("Conv1d(c, 6, 5)", "BatchNorm1d(15)", inputs="torch.randn(8, 19)"),
    "channels of a layer's rows": normed("Linear(c, 20)", "BatchNorm1d(5)", inputs="torch.randn(3, 5, 8)"),
    "transposed in groups": normed("ConvTranspose2d(c, 6, 3, groups=2)", "BatchNorm2d(6)"),
    "half precision": normed(
        CONV.replace("padding=1", "padding=1, dtype=torch.bfloat16"), "BatchNorm2d(12, dtype=torch.bfloat16)", inputs=f"{IMAGES}.bfloat16()"
    ),
    "weights made in forward": normed(CONV, "BatchNorm2d(12)", "return self.norm(F.conv2d(x, torch.tanh(self.layer.weight)))"),
}


def fold_actions(graph: OperatorGraph, schedule: Schedule) -> list[Action]:
    """List the foldings among the options."""
    return [action for action in options(graph, schedule, SHEET) if action.parameters.get(ALGEBRA) == FOLD_BATCH_NORM]


def folded(source: str) -> tuple[Problem, OperatorGraph, Schedule]:
    """Fold all norms of a reference, and leave all else to the library."""
    problem, graph = traced_text(source)
    schedule = initial_schedule(graph)
    return problem, graph, apply(graph, schedule, fold_actions(graph, schedule)[0])


def taken(graph: OperatorGraph, schedule: Schedule, **wanted: object) -> Schedule:
    """Take the first option that has these parameters."""
    legal = options(graph, schedule, SHEET)
    return apply(graph, schedule, next(one for one in legal if all(one.parameters.get(name) == value for name, value in wanted.items())))


def with_parameters(schedule: Schedule, parameters: dict[str, Any]) -> Schedule:
    """Give the first generated region parameters."""
    region = next(region for region in schedule.regions if region.is_generated)
    return schedule.replaced(region.model_copy(update={"parameters": {**region.parameters, **parameters}}))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample folded, and two as kernels of ours."""
    return made_once(tmp_path_factory, "folded_batch_norms", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = {}
    for name, source in SAMPLES.items():
        problem, graph, schedule = folded(source)
        jobs[name] = write_job(folder, name, problem, emit(problem, graph, schedule).source)
    for name in ("plain", "residual"):
        problem, graph, schedule = folded(SAMPLES[name])
        schedule = taken(graph, schedule, scope="each") if name == "residual" else taken(graph, schedule, implementation="generated")
        schedule = with_parameters(schedule, {**HALVES, WEIGHTS: PREPACKED})
        jobs[f"{name}_ours"] = write_job(folder, f"{name}_ours", problem, emit(problem, graph, schedule).source)
    return dict(zip(jobs, run_worker("interpreter_worker.py", list(jobs.values()), interpret=True), strict=True))


@pytest.mark.parametrize("name", [*SAMPLES, "plain_ours", "residual_ours"])
def test_folded_batch_norms_match_float64(results: Any, name: str) -> None:
    """Results are as accurate as the reference's within a factor of four, for every kind of layer, by the library and by our kernels."""
    assert results[name].get("error", 9.0) <= 1.0, results[name]


@pytest.mark.parametrize("name", NOT)
def test_nothing_else_is_folded(name: str) -> None:
    """Where statistics are the batch's, the result is read elsewhere, or channels are not where the norm has them, nothing is offered."""
    _, graph = traced_text(NOT[name])
    assert not folded_batch_norms(graph)
    assert not fold_actions(graph, initial_schedule(graph))


def test_nothing_is_folded_where_weights_change() -> None:
    """A problem whose parameters change from call to call keeps its norms."""
    assert not folded_batch_norms(trace_problem(with_changing_weights(problem_of(SAMPLES["plain"]))))


def test_no_norm_is_left() -> None:
    """The step makes weight and bias, forward has neither the norm nor a region for it, and the notes say what is assumed."""
    problem, graph, schedule = folded(SAMPLES["plain"])
    emission = emit(problem, graph, schedule)
    forward = emission.source[emission.source.index("def forward") :]
    assert len(schedule.regions) == 1
    assert "F.batch_norm" not in emission.source
    assert "self.packed_weights[0]" in forward
    assert "folded_weight(self.layer.weight, self.norm.weight, self.norm.running_var, 1e-05, 0)" in emission.source
    assert any("partial results stay in range" in note for note in emission.notes)
    assert not fold_actions(graph, schedule)


def test_whatever_changes_is_folded_anew(tmp_path: Path) -> None:
    """After a change in place of the weight, the norm's parameters or its running statistics forward gives what the reference gives."""
    problem, graph, schedule = folded(SAMPLES["plain"])
    (tmp_path / "folded.py").write_text(emit(problem, graph, schedule).source)
    (tmp_path / "reference.py").write_text(problem.source)
    torch.manual_seed(0)
    ours, theirs = load(str(tmp_path / "folded.py")).ModelNew(8), load(str(tmp_path / "reference.py")).Model(8)
    x = torch.randn(3, 8, 9, 10)
    seen = []
    for name in (None, "layer.weight", "layer.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"):
        with torch.no_grad():
            if name:
                theirs.state_dict()[name].mul_(1.5).add_(0.25)
            for key, value in ours.state_dict().items():
                if not torch.equal(value, theirs.state_dict()[key]):
                    value.copy_(theirs.state_dict()[key])
            seen.append(theirs(x))
            torch.testing.assert_close(ours(x), seen[-1], rtol=1e-5, atol=1e-5)
    assert not any(torch.equal(one, two) for one, two in pairwise(seen))


def test_each_norm_is_an_action_and_all_at_once() -> None:
    """Of two norms all at once come first, then each by itself; a fold leaves the other norm where it is."""
    source = RESIDUAL.replace("self.side(x)", "self.other(self.side(x))").replace(
        "self.eval()", "self.other = torch.nn.BatchNorm2d(12)\n        self.eval()"
    )
    _, graph = traced_text(source)
    schedule = initial_schedule(graph)
    whole, one, two = fold_actions(graph, schedule)
    assert set(whole.region.split("+")) == set(one.region.split("+")) | set(two.region.split("+"))
    after = apply(graph, schedule, one)
    (left,) = fold_actions(graph, after)
    both = apply(graph, after, left)
    assert sorted(both.folded_batch_norms) == sorted(apply(graph, schedule, whole).folded_batch_norms)
    assert both.regions == apply(graph, schedule, whole).regions


def test_a_folded_norm_makes_room_for_the_librarys_epilogue() -> None:
    """Convolution, norm, addition and relu become one call of cuDNN."""
    problem, graph, schedule = folded(RESIDUAL)
    text = emit(problem, graph, taken(graph, schedule, scope=SCOPE)).source
    assert "convolution_relu(x, self.packed_weights[0], self.packed_weights[1]" in text
    assert "added=conv2d" in text


def test_kernels_stay_what_they_are() -> None:
    """A generated region loses the norm and keeps its template and its numbers; one that holds both keeps the convolution."""
    _, graph = traced_text(SAMPLES["no_scale"])
    apart = taken(graph, initial_schedule(graph), scope="each")
    together = taken(graph, apart, scope="together")
    for schedule, nodes in ((apart, [("batch_norm",), ("gelu",)]), (together, [("batch_norm", "gelu")])):
        turned = with_parameters(schedule, {"num_warps": 2})
        after = apply(graph, turned, fold_actions(graph, turned)[0])
        assert [region.nodes for region in after.regions] == nodes
        assert [region.template for region in after.regions] == [region.template for region in turned.regions]
        assert [region.parameters for region in after.regions] == [region.parameters for region in turned.regions]


def test_the_action_is_refused_elsewhere() -> None:
    """Regions without such a norm refuse the action with the reason."""
    _, graph = traced_text(NOT["read elsewhere"])
    action = Action(kind=ActionKind.ALGORITHM, region="r0", parameters={ALGEBRA: FOLD_BATCH_NORM})
    with pytest.raises(IllegalAction, match="not the regions of batch norms in eval mode"):
        apply(graph, initial_schedule(graph), action)


def test_the_model_folds_all_it_can() -> None:
    """Every choice of the model has the norm folded, with the library's convolution or ours; in training mode there is nothing to fold."""
    source = normed(
        "Conv2d(3, 32, 3, stride=2, padding=1)",
        "BatchNorm2d(32)",
        "return torch.relu(self.norm(self.layer(x)))",
        "torch.randn(10, 3, 224, 224)",
    )
    for text, able in ((source, True), (source.replace("self.eval()", "self.train()"), False)):
        problem, graph = traced_text(text)
        choices = modelled_choices(graph, SHEET, problem.policy)
        assert [bool(one.schedule.folded_batch_norms) for one in choices] == [able] * len(choices)
        assert {any(region.template == "convolution" for region in one.schedule.regions) for one in choices} == {False, True}


def test_the_library_may_be_left_with_nothing_but_the_convolution() -> None:
    """Where a norm is all that follows a convolution of few channels, the first choice is cuDNN's with the norm folded."""
    problem, graph = traced_text(normed("Conv2d(3, 32, 3, stride=2, padding=1)", "BatchNorm2d(32)", inputs="torch.randn(10, 3, 224, 224)"))
    first = modelled_choices(graph, SHEET, problem.policy)[0]
    assert first.made == "folded batch norms"
    assert [(region.nodes, region.is_generated) for region in first.schedule.regions] == [(("batch_norm",), False)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
def test_cudnn_does_all_of_it(tmp_path: Path) -> None:
    """On a GPU convolution, norm, addition and relu are one operator, as accurate as the four."""
    problem, graph, schedule = folded(RESIDUAL)
    (tmp_path / "fused.py").write_text(emit(problem, graph, taken(graph, schedule, scope=SCOPE)).source)
    model = load(str(tmp_path / "fused.py")).ModelNew(8).cuda()
    x = torch.randn(3, 8, 9, 10, device="cuda")
    model(x)
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        made = model(x)
    names = {event.key for event in profile.key_averages()}
    assert "aten::cudnn_convolution_add_relu" in names
    assert not names & {"aten::batch_norm", "aten::relu", "aten::add"}
    exact = model.double()
    wanted = torch.relu(exact.norm(exact.layer(x.double())) + exact.side(x.double()))
    assert ((made.double() - wanted).norm() / wanted.norm()).item() < 1e-6


def deep(folder: Path) -> tuple[Any, Any, Any]:
    """Load four layers with their norms, folded and captured; give the file, its module and the reference's with the same values."""
    layers = "torch.nn.Sequential(*(part for _ in range(4) for part in (torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())))"
    problem, graph, schedule = folded(module(f"self.layers = {layers}; self.eval()", "return self.layers(x)", "torch.randn(5, 8)"))
    (folder / "deep.py").write_text(emit(problem, graph, schedule.model_copy(update={"captured": True})).source)
    (folder / "deep_reference.py").write_text(problem.source)
    file = load(str(folder / "deep.py"))
    mine, theirs = file.ModelNew(8), load(str(folder / "deep_reference.py")).Model(8)
    mine.load_state_dict(theirs.state_dict())
    return file, mine, theirs


class Captures:
    """Counts how often a file's forward is captured."""

    def __init__(self, file: Any) -> None:
        """Count from now on."""
        self.count, make = 0, file.Capture.__init__

        def counted(*given: Any) -> None:
            self.count += 1
            make(*given)

        file.Capture.__init__ = counted


def test_capturing_does_not_ask_for_folding_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls on equal weights are captured once, though a capture restores buffers; a change of statistics asks for one more.

    What CUDA does of it is stood in for: a replay gives what the capture gave.
    """
    for name in ("Stream", "current_stream", "stream", "CUDAGraph", "graph"):
        monkeypatch.setattr(torch.cuda, name, MagicMock())
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    file, mine, theirs = deep(tmp_path)
    captures, x = Captures(file), torch.randn(5, 8)
    with torch.no_grad():
        for count in (1, 1, 2, 2):
            if count == 2 and captures.count == 1:
                mine.layers[4].running_mean.add_(1.0)
                theirs.layers[4].running_mean.add_(1.0)
            torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-5)
            assert captures.count == count


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
def test_replays_follow_folded_batch_norms(tmp_path: Path) -> None:
    """On a GPU, too, calls on equal weights are captured once, and replays follow weights, statistics and packing by hand."""
    file, mine, theirs = deep(tmp_path)
    mine, theirs, captures = mine.cuda(), theirs.cuda(), Captures(file)
    with torch.no_grad():
        for name, count in ((None, 1), (None, 1), ("layers.0.weight", 2), ("layers.4.running_var", 3), (None, 3), ("pack", 4)):
            if name == "pack":
                mine.pack_weights()
            elif name:
                for model in (mine, theirs):
                    model.state_dict()[name].mul_(1.5)
            x = torch.randn(5, 8, device="cuda")
            torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-5)
            assert captures.count == count
