"""Traces that say the same in other words at other sizes."""

from __future__ import annotations

from tests.tools.codegen.harness import problem_of
from tools.codegen import trace
from tools.codegen.ir.loop import Loop
from tools.codegen.trace.tracing import trace_reference

ROWS = """
import torch

ROWS, WIDTH = 64, 40
SMALL_SIZES = [{"ROWS": 5, "WIDTH": 9}, {"ROWS": 1, "WIDTH": 12}]


def spread(x):
    table = torch.linspace(0.0, 1.0, 8, device=x.device).expand(x.shape[0], 8).contiguous()
    return torch.searchsorted(table, x.t().contiguous().t() * 1.0)


def example_inputs():
    return (torch.rand(ROWS, WIDTH),)
"""


LAST = ROWS.replace("torch.searchsorted(table, x.t().contiguous().t() * 1.0)", "(x + table.sum()).t().contiguous()")


def test_the_last_operator_may_be_such_a_copy() -> None:
    """A trace that ends before the others do lacks their last copy."""
    graph = trace(problem_of(LAST, "spread"))
    assert not graph.blocked
    assert "contiguous" not in {node.op for node in graph.nodes}


def test_a_copy_that_one_row_does_not_need_is_left_out() -> None:
    """What `contiguous` has nothing to do for at one of the sizes is traced at all of them without it."""
    graph = trace(problem_of(ROWS, "spread"))
    assert not graph.blocked
    # as written, at both declared sizes, and at one that mixes them
    assert graph.traces == 4
    assert "contiguous" not in {node.op for node in graph.nodes}


TWICE = """
import torch

ROWS, WIDTH, STEPS = 4, 8, 40
SMALL_SIZES = [{"STEPS": 7}]


def there_and_back(x, state):
    kept = []
    for step in range(STEPS):
        state = torch.tanh(x[:, step].unsqueeze(1).squeeze(1) + state)
        kept.append(state)
    back = torch.zeros_like(state)
    found = []
    for each in reversed(kept):
        back = torch.sigmoid(each.unsqueeze(1).squeeze(1) + back)
        found.append(back)
    return torch.stack(found, 1)


def example_inputs():
    return torch.rand(ROWS, STEPS, WIDTH), torch.rand(ROWS, WIDTH)
"""


def test_a_second_loop_is_the_same_however_long_the_first_one_is() -> None:
    """The exporter numbers the operators behind a loop by the loop's length; that makes them no others."""
    graph = trace(problem_of(TWICE, "there_and_back"))
    assert not graph.blocked
    assert [type(node) for node in graph.nodes].count(Loop) == 2


HALF = """
import torch

ROWS, WIDTH = 64, 40
SMALL_SIZES = [{"ROWS": 5, "WIDTH": 9}, {"ROWS": 3, "WIDTH": 1}]


def first_half(x):
    return torch.tanh(x).chunk(2, 1)[0] + 1


def example_inputs():
    return [torch.randn(ROWS, WIDTH)]
"""


def test_a_first_half_is_one_at_every_size() -> None:
    """One element has a first half and no second: where that is not read, the trace says the same as the others."""
    graph = trace(problem_of(HALF, "first_half"))
    assert not graph.blocked
    assert [node.op for node in graph.nodes] == ["tanh", "slice", "add"]


PUT = """
import torch

ROWS, LENGTH, WIDTH, FEW = 4, 64, 8, 5
SMALL_SIZES = [{"ROWS": 3, "LENGTH": 9}, {"ROWS": 1, "LENGTH": 16}]


def written(cache, keys, at):
    rows = torch.arange(keys.shape[0], device=keys.device)[:, None]
    cache = cache.clone()
    cache[rows, at] = keys
    return cache


def example_inputs():
    return torch.randn(ROWS, LENGTH, WIDTH), torch.randn(ROWS, FEW, WIDTH), torch.stack([torch.randperm(LENGTH)[:FEW] for _ in range(ROWS)])
"""


def test_a_cache_of_one_sequence_is_written_as_one_of_several() -> None:
    """What is put in place of a single row is exported without its leading one, by a view that the other traces do not have."""
    graph = trace(problem_of(PUT, "written"))
    assert not graph.blocked
    assert "view" not in [node.op for node in graph.nodes]


STEPS = """
import torch

ROWS, LENGTH = 4, 64
SMALL_SIZES = [{"ROWS": 3, "LENGTH": 9}, {"ROWS": 1, "LENGTH": 16}]


def streamed(x):
    for _ in range(4):
        x = x.clone()
        x[:, [2, 0], -1] = x[:, [2, 0], -2].sin()
        x = x.roll(1, 2)
    return x


def example_inputs():
    return (torch.randn(ROWS, 3, LENGTH),)
"""


def test_the_steps_of_one_sequence_are_those_of_several() -> None:
    """The same view inside of a loop is none of its step's."""
    graph = trace_reference(problem_of(STEPS, "streamed"))
    assert not graph.blocked
    [loop] = [node for node in graph.nodes if isinstance(node, Loop)]
    assert "view" not in [node.op for node in loop.body.nodes]
