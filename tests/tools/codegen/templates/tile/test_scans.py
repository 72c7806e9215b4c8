"""Running sums and products share a kernel with what reads elsewhere."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import generated, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import LoweringError, emit, initial_schedule
from tools.codegen.schedule.plan import MOST_NODES, plan_region

THROUGH = "torch.cumprod(torch.cat((torch.ones_like(x[:, :1]), 1 - x * x), 1), 1)[:, :-1]"
BINS = "F.pad(torch.softmax(x, -1).cumsum(-1), (1, 0)).gather(1, i)"
INDEX = "torch.randn(ROWS, {0}), torch.randint(0, 20, (ROWS, 3))"


@pytest.mark.parametrize(
    ("text", "inputs"), [(f"({THROUGH} * x).sum(1)", "torch.randn(ROWS, COLS), 0"), (BINS, INDEX.format(20))], ids=["before it", "after it"]
)
def test_a_scan_is_one_kernel_with_what_is_joined_or_gathered(text: str, inputs: str) -> None:
    """What is laid before a running product, and what is gathered from a running sum of few elements, makes no kernel of its own."""
    _, graph = traced_text(function(text, inputs, "x, i"))
    (region,) = initial_schedule(graph).regions
    planned = plan_region(graph, region.nodes)
    assert planned.template.name == "tile"
    assert planned.defaults(132)["reduction"] == "registers"


def test_many_elements_are_gathered_from_memory() -> None:
    """Of a long running sum an element at a position that is data is read: looking at all of them would take longer."""
    _, graph = traced_text(function(BINS, INDEX.format(150), "x, i"))
    assert len(initial_schedule(graph).regions) > 1


def test_a_scan_of_rows_that_no_program_holds_is_refused() -> None:
    """A running product of ten thousand elements after a concatenation is made by itself."""
    _, graph = traced_text(function(THROUGH, "torch.randn(4, 10000)"))
    with pytest.raises(LoweringError, match="8192"):
        plan_region(graph, [node.name for node in graph.nodes if node.op in ("mul", "rsub", "cat", "cumprod")], "tile")


def test_long_formulas_are_one_kernel() -> None:
    """A hundred operators on a few tensors with shifted reads among them are one region, not cut by their number."""
    text = "x"
    for step in range(30):
        text = f"torch.{('sin', 'cos', 'tanh', 'sigmoid', 'abs')[step * step % 13 % 5]}({text}) * torch.roll(x, {step % 2}, 1) + y"
    _, graph = traced_text(function(text, "torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)", "x, y"))
    assert 100 < len(graph.nodes) < MOST_NODES
    assert len(initial_schedule(graph).regions) == 1


def test_scans_are_written_along_rows_of_two_dimensions() -> None:
    """Where a kernel walks several axes, the tile of a scan is taken as rows: Triton 3.6 fails to compile scans of some larger layouts."""
    problem, graph = traced_text(function(BINS, INDEX.format(20), "x, i"))
    schedule = generated(graph, {})
    assert "tl.reshape(tl.cumsum(tl.reshape(" in emit(problem, graph, schedule).source


def test_what_one_warp_would_compile_for_long_is_refused() -> None:
    """Rows of four thousand elements that are held, with a long formula of each, are given to more than one warp."""
    text = "torch.cumsum(torch.roll(x, 1, 1), 1)"
    for step in range(24):
        text = f"torch.{('sin', 'cos', 'tanh')[step * step % 7 % 3]}({text}) * {step + 2} + y"
    _, graph = traced_text(function(text, "torch.randn(ROWS, 4096), torch.randn(ROWS, 4096)", "x, y"))
    planned = plan_region(graph, [node.name for node in graph.nodes], "tile")
    parameters = planned.defaults(132)
    assert "written out" in planned.template.refusal(planned.kernel, parameters | {"num_warps": 1})
    assert planned.template.refusal(planned.kernel, parameters | {"num_warps": 8}) == ""


@pytest.mark.parametrize(("other", "exact"), [("s[:, None, :]", True), ("x[:, None, :]", False)], ids=["sums", "others"])
def test_sums_between_two_places_are_exact_where_sums_are_large(other: str, exact: bool) -> None:
    """Running sums that are subtracted from one another are summed in float64: in a tree they would differ where zeros lie between."""
    text = f"(lambda s: torch.exp(s[:, :, None] - {other}).tril())(x.cumsum(1))"
    problem, graph = traced_text(function(text))
    assert ("tl.float64" in emit(problem, graph, generated(graph, {})).source) is exact
