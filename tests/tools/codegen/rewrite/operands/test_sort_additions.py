"""Additions and maxima by index come in the order of their targets where the result is more than a cache holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.tools.codegen.harness import generated, made_once, run_worker, traced_text, write_job
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, Schedule, emit
from tools.codegen.rewrite.bind import bind
from tools.codegen.rewrite.operands.sort_additions import is_unsorted, unsorted_additions
from tools.cost.choice import Choice
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy, Problem

GATHER = "torch.zeros_like(x).index_add(0, z, x[y] * w[:, None])"
SMALL = "torch.randn(9, 20), torch.randint(0, 9, (37,)), torch.randint(0, 9, (37,)), torch.randn(37)"
MANY = "torch.randn(9, 3, 20), torch.randint(0, 9, (300,)), torch.randint(0, 3, (300,)) ** 2, torch.randn(300, 3)"
ALL = "torch.randn(9, 20), torch.randint(0, 9, (300,)), torch.randint(7, 8, (300,)), torch.randn(300, 1)"
WIDE = "z[:, None].expand(37, 20)"
LARGE = "torch.randn(100000, 256), torch.randint(0, 100000, (800000,)), torch.randint(0, 100000, (800000,)), torch.randn(800000)"
SAMPLES = {
    "rows": function(GATHER, SMALL, "x, y, z, w"),
    "to_what_is_there": function("x.index_add(0, z, x[y] * w[:, None], alpha=2.0) + 1", SMALL, "x, y, z, w"),
    "columns": function("x.t().index_add(1, z, (x[y] * w[:, None]).t())", SMALL, "x, y, z, w"),
    "rows_without_any": function(
        GATHER, SMALL.replace("randint(0, 9, (37,)), torch.randn", "randint(3, 5, (37,)), torch.randn"), "x, y, z, w"
    ),
    "heads": function(
        "torch.zeros_like(x).index_add(0, z, x[y] * w[..., None])",
        "torch.randn(9, 3, 20), torch.randint(0, 9, (37,)), torch.randint(0, 9, (37,)), torch.randn(37, 3)",
        "x, y, z, w",
    ),
    "long_runs": function("x.index_add(0, z, x[y] * w[..., None])", MANY, "x, y, z, w"),
    "largest_of_long_runs": function("x.scatter_reduce(0, z[:, None].expand(300, 20), x[y] * w, 'amax')", ALL, "x, y, z, w"),
    "infinities": function(GATHER.replace("w[", "torch.where(w > 1.2, float('inf'), w)["), SMALL, "x, y, z, w"),
    "scattered": function(f"torch.zeros_like(x).scatter_add(0, {WIDE}, x[y] * w[:, None])", SMALL, "x, y, z, w"),
    "largest": function(f"(x - 2).scatter_reduce(0, {WIDE}, x[y] * w[:, None], 'amax')", SMALL, "x, y, z, w"),
    "least": function(f"x.scatter_reduce(0, {WIDE}, x[y] * w[:, None], 'amin', include_self=False)", SMALL, "x, y, z, w"),
    "means": function(f"x.scatter_reduce(0, {WIDE}, x[y] * w[:, None], 'mean', include_self=False)", SMALL, "x, y, z, w"),
}


def ordered(graph: OperatorGraph) -> Schedule:
    """A schedule in which every addition is sorted."""
    return Schedule(regions=(), sorted_additions=tuple(node.name for node in graph.nodes if is_unsorted(graph, node)))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run every sample in one process."""
    return made_once(tmp_path_factory, "sort_additions", _results)


def _results(folder: Path) -> dict[str, dict[str, Any]]:
    jobs = []
    for name, text in SAMPLES.items():
        problem, graph = traced_text(text, name)
        rewriting = ordered(graph)
        schedule = generated(bind(graph, rewriting).rewritten, {})
        jobs.append(
            write_job(
                folder,
                name,
                problem,
                emit(problem, graph, schedule.model_copy(update={"sorted_additions": rewriting.sorted_additions})).source,
            )
        )
    return dict(zip(SAMPLES, run_worker("interpreter_worker.py", jobs, interpret=True), strict=True))


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_are_those_of_the_reference(results: Any, name: str) -> None:
    """Whatever stood there before, along any dimension, with a factor, of rows that get none, or most: sums, means, extremes."""
    assert "crash" not in results[name], results[name]["crash"]
    assert results[name]["error"] <= 1.0


