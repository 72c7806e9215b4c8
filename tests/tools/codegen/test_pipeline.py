"""The stages of the generator: what one gives, the next takes."""

from __future__ import annotations

import re

import pytest

from tests.tools.codegen.harness import generated, problem_of
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError, pipeline
from tools.codegen.module.emit import emit_regions
from tools.codegen.module.link import link
from tools.codegen.rewrite.canonicalize import canonicalize
from tools.codegen.schedule.plan import plan_region
from tools.codegen.trace.tracing import trace_reference
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SOFTMAX = function("torch.softmax((x * 2).clone(), -1)")


def test_emitting_is_the_stages_one_after_another() -> None:
    """What `emit` writes is what rewriting, lowering, laying out, emitting and linking give by hand."""
    problem = problem_of(SOFTMAX)
    graph = pipeline.trace(problem)
    schedule = generated(graph, {})
    bound = pipeline.rewrite(graph, schedule)
    planned = pipeline.lay_out(pipeline.lower(bound))
    assert [each.region.id for each in planned] == [region.id for region in schedule.regions]
    assert link(problem, bound, emit_regions(problem, bound, planned)) == pipeline.emit(problem, graph, schedule)


def test_tracing_ends_in_canonical_form() -> None:
    """A copy is gone from the traced graph, the pass says which, and a second pass finds nothing to do."""
    problem = problem_of(SOFTMAX)
    assert [(one.operator, one.became) for one in canonicalize(trace_reference(problem)).applied] == [("clone", ())]
    graph = pipeline.trace(problem)
    assert [node.op for node in graph.nodes] == ["mul", "softmax"]
    assert canonicalize(graph).applied == ()


def test_the_first_partition_generates_nothing() -> None:
    """Regions are found, and left to the reference's own operators until an action generates them."""
    schedule = pipeline.partition(pipeline.trace(problem_of(SOFTMAX)))
    assert [region.nodes for region in schedule.regions] == [("mul", "softmax")]
    assert not any(region.is_generated for region in schedule.regions)


def test_a_region_of_another_template_is_refused() -> None:
    """A schedule that names a template which does not fit its operators is not written by another one."""
    problem = problem_of(SOFTMAX)
    graph = pipeline.trace(problem)
    schedule = generated(graph, {})
    wrong = schedule.replaced(schedule.regions[0].model_copy(update={"template": "pointwise"}))
    with pytest.raises(LoweringError, match="is a rows region, not pointwise"):
        pipeline.emit(problem, graph, wrong)


def test_float8_is_computed_in_float32() -> None:
    """Loads of float8 become float32, with a `where` for what a load cannot fill with float8; casts name Triton's dtype."""
    text = "(torch.softmax(x.float(), -1), (x.float() * 2).to(torch.float8_e4m3fn).float() + 1)"
    problem = problem_of(function(text, "torch.randn(ROWS, COLS).to(torch.float8_e4m3fn)"))
    graph = pipeline.trace(problem)
    online = {"rows": {"algorithm": "online", "ROWS": 1, "BLOCK_N": 16, "num_warps": 4, "num_stages": 1}}
    source = pipeline.emit(problem, graph, generated(graph, online)).source

    assert 'other=0.0).to(tl.float32), -float("inf"))' in source
    assert ".to(tl.float8e4nv).to(tl.float32)" in source


def test_casts_that_a_device_does_otherwise_are_not_generated() -> None:
    """PyTorch makes infinities of what is too large for float8_e5m2, where a device saturates: that cast is left to PyTorch."""
    problem = problem_of(function("(x * 2).to(torch.float8_e5m2)"))
    with pytest.raises(LoweringError, match="float8_e5m2 are not generated"):
        plan_region(pipeline.trace(problem), ("mul", "to"))


@pytest.mark.parametrize("text", ["(x * 2).clamp(-57344, 57344)", "torch.sigmoid(x).bfloat16().t()", "x.clamp(min=-1.0, max=1e4)"])
def test_casts_of_what_is_within_range_are_generated(text: str) -> None:
    """A value that was clamped to float8_e5m2's range, or cannot leave it, is cast alike by PyTorch and a device."""
    graph = pipeline.trace(problem_of(function(f"{text}.to(torch.float8_e5m2)")))
    assert plan_region(graph, (graph.nodes[-1].name,)).template


@pytest.mark.parametrize("text", ["x.clamp(min=-1.0)", "x.clamp(-1.0, 1e5)", "(x.clamp(-1.0, 1.0) * 1e6)"])
def test_casts_of_what_is_clamped_otherwise_are_not_generated(text: str) -> None:
    """One bound, a bound beyond the range, or a clamp before other work do not keep a value within range."""
    graph = pipeline.trace(problem_of(function(f"{text}.to(torch.float8_e5m2)")))
    with pytest.raises(LoweringError, match="float8_e5m2 are not generated"):
        plan_region(graph, (graph.nodes[-1].name,))


def test_a_size_that_divides_positions_and_never_varied_is_compiled_in() -> None:
    """Three neighbours come from three channels: kernels divide by that number as a constant, which the host computes."""
    problem = problem_of(function("torch.pixel_shuffle(x, 3) + 1", "torch.randn(2, 9, ROWS, COLS)"))
    graph = pipeline.trace(problem)
    first = modelled_choices(graph, load_sheet("h100"), DEFAULT_POLICY, most=1)[0]
    source = pipeline.emit(problem, graph, first.schedule).source
    name = re.search(r"% (n_\w+)\n", source)
    assert name is not None
    assert f"{name[1]}: tl.constexpr," in source
    assert f"    {name[1]} = " in source


def test_a_short_loop_is_its_steps_where_they_make_no_more_kernels() -> None:
    """A recurrence of five polynomials of one tensor is one pointwise region, not a walk; one of many steps stays a loop."""
    text = """import torch

ROWS = 33
STEPS = {}
SMALL_SIZES = [{{"ROWS": 5}}, {{"ROWS": 8}}]


def legendre(x):
    found = [torch.ones_like(x), x]
    for step in range(2, STEPS):
        found.append(x * found[-1] - 0.5 * found[-2])
    return torch.stack(found)


def example_inputs():
    return (torch.randn(ROWS, 8),)
"""
    short, long = (pipeline.trace(problem_of(text.format(steps), "legendre")) for steps in (7, 90))
    assert not [node for node in short.nodes if node.op == "recurrence"]
    assert len(pipeline.partition(short).regions) == 1
    assert [node for node in long.nodes if node.op == "recurrence"]
