"""Values made of parameters alone, made once for all calls: which they are, and that forward gives the same bits with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.compute_samples import HEAD, module
from tests.tools.codegen.harness import made_once, problem_of, run_worker, trace_problem, traced_text, write_job
from tests.tools.codegen.packed_worker import CHANGES
from tools.codegen import IllegalAction, OperatorGraph, Schedule, apply, emit, initial_schedule, options
from tools.codegen.rewrite.fold_constants import foldable_constants
from tools.codegen.schedule.push_down import ALGEBRA, REDUCTION_PUSHDOWN
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.problems import with_changing_weights
from tools.records import Action, ActionKind

SHEET = load_sheet("h200")
SUMMED = module("self.layer = torch.nn.Linear(c, 20)", "return self.layer(x).sum(1)", "torch.randn(5, 8)")
POSITIONS = module("self.conv = torch.nn.Conv2d(c, 6, 3, padding=1)", "return self.conv(x).mean((2, 3))", "torch.randn(2, 8, 9, 7)")
STANDARDISED = module(
    "self.conv = torch.nn.Conv2d(c, 6, 3)",
    "w = self.conv.weight; w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5); return F.conv2d(x, w)",
    "torch.randn(2, 8, 9, 7)",
)
ROUNDED = module(
    "self.w = torch.nn.Parameter(torch.randn(20, c))", "return F.linear(x.bfloat16(), self.w.bfloat16()).float()", "torch.randn(5, 8)"
)
SAMPLES = {"summed": SUMMED, "positions": POSITIONS, "standardised": STANDARDISED, "rounded": ROUNDED}
NOT = {
    "inputs": module("self.w = torch.nn.Parameter(torch.randn(8))", "return torch.exp(x) * self.w", "torch.randn(5, 8)"),
    "returned": module("self.w = torch.nn.Parameter(torch.randn(8))", "y = torch.exp(self.w); return x * y, y", "torch.randn(5, 8)"),
    "a view is returned": module(
        "self.w = torch.nn.Parameter(torch.randn(8))", "y = torch.exp(self.w); return x * y, y.view(2, 4)", "torch.randn(5, 8)"
    ),
    "written": module(
        "self.register_buffer('w', torch.randn(8))", "y = torch.exp(self.w); self.w.mul_(1.0); return x * y", "torch.randn(5, 8)"
    ),
}
SIZED = f"""{HEAD}rows = 6
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        return x + torch.exp(self.w / x.shape[0])


def get_inputs():
    return [torch.randn(rows, 8)]


def get_init_inputs():
    return []
