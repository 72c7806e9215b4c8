"""Small kernels that wait for none of one another are launched together, with warps enough for the longest of them."""

from __future__ import annotations

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.schedule.together import together
from tools.cost.choice import Choice
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy


def first(name: str, body: str, inputs: str) -> tuple[OperatorGraph, Choice]:
    """Name the model's first choice of a reference of two tensors."""
    _, graph = traced_text(function(body, inputs, "x, y"), name)
    return graph, modelled_choices(graph, load_sheet("h100"), PrecisionPolicy())[0]


def test_kernels_of_unlike_sizes_get_the_same_warps() -> None:
    """Short rows and long columns are one launch, where each by itself would have other warps."""
    graph, choice = first("unlike", "(torch.softmax(x, 1), y.sum(0))", "torch.randn(4096, 64), torch.randn(64, 512)")
    assert len(together(graph, choice.schedule)[0]) == 2
    assert len({region.parameters["num_warps"] for region in choice.schedule.regions}) == 1


def test_a_launch_that_is_spared_counts() -> None:
    """The model expects less of a call whose kernels are launched together than of one that launches each."""
    _, graph = traced_text(function("(x * 2, y.sin())", "torch.randn(512, 64), torch.randn(512, 2048)", "x, y"), "spared")
    choices = modelled_choices(graph, load_sheet("h100"), PrecisionPolicy())
    us = {choice.schedule.together: choice.us for choice in reversed(choices)}
    assert us[True] < us[False]


SCANS = "tuple(torch.linalg.vector_norm(y @ (each.cumsum(0) * 2)) for each in x)"


def test_what_waits_for_nothing_is_put_side_by_side() -> None:
    """Four rows are scanned in one launch, though lengths are taken between them; every region comes after what it reads."""
    graph, choice = first("scans", SCANS, "torch.randn(4, 8192), torch.randn(64, 8192)")
    regions = {region.id: region for region in choice.schedule.regions}
    shared = together(graph, choice.schedule)
    assert [[graph.by_name[regions[name].nodes[0]].op for name in names] for names in shared] == [
        ["cumsum"] * 4,
        ["linalg_vector_norm"] * 4,
    ]
    made = {node for region in choice.schedule.regions for node in region.nodes}
    seen: set[str] = set()
    for region in choice.schedule.regions:
        seen.update(region.nodes)
        assert {ref.name for node in region.nodes for ref in graph.by_name[node].refs} & made <= seen


def test_few_programs_leave_room_for_others() -> None:
    """Two scans of one program each take little longer than one; what fills the device takes as long again."""
    (few, many), (one, half) = (
        [first(f"of_{index}", body, f"torch.randn({rows}), torch.randn({rows})")[1].us for index, (body, rows) in enumerate(bodies)]
        for bodies in (
            [("(x.cumsum(0), y.cumsum(0))", "32768"), ("(x.softmax(1), y.softmax(1))", "8192, 8192")],
            [("(x.cumsum(0), y)", "32768"), ("(x.softmax(1), y)", "8192, 8192")],
        )
    )
    assert few < 1.3 * one
    assert many > 1.7 * half
