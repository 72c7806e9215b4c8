"""The stages of the generator: what one gives, the next takes."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, problem_of
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError, pipeline
from tools.codegen.module.emit import emit_regions
from tools.codegen.module.link import link
from tools.codegen.rewrite.canonicalize import canonicalize
from tools.codegen.trace.tracing import trace_reference

SOFTMAX = function("torch.softmax((x * 2).clone(), -1)")


def test_emitting_is_the_stages_one_after_another() -> None:
    """What `emit` writes is what rewriting, lowering, laying out, emitting and linking give by hand."""
    problem = problem_of(SOFTMAX)
    graph = pipeline.trace(problem)
    schedule = generated(graph, {})
    bound = pipeline.rewrite(graph, schedule)
    planned = pipeline.lay_out(bound, pipeline.lower(bound))
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
