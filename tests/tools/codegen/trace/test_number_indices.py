"""What a tensor's number picks or sets is picked and set on the device, with the results that PyTorch has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.tools.codegen.harness import problem_of, traced_text
from tools.codegen import emit, initial_schedule, trace
from tools.codegen.trace.number_indices import NumberIndices

FIRST, LAST = torch.tensor(2), torch.tensor(-1, dtype=torch.int32)
INDICES = {
    "first": (FIRST,),
    "with_a_slice": (FIRST, slice(0, 2)),
    "from_the_end": (slice(None), LAST),
    "behind_an_ellipsis": (Ellipsis, FIRST),
    "around_an_ellipsis": (FIRST, Ellipsis, LAST),
    "with_new_dimensions": (None, FIRST, slice(None), None, LAST),
    "with_a_number": (1, FIRST),
    "beside_a_number": (FIRST, None, 1, LAST),
    "all": (FIRST, LAST, FIRST),
}
VALUES = [3.0, 2, torch.tensor(7.0), torch.tensor([[[1.5]]])]
LOOP = """
import torch

ROWS, PICKS = 300, 70
{sizes}

def f(scores, boxes):
    live, found = scores.clone(), []
    for _ in range(PICKS):
        best = live.argmax()
        found.append(boxes[best, :2])
        live = live * (1 - 0.1 * (boxes[:, 0] - boxes[best, 0]).abs())
        live[best] = -1.0
    return torch.stack(found)

def example_inputs():
    return torch.rand(ROWS), torch.rand(ROWS, 4)
"""
SMALL = "SMALL_SIZES = [{'ROWS': 17, 'PICKS': 5}]"


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_what_is_picked_is_what_torch_picks(index: Any) -> None:
    """Values and shapes are those of the same index without the mode."""
    x = torch.randn(4, 5, 6)
    expected = x[index]
    with NumberIndices():
        found = x[index]
    assert found.shape == expected.shape
    assert torch.equal(found, expected)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_what_is_set_is_what_torch_sets(index: Any) -> None:
    """Numbers and tensors are spread over what the index names."""
    x = torch.randn(4, 5, 6)
    for value in VALUES:
        expected, found = x.clone(), x.clone()
        expected[index] = value
        with NumberIndices():
            found[index] = value
        assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("change", "lost"), [(lambda x: x.__setitem__(FIRST, x[FIRST].add_(1)), False), (lambda x: x[FIRST].add_(1), True)]
)
def test_a_write_to_what_was_picked_is_put_back_or_refused(change: Callable[[torch.Tensor], Any], lost: bool) -> None:
    """Where PyTorch has a view, a write that nobody puts back would be missed."""
    x = torch.zeros(4, 3)
    if lost:
        with pytest.raises(Exception, match="it writes to what it picked"), NumberIndices():
            change(x)
        return
    with NumberIndices():
        change(x)
    assert x.sum() == 3


@pytest.mark.parametrize(("sizes", "steps"), [("", "range(70)"), (SMALL, "range({17: 5}.get(scores.shape[0], 70))")])
def test_a_loop_that_picks_has_as_many_steps_as_its_file_says(sizes: str, steps: str) -> None:
    """A loop is traced at few steps; a constant that no shape tells is as written, and at small sizes what these say."""
    problem, graph = traced_text(LOOP.format(sizes=sizes), "picks")
    assert "item" not in str(graph.nodes)
    assert f"in {steps}:" in emit(problem, graph, initial_schedule(graph)).source


def test_a_number_that_a_size_needs_is_still_read_by_the_host() -> None:
    """What is cut at a number of a tensor has a size that data decide."""
    text = "import torch\ndef f(x):\n    return x[: x.argmax()] * 2\ndef example_inputs():\n    return (torch.rand(40),)\n"
    assert any("item" in str(node) or "DataSized" in type(node).__name__ for node in trace(problem_of(text)).nodes)
