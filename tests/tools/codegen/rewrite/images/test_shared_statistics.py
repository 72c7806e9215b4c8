"""Statistics of pieces, made once for all batch norms that read them, and norms that hand halves on by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.templates.convolution.test_convolution import SINGLE, SINGLE_ERROR
from tools.codegen import OperatorGraph, Schedule, emit
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.ir.schedule import CHANNELS_LAST, FORMAT, Region
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.images.separate_statistics import separable_statistics, with_separate_statistics
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.shared.knob import Settings
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY, Problem

LAYERS = (
    "self.n = torch.nn.ModuleList(torch.nn.BatchNorm2d(16 * i) for i in (1, 2, 3)); "
    "self.c = torch.nn.ModuleList(torch.nn.Conv2d(16 * i, 16, 3, padding=1, bias=False) for i in (1, 2, 3))"
)
STEP = "x = torch.cat([x, self.c[{0}](torch.relu(self.n[{0}](x)))], 1)"
GROWING = module(LAYERS, "; ".join(STEP.format(layer) for layer in range(3)) + "; return x", "torch.randn(3, 16, 7, 9) * 3 + 2")
BESIDE = module(
    "self.n = torch.nn.BatchNorm2d(c); self.m = torch.nn.BatchNorm2d(c, affine=False, track_running_stats=True)",
    "return torch.relu(self.n(x)), torch.tanh(self.m(x))",
    "torch.randn(5, 8, 6, 10) * 2 + 3",
)


def apart(source: str) -> tuple[Problem, OperatorGraph, Schedule]:
    """Take the statistics apart and generate all that can be."""
    problem, graph = traced_text(source)
    names = separable_statistics(graph)
    schedule = generated(with_separate_statistics(graph, names), {})
    return problem, graph, schedule.model_copy(update={"separate_statistics": names})


def turned(source: str) -> tuple[Problem, OperatorGraph, Schedule]:
    """The same with convolutions of single halves whose channels lie last."""
    problem, graph, schedule = apart(source)
    changed = bind(graph, schedule).rewritten
    ours = {region.id: region for region in schedule.regions if region.is_generated}
    convolutions = [region for region in ours.values() if changed.by_name[region.nodes[0]].op in CONVOLUTIONS]
    for region in convolutions:
        schedule = schedule.replaced(_with(region, {**region.parameters, **SINGLE, FORMAT: CHANNELS_LAST}))
    seen = bind(graph, schedule).laid_out
    for region in ours.values():
        if region not in convolutions:
            planned = plan_region(seen, region.nodes)
            schedule = schedule.replaced(_with(region, planned.defaults(132)).model_copy(update={"template": planned.template.name}))
    return problem, graph, schedule


def _with(region: Region, parameters: Settings) -> Region:
    return region.model_copy(update={"parameters": dict(parameters)})


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run each in the interpreter."""
    return made_once(tmp_path_factory, "shared_statistics", _results)


WAYS = {"growing": (GROWING, apart), "turned": (GROWING, turned), "beside": (BESIDE, apart)}


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name, (source, way) in WAYS.items():
        problem, graph, schedule = way(source)
        jobs.append(write_job(folder, name, problem, emit(problem, graph, schedule).source))
    return dict(zip(WAYS, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_norms_by_shared_statistics_are_right(results: Any, name: str) -> None:
    """Results and running statistics are the reference's, in either layout, with halves handed on and without."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= (SINGLE_ERROR if name == "turned" else 1.0)


def test_a_piece_is_looked_at_once() -> None:
    """Three norms of a growing concatenation read each of its pieces once for their statistics, and no part of it is written down."""
    _, graph, schedule = apart(GROWING)
    changed = bind(graph, schedule).rewritten
    looked = [node.args[0].name for node in changed.nodes if node.op == "var_mean"]
    assert len(looked) == len(set(looked)) == 3
    assert [len(node.args[0]) for node in changed.nodes if node.op == "cat" and len(node.outputs[0].shape) == 4] == [2, 3, 4]
    assert not any(node.op == "_native_batch_norm_legit_functional" for node in changed.nodes)


def test_what_is_known_of_pieces_is_joined_in_small_kernels() -> None:
    """What normalises reads a mean and a deviation of each channel: it does not make them."""
    _, graph, schedule = apart(GROWING)
    changed = bind(graph, schedule).rewritten
    for region in schedule.regions:
        shapes = {len(changed.by_name[name].outputs[0].shape) for name in region.nodes}
        assert len(shapes) == 1, region.nodes


def test_a_norm_that_shares_nothing_keeps_its_step() -> None:
    """One norm's statistics are one step, with the running ones."""
    _, graph, schedule = apart(module("self.n = torch.nn.BatchNorm2d(c)", "return torch.relu(self.n(x))", "torch.randn(5, 8, 6, 10)"))
    assert [node.op for node in bind(graph, schedule).rewritten.nodes].count("_native_batch_norm_legit_functional") == 1


def test_norms_in_training_hand_halves_on() -> None:
    """What normalises writes halves, channels last, for each convolution; the first one's input is turned on the way."""
    _, graph, schedule = turned(GROWING)
    seen = bind(graph, schedule).laid_out
    handed = [node for node in seen.nodes if node.scale]
    assert [node.op for node in handed] == ["relu"] * 3
    assert all(node.outputs[0].shape[-1][0] % 16 == 0 for node in handed)


def test_such_a_net_is_expected_to_gain() -> None:
    """A dense block is chosen so: pieces looked at once, halves handed on, each of its convolutions ours."""
    source = GROWING.replace("torch.randn(3, 16, 7, 9)", "torch.randn(16, 16, 128, 128)")
    _, graph = traced_text(source)
    first = modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, most=1)[0]
    assert "statistics apart" in first.words
    assert "channels last" in first.words
    seen = bind(graph, first.schedule).laid_out
    assert [node.op for node in seen.nodes if node.scale] == ["relu"] * 3