"""


def offered(graph: OperatorGraph, schedule: Schedule) -> list[Action]:
    """List the packing of whole regions among the options."""
    return [action for action in options(graph, schedule, SHEET) if action.parameters == {WEIGHTS: PREPACKED}]


def start(graph: OperatorGraph) -> Schedule:
    """Leave all to the library, with the sum taken first where there is one."""
    schedule = initial_schedule(graph)
    pushed = [action for action in options(graph, schedule, SHEET) if action.parameters.get(ALGEBRA) == REDUCTION_PUSHDOWN]
    schedule = apply(graph, schedule, pushed[0]) if pushed else schedule
    return schedule.model_copy(
        update={"regions": tuple(region.model_copy(update={"template": "library", "parameters": {}}) for region in schedule.regions)}
    )


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample with and without the step."""
    return made_once(tmp_path_factory, "packed_values", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name, source in SAMPLES.items():
        problem, graph = traced_text(source)
        plain = start(graph)
        (action,) = offered(graph, plain)
        job = write_job(folder, name, problem, emit(problem, graph, apply(graph, plain, action)).source)
        (folder / f"{name}_plain.py").write_text(emit(problem, graph, plain).source)
        jobs.append({**job, "plain": str(folder / f"{name}_plain.py")})
    return dict(zip(SAMPLES, run_worker("packed_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_prepacked_values_give_the_same_bits(results: Any, name: str) -> None:
    """Sums of weights and standardised weights that are made once give the same bits, also after the weights were changed."""
    assert "crash" not in results[name], results[name]["crash"]
    assert all(results[name]["equal"])
    assert results[name]["packs"] == list(range(1, len(CHANGES) + 1))


def test_forward_reads_no_weight_that_was_summed() -> None:
    """The weight's sum is in the step, and forward names the weight no more."""
    problem, graph = traced_text(SUMMED)
    plain = start(graph)
    emission = emit(problem, graph, apply(graph, plain, offered(graph, plain)[0]))
    step, forward = emission.source.split("def forward")
    assert "sum" in step[step.index("def pack_weights") :]
    assert "layer.weight" not in forward
    assert any("`pack_weights`" in note for note in emission.notes)


@pytest.mark.parametrize("name", NOT)
def test_nothing_else_is_packed(name: str) -> None:
    """What reads an input or a buffer that forward writes, and what forward returns, is made in every call."""
    _, graph = traced_text(NOT[name])
    assert not foldable_constants(graph)
    assert not offered(graph, initial_schedule(graph))


def test_what_depends_on_sizes_is_not_packed() -> None:
    """A value of parameters and of the number of rows is another one for inputs of other sizes."""
    graph = trace_problem(problem_of(SIZED))
    assert graph.traces > 1
    assert not foldable_constants(graph)


def test_nothing_is_packed_where_weights_change() -> None:
    """Of parameters that change from call to call nothing is made once."""
    assert not foldable_constants(trace_problem(with_changing_weights(problem_of(STANDARDISED))))


def test_packing_takes_all_such_regions_or_none() -> None:
    """The action names every region of parameters alone; another set is refused as what it is, a parameter of a kernel."""
    _, graph = traced_text(SUMMED)
    schedule = start(graph)
    other = next(region.id for region in schedule.regions if region.id not in offered(graph, schedule)[0].region.split("+"))
    with pytest.raises(IllegalAction, match="left to the library and has no parameters"):
        apply(graph, schedule, Action(kind=ActionKind.LAYOUT, region=other, parameters={WEIGHTS: PREPACKED}))


@pytest.mark.slow
def test_the_model_takes_sums_first_and_packs_them() -> None:
    """For a wide layer whose results are summed the first choice sums the weights once; where weights change, in every call."""
    source = module("self.layer = torch.nn.Linear(4096, 4096)", "return self.layer(x).sum(1)", "torch.randn(256, 4096)")
    problem, graph = traced_text(source)
    first = modelled_choices(graph, SHEET, problem.policy)[0]
    assert first.schedule.reduction_pushdown
    assert first.schedule.prepacked
    assert "reduction push-down; prepacked values" in first.made
    changing = with_changing_weights(problem)
    second = modelled_choices(trace_problem(changing), SHEET, changing.policy)[0]
    assert second.schedule.reduction_pushdown
    assert not second.schedule.prepacked
    assert second.us > first.us


def test_the_model_packs_weights_that_are_rounded_in_each_call() -> None:
    """As autocast rounds them: packed, they are read at half the width."""
    rounded = module(
        "self.w = torch.nn.Parameter(torch.randn(4096, 4096))", "return F.linear(x.bfloat16(), self.w.bfloat16())", "torch.randn(64, 4096)"
    )
    problem, graph = traced_text(rounded)
    first = modelled_choices(graph, SHEET, problem.policy)[0]
    assert [graph.by_name[name].op for name in first.schedule.prepacked] == ["to"]


def test_the_model_packs_no_sums_that_save_too_little() -> None:
    """Where summing the weights is less than a fiftieth of the call they are summed in every call, though the sum is first."""
    source = module("self.layer = torch.nn.Linear(1024, 64, bias=False)", "return self.layer(x).sum(1)", f"torch.randn({1 << 19}, 1024)")
    problem, graph = traced_text(source)
    first = modelled_choices(graph, SHEET, problem.policy)[0]
    assert first.schedule.reduction_pushdown
    assert not first.schedule.prepacked


def test_a_mean_over_positions_is_written_for_all_sizes() -> None:
    """The number of positions of a convolution that changes their number is told by the input's shape, one dimension at a time."""
    source = module("self.up = torch.nn.ConvTranspose2d(c, 6, 3)", "return self.up(x).mean((2, 3))", "torch.randn(2, 8, HEIGHT, WIDTH)")
    source = source.replace(HEAD, f"{HEAD}HEIGHT = 32\nWIDTH = 48\n")
    problem, graph = traced_text(source)
    assert graph.traces > 1
    text = emit(problem, graph, start(graph)).source
    assert "x.shape[2] + 2" in text
    assert "x.shape[3] + 2" in text
