"""Capturing a model: equal calls are one group, what cannot be replaced is named with its reason, and the rest is traced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from kernelwright.models.report import parted
from tests.tools.models.samples import Mixed, Norm
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.records import TENSOR, Capture, Group
from tools.models.suitability import static_reason


class BySize(nn.Module):
    """Treats one row in another way."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return x.sin() + 1.0 if x.shape[0] == 1 else x.cos() * 2.0


class Two(nn.Module):
    """Holds one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = BySize()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call it."""
        return self.inner(x).exp()


@pytest.fixture(scope="module")
def found() -> Capture:
    """A capture of the model that holds everything."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    # as in the process for captures: threads that wait for a core would take all of the time
    torch.set_num_threads(1)
    try:
        return capture(Mixed().eval(), [Workload("rows", (torch.randn(6, 16),), {}, 1.0), Workload("row", (torch.randn(1, 16),), {}, 3.0)])
    finally:
        torch.set_num_threads(threads)


def of(found: Capture, title: str) -> list[Group]:
    """Groups of a class, those of six rows alone."""
    return [group for group in found.groups if group.title == title and "rows" in group.calls]


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("Noisy", "it draws random numbers (aten.rand_like.default)"),
        ("InPlace", "it updates a tensor in place"),
        ("Remembers", "it keeps state between calls"),
        ("Branches", "its control flow depends on data"),
        ("Narrow", "it is quantised (weights of torch.int8)"),
        ("Odd", "it works on a subclass of tensor (Labelled)"),
        ("Linear", "its weights are tied to another module's"),
        ("Masked", "it is given infinities or NaN, as a mask has them"),
    ],
)
def test_what_cannot_be_replaced_is_named_with_its_reason(found: Capture, title: str, reason: str) -> None:
    """Random numbers, writes in place, state, control flow by data, quantised and tied weights, subclasses of tensor, masks."""
    groups = of(found, title)
    assert {group.reason for group in groups} == {reason}
    assert not any(group.trace for group in groups)


def test_the_rest_is_traced_all_the_same(found: Capture) -> None:
    """Modules beside those that are left alone can be optimised."""
    assert all(group.trace and not group.reason for group in of(found, "Norm"))


def test_equal_calls_are_one_group(found: Capture) -> None:
    """Modules of one class and configuration with equal inputs are together; another eps is another group."""
    assert {group.paths for group in of(found, "Norm")} == {("first", "second"), ("other",)}


def test_calls_of_other_sizes_are_one_problem_with_several_shapes(found: Capture) -> None:
    """Named by their workloads, with how often each counts: calls by the workload's weight."""
    [group] = [group for group in found.groups if group.paths == ("first", "second")]
    assert (group.name, group.calls) == ("norm", {"rows": 2, "row": 2})
    assert group.trace is not None
    assert [(one.name, one.weight, one.abi.inputs[0].shape) for one in group.trace.shapes] == [
        ("rows", 2.0, (6, 16)),
        ("row", 6.0, (1, 16)),
    ]
    assert "WORKLOADS = {'rows': {'size0': 6}, 'row': {'size0': 1}}" in group.trace.source


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Shares of the time without what a busy machine does to threads that wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_product_of_one_row_of_few_and_of_many_are_operators_of_their_own() -> None:
    """One new token, those of some sequences and a prompt: a kernel that is best for one of them is not for the others."""
    sizes = {"prompt": 200, "batch": 6, "others": 7, "token": 1}
    workloads = [Workload(name, (torch.randn(rows, 1, 16),), {}, 1.0) for name, rows in sizes.items()]
    found = capture(nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)).eval(), workloads)
    calls = {(group.title, *sorted(group.calls)) for group in found.groups if group.title != "Sequential"}
    products = {("Linear", "prompt"), ("Linear", "batch", "others"), ("Linear", "token")}
    assert calls == {*products, ("LayerNorm", *sorted(sizes))}
    [line] = [line for line in parted(found) if line.startswith("Linear")]
    assert "a product of one row, of few rows and of many are different kernels" in line


def test_what_one_problem_cannot_stand_for_is_a_group_for_each_shape() -> None:
    """A module that does something else for one row: its operators carry the names of their workloads."""
    found = capture(Two().eval(), [Workload("rows", (torch.randn(6, 16),), {}, 1.0), Workload("row", (torch.randn(1, 16),), {}, 3.0)])
    assert {(group.name, *group.calls) for group in found.groups if group.title == "BySize"} == {
        ("by_size_rows", "rows"),
        ("by_size_row", "row"),
    }
    assert {group.apart for group in found.groups if group.title == "BySize"} == {
        "what it was traced to at one shape gives something else at another"
    }
    assert any(line.startswith("BySize is called at several shapes, and no one kernel serves them all") for line in parted(found))