def test_a_graph_that_is_sorted_stays_as_it_is() -> None:
    """Binding twice sorts nothing again."""
    _, graph = traced_text(SAMPLES["rows"], "twice")
    after = bind(graph, ordered(graph)).rewritten
    assert [node.op for node in after.nodes].count("sort") == 1
    assert bind(after, ordered(graph)).rewritten.nodes == after.nodes


@pytest.mark.parametrize(("inputs", "count"), [(LARGE, 1), (LARGE.replace("256", "4"), 0), (LARGE.replace("100000", "1000"), 0)])
def test_what_a_cache_holds_and_short_rows_are_left_as_they_come(inputs: str, count: int) -> None:
    """A sort has to cost less than what it saves."""
    assert len(unsorted_additions(traced_text(function(GATHER, inputs, "x, y, z, w"), "large")[1])) == count


def test_the_largest_of_a_row_of_whole_numbers_is_no_addition_by_index() -> None:
    """Only scatters have an index: a maximum of int32 along a dimension has none to sort by."""
    source = function("x.amax(-1)", "torch.randint(0, 9, (64, 96), dtype=torch.int32)", "x")
    assert not unsorted_additions(traced_text(source, "largest")[1])


@cache
def chosen() -> tuple[Problem, OperatorGraph, tuple[Choice, ...]]:
    """Name the choices for a large sum by index."""
    problem, graph = traced_text(function(GATHER, LARGE, "x, y, z, w"), "large")
    return problem, graph, modelled_choices(graph, load_sheet("h100"), PrecisionPolicy(name="default"), 8)


def test_the_cost_model_sorts_what_would_go_to_memory_and_back() -> None:
    """The first choice of such a sum is in order, and is expected to take a fraction of the time."""
    _, _, choices = chosen()
    as_it_is = min(choice.us for choice in choices if not choice.schedule.sorted_additions)
    assert choices[0].schedule.sorted_additions
    assert choices[0].us < 0.8 * as_it_is


def test_a_row_is_one_programs_own_and_nothing_is_added_in_memory() -> None:
    """The kernel walks a row's run and stores it once, over memory that nobody filled before."""
    problem, graph, choices = chosen()
    source = emit(problem, graph, choices[0].schedule).source
    assert "for start in range(begin, stop, BLOCK_K):" in source
    _, first = source.split("@triton.jit\ndef index_mul_index_by_segment_kernel(")
    assert "atomic" not in first


def test_long_runs_have_a_program_for_each_of_their_chunks() -> None:
    """A row that most go to, as a hub of a graph, is not one program's work: chunks of all elements are looked at once more."""
    problem, graph, choices = chosen()
    source = emit(problem, graph, choices[0].schedule).source
    host = source[source.index("def index_mul_index_by_segment_of_long_runs(") :]
    assert "n_rows = cdiv(index_add_sort_1.shape[-1], 128)" in host
    assert host.index("index_mul_index_by_segment_kernel[") < host.index("    index_mul_index_by_segment_of_long_runs(\n")


@pytest.mark.parametrize("form", ["scatter_add(0, z[:, None].expand_as(v), v)", "scatter_reduce(0, z[:, None].expand_as(v), v, 'amax')"])
def test_an_expanded_index_names_whole_rows(form: str) -> None:
    """Messages are mostly reduced by an index that was given their shape: what goes to a row is known by its first column."""
    text = function(f"(lambda v: torch.zeros_like(x).{form})(x[y] * w[:, None])", LARGE, "x, y, z, w")
    assert len(unsorted_additions(traced_text(text, "expanded")[1])) == 1
