"""Products with unaligned rows: operands that a kernel fills up with zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.breadth import unlike
from tests.tools.codegen.harness import made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import Schedule, emit
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.operands.pad_sums import unaligned_sums
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import DEFAULT_POLICY

SHEET = load_sheet("h100")
LARGE = "torch.randn(32768, 588).half(), torch.randn(1024, 588).half()"
SAMPLES = {
    "linear": function("torch.nn.functional.linear(x * 2, y)", LARGE, "x, y"),
    "turned": function("(x * 2) @ y.t()", LARGE, "x, y"),
    "straight": function("(x * 2) @ y", "torch.randn(32768, 588).half(), torch.randn(588, 1024).half()", "x, y"),
    "float32": function("(x * 2) @ y", "torch.randn(32768, 588), torch.randn(588, 1021)", "x, y"),
}


def padded(graph: OperatorGraph) -> OperatorGraph:
    """The graph with all of its unaligned sums filled up."""
    return bind(graph, Schedule(regions=(), padded_sums=unaligned_sums(graph))).rewritten


@pytest.mark.parametrize("name", SAMPLES)
def test_both_operands_get_zeros_up_to_a_multiple_of_sixteen(name: str) -> None:
    """A sum of 588 numbers is one of 592; a matrix that is turned is filled up first, along its rows."""
    _, graph = traced_text(SAMPLES[name], name)
    after = padded(graph)
    product = next(node for node in after.nodes if node.name in unaligned_sums(graph))
    assert after.meta(product.args[0]).written == (32768, 592)
    assert sorted(after.meta(product.args[1]).written) in ([592, 1024], [592, 1021])
    assert [node.op for node in after.nodes].count("pad") == 2


def test_a_graph_that_is_filled_up_stays_as_it_is() -> None:
    """Binding twice fills nothing up again."""
    _, graph = traced_text(SAMPLES["linear"], "twice")
    after = padded(graph)
    assert padded(after).nodes == after.nodes


@pytest.mark.parametrize("inputs", [LARGE.replace("588", "584"), LARGE.replace("half", "double")])
def test_what_is_aligned_is_left_alone(inputs: str) -> None:
    """Rows of a multiple of eight halves, and rows of float64, are no such sums."""
    text = function("torch.nn.functional.linear(x * 2, y)", inputs, "x, y")
    assert unaligned_sums(traced_text(text, "other")[1]) == ()


def test_the_cost_model_fills_up_rows_that_a_kernel_writes() -> None:
    """The first choice of such a product has its zeros, and expects to be much faster by them."""
    choices = modelled_choices(traced_text(SAMPLES["linear"], "first")[1], SHEET, DEFAULT_POLICY)
    unfilled = min(choice.us for choice in choices if not choice.schedule.padded_sums)
    assert choices[0].schedule.padded_sums
    assert "filled sums" in choices[0].words
    assert 1.5 * choices[0].us < unfilled


def test_an_operand_whose_rows_are_unaligned_either_way_is_written_along_the_sum() -> None:
    """The right operand of 588 by 1021 is turned and filled up, and the first choice reads its short parts wide."""
    _, graph = traced_text(SAMPLES["float32"], "either")
    product = next(node for node in padded(graph).nodes if node.name in unaligned_sums(graph))
    assert padded(graph).by_name[product.args[1].name].op == "t"

    first = modelled_choices(graph, SHEET, DEFAULT_POLICY)[0]
    assert first.schedule.padded_sums
    assert "fp16x3" in first.made


RUN = unlike(SAMPLES, {"straight"})
"""Without what runs no line of the generator that the others do not, but in `make test-all`."""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample with its sums filled up, at small sizes, in one process."""
    return made_once(tmp_path_factory, "padded", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name in RUN:
        text = SAMPLES[name]
        problem, graph = traced_text(text.replace("32768", "33").replace("588", "37").replace("1024", "19").replace("1021", "19"), name)
        choices = modelled_choices(graph, SHEET, DEFAULT_POLICY, most=12)
        choice = next(
            each.schedule for each in choices if each.schedule.padded_sums and any(r.template == "matmul" for r in each.schedule.regions)
        )
        jobs.append(write_job(folder, name, problem, emit(problem, graph, choice).source))
    return dict(zip(RUN, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", RUN)
def test_filled_sums_are_what_they_were(results: Any, name: str) -> None:
    """Zeros change no result."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0
