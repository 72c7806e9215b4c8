"""What a row kernel spreads over many elements at its end can be made where it is read."""

from __future__ import annotations

from tests.tools.codegen.harness import generated, problem_of
from tests.tools.codegen.samples import function
from tools.codegen import trace
from tools.cost.epilogue_to_prologue import moved_epilogues, moved_widenings
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import PrecisionPolicy

SHEET = load_sheet("h100")


def moved(body: str) -> list[list[tuple[str, ...]]]:
    """List what a function of a large matrix can be divided into, each time with something moved to its reader."""
    graph = trace(problem_of(function(body, "torch.randn(8192, 1024)")))
    schedules = moved_epilogues(graph, generated(graph, {}), SHEET)
    return [[region.nodes for region in schedule.regions] for schedule in schedules]


def test_what_is_spread_from_sums_of_rows_goes_to_its_reader() -> None:
    """The matrix less its rows' logarithms is never written: the kernel that reads it down its columns makes it."""
    found = moved("torch.logsumexp(x - torch.logsumexp(x, 1, keepdim=True), 0)")
    assert found == [[("logsumexp",), ("sub", "logsumexp_1")]]


def test_several_operators_go_together() -> None:
    """Half of what is spread would be as large."""
    found = moved("torch.logsumexp(torch.tanh(x - torch.logsumexp(x, 1, keepdim=True)), 0)")
    assert found == [[("logsumexp",), ("sub", "tanh", "logsumexp_1")]]


def test_what_forward_returns_stays() -> None:
    """A value that is written in any case is written by the kernel that has it in registers."""
    assert moved("(lambda y: (y, torch.logsumexp(y, 0)))(x - torch.logsumexp(x, 1, keepdim=True))") == []


def test_a_number_a_row_stays() -> None:
    """What is as small as the sums themselves is left where these are made."""
    found = moved("torch.logsumexp(x - torch.tanh(torch.logsumexp(x, 1, keepdim=True)), 0)")
    assert found == [[("logsumexp", "tanh"), ("sub", "logsumexp_1")]]


GROWTH = """import torch
import torch.nn.functional as F
H, W = 1024, 1024
def growth(x):
    strong, weak = x > 1.0, x > 0.2
    for _ in range(3):
        strong = (F.max_pool2d(strong.float()[:, None], 3, 1, 1)[:, 0] > 0) & weak
    return strong
def example_inputs():
    return (torch.randn(4, H, W),)
"""


def test_booleans_go_from_kernel_to_kernel_as_booleans() -> None:
    """Poolings of floats that are made of booleans make them as they read; the only channel, put in and taken out, ends no kernel."""
    graph = trace(problem_of(GROWTH))
    first = modelled_choices(graph, SHEET, PrecisionPolicy(), most=1)[0].schedule
    found = [tuple(graph.by_name[name].op for name in region.nodes) for region in first.regions]
    assert found[-2:] == [("to", "max_pool2d", "gt", "bitwise_and")] * 2


def test_what_two_kernels_read_is_widened_once() -> None:
    """A conversion that several kernels would have to make again stays where it is."""
    body = "(lambda y: (torch.cumsum(y, 1), torch.logsumexp(y, 0)))((x.sum(1, keepdim=True) > x).float())"
    graph = trace(problem_of(function(body, "torch.randn(8192, 1024)")))
    assert not list(moved_widenings(graph, generated(graph, {}), SHEET))