class Ends(nn.Module):
    """Norms with weights of their own, the last of which gets one row."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = Norm(), Norm()
        nn.init.uniform_(self.first.weight)
        nn.init.uniform_(self.last.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return self.last(self.first(x)[-1:])


def test_modules_with_other_weights_share_a_problem_at_several_shapes() -> None:
    """The final norm of a model, say, which gets the last token alone."""
    [group] = [one for one in capture(Ends().eval(), [Workload("rows", (torch.randn(6, 16),), {}, 1.0)]).groups if one.title == "Norm"]
    assert group.trace is not None
    assert (group.paths, len(group.trace.shapes), group.apart) == (("first", "last"), 2, "")


class Halves(nn.Module):
    """A norm of one half of what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = Norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return self.norm(x.chunk(2, dim=-1)[1])


def test_an_input_that_is_part_of_a_wider_tensor_is_known_as_such() -> None:
    """A guard that asked for one in order would turn every call away."""
    [group] = [one for one in capture(Halves().eval(), [Workload("rows", (torch.randn(6, 32),), {}, 1.0)]).groups if one.title == "Norm"]
    assert group.trace is not None
    assert [one.contiguous for one in group.trace.inputs] == [False]


def test_many_shapes_are_told_by_a_few() -> None:
    """Those of a mixture's experts, say: at most four stand for all, and all calls count."""
    sizes = range(2, 20, 2)
    calls = [Workload(f"rows {size}", (torch.randn(size, 16),), {}, 1.0) for size in sizes]
    [group] = [one for one in capture(nn.Sequential(Norm()).eval(), calls).groups if one.title == "Norm"]
    assert group.trace is not None
    assert (len(group.trace.shapes), sum(group.calls.values())) == (4, len(sizes))
    assert sum(one.weight for one in group.trace.shapes) == len(sizes)


def test_shares_are_of_all_workloads_by_their_weights(found: Capture) -> None:
    """The whole model takes all of the time, its parts less than that together."""
    [whole] = [group for group in found.groups if group.paths == ("",) and "row" in group.calls]
    leaves = [group for group in found.groups if group.paths != ("",)]
    assert 0.0 < whole.share <= 1.0
    assert all(0.0 <= group.share <= 1.0 for group in leaves)
    assert found.weights == {"rows": 1.0, "row": 3.0}


def test_a_trace_says_how_the_module_is_called(found: Capture) -> None:
    """Structure of the call and the result, and which parameter is which."""
    [group] = [one for one in of(found, "Norm") if one.paths == ("other",)]
    assert group.trace is not None
    assert group.trace.structure == [[TENSOR], {}]
    assert group.trace.result == TENSOR
    assert group.trace.parameters == {"weight": "weight"}
    assert [one.shape for one in group.trace.outputs] == [("x.shape[0]", "16")]


class Numbered(nn.Module):
    """Knows its place, and does something else from the third on."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.layer_idx = place
        self.weight = nn.Parameter(torch.rand(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale and squash."""
        return torch.tanh(x * self.weight) if self.layer_idx < 2 else torch.sigmoid(x * self.weight)


def test_modules_that_only_know_their_place_are_one_group() -> None:
    """A layer's number keeps no two apart, unless they give different results with the same weights."""
    model = nn.Sequential(*map(Numbered, range(4))).eval()
    found = capture(model, [Workload("rows", (torch.randn(6, 16),), {}, 1.0)])
    layers = [group for group in found.groups if group.title == "Numbered"]
    assert {group.paths for group in layers} == {("0", "1"), ("2", "3")}
    assert all(group.trace and group.calls == {"rows": 2} for group in layers)


def test_tensors_on_several_devices_are_named() -> None:
    """A module whose weights and input lie on different devices is left alone."""
    reason = static_reason(Norm().eval().to("meta"), (torch.randn(2, 16),), set())
    assert reason == "its tensors are on several devices (cpu, meta)"


def test_a_module_in_training_mode_is_named() -> None:
    """What trains is left alone."""
    assert static_reason(Norm(), (torch.randn(2, 16),), set()) == "it is in training mode"
