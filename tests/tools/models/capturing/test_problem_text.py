"""A module's call written as a problem file: it computes the same, and its sizes may vary where the module leaves them free."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.tools.models.samples import Norm
from tools.evaluation.trusted.widening import widened_casts
from tools.models.capturing.problem_text import ProblemText
from tools.models.forward.text import UntraceableError


class Joined(nn.Module):
    """Takes a pair and a number, keeps a table and a constant, gives two results."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 4)
        self.register_buffer("table", torch.arange(4.0), persistent=False)

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor], factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = pair
        places = torch.arange(left.shape[0], device=left.device)
        found = self.inner(left).view(left.shape[0], 2, 2).transpose(1, 2).flatten(1)
        return found * factor + self.table, right.float() + places[:, None] * torch.tensor([0.5, 1.5])


def run(text: ProblemText, module: nn.Module, inputs: list[torch.Tensor]) -> Any:
    """Run the file's Model with the module's own weights."""
    space: dict[str, Any] = {}
    exec(text.source, space)
    model = space["Model"]()
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    with torch.no_grad():
        for name, own in text.parameters.items():
            getattr(model, name).copy_(state[own])
        return model(*inputs)


def test_the_file_computes_what_the_module_does() -> None:
    """Pairs are flattened, numbers are written, parameters have their names, buffers and constants are kept."""
    module = Joined().eval()
    pair = (torch.randn(5, 8), torch.randint(0, 9, (5, 2)))
    text = ProblemText(module, (pair,), {"factor": 3.0}, "Joined")
    assert text.inputs == ["pair_0", "pair_1"]
    assert text.parameters == {"inner_weight": "inner.weight", "inner_bias": "inner.bias", "table": "table"}
    for mine, theirs in zip(run(text, module, list(pair)), module(pair, 3.0), strict=True):
        assert torch.equal(mine, theirs)


def test_numbers_that_a_forward_makes_tensors_of_are_made_in_the_file() -> None:
    """They are no parameters, as a module has none to give in their place; a tensor that it holds and does not register is named."""

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / torch.sqrt(torch.tensor(32.0)) + torch.tensor([1.0, float("-inf")])

    class Holding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.tensor(2.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    module, given = Scaled().eval(), torch.randn(5, 2)
    text = ProblemText(module, (given,), {}, "Scaled")
    assert text.parameters == {}
    assert "register_buffer" not in text.source
    assert torch.equal(run(text, module, [given]), module(given))
    with pytest.raises(UntraceableError, match="holds scale, a tensor that is neither a parameter nor a buffer"):
        ProblemText(Holding().eval(), (given,), {}, "Holding")


def test_parts_that_are_called_by_numbers_get_names() -> None:
    """A sequence calls its parts 0 and 1, which no attribute of a written class can be called."""
    module = nn.Sequential(nn.Linear(8, 4), nn.ReLU()).eval()
    given = torch.randn(5, 8)
    text = ProblemText(module, (given,), {}, "Sequential")
    assert text.parameters == {"_0_weight": "0.weight", "_0_bias": "0.bias"}
    assert torch.equal(run(text, module, [given]), module(given))


def test_sizes_that_a_module_leaves_free_are_constants_of_the_file() -> None:
    """The file runs at other sizes, which its name for small sizes lists."""
    module = Norm().eval()
    text = ProblemText(module, (torch.randn(2, 6, 16),), {}, "Norm")
    assert "size0 = 2\nsize1 = 6\n" in text.source
    assert "SMALL_SIZES = [{'size0': 7, 'size1': 5}, {'size0': 1, 'size1': 1}]" in text.source
    x = torch.randn(3, 4, 16)
    assert torch.equal(run(text, module, [x]), module(x))


def test_inputs_are_drawn_like_those_that_were_captured() -> None:
    """Half types, whole numbers in their range, booleans, tensors of one sign and complex ones."""

    class Sum(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
            return a + b + c.to(a.dtype) + d + e

    turns = torch.polar(torch.ones(4), torch.rand(4))
    given = (torch.randn(4).bfloat16(), torch.tensor([3, 9, 5, 4]), torch.rand(4) < 0.5, torch.full((4,), 2.5), turns)
    space: dict[str, Any] = {}
    exec(ProblemText(Sum().eval(), given, {}, "Sum").source, space)
    drawn = space["get_inputs"]()
    assert [(value.dtype, value.shape) for value in drawn] == [(value.dtype, value.shape) for value in given]
    assert int(drawn[1].min()) >= 3
    assert int(drawn[1].max()) <= 9
    assert torch.equal(drawn[3], given[3])


class Picked(nn.Module):
    """Takes rows by number."""

    def forward(self, x: torch.Tensor, rows: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        return x[rows] * kinds[:, None]


def test_whole_numbers_that_are_places_along_a_size_follow_it() -> None:
    """At another size they are still within the tensor; numbers that have nothing to do with it keep their range."""
    rows, kinds = torch.tensor([0, 8, 3, 5, 7]), torch.tensor([1, 2, 3, 1, 2])
    text = ProblemText(Picked().eval(), (torch.randn(9, 4), rows, kinds), {}, "Picked")
    assert "torch.randint(0, size0, (size2,))" in text.source
    assert "torch.randint(1, 4, (size2,))" in text.source


def test_a_call_with_an_object_is_refused() -> None:
    """Whatever is neither tensor nor plain value is named; of a cache it is said how to do without."""

    class DynamicCache:
        pass

    class Cached(nn.Module):
        def forward(self, x: torch.Tensor, cache: object) -> torch.Tensor:
            return x + 1

    with pytest.raises(UntraceableError, match="it is called with object"):
        ProblemText(Cached().eval(), (torch.randn(2), object()), {}, "Cached")
    with pytest.raises(UntraceableError, match=r"it is called with DynamicCache, which is state \(use_cache=False does without\)"):
        ProblemText(Cached().eval(), (torch.randn(2), DynamicCache()), {}, "Cached")


def test_a_buffer_that_is_written_to_is_refused() -> None:
    """A module that keeps something in a buffer changes it in place."""

    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * 2

    with pytest.raises(UntraceableError, match="updates a tensor in place"):
        ProblemText(Counts().eval(), (torch.randn(2),), {}, "Counts")


class Wide(nn.Module):
    """Works in float32 on halves beside a float32 input, and multiplies in their own format."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        wide = torch.einsum("rc,ck->rk", x.float(), scale)
        return nn.functional.linear(wide.to(x.dtype), self.weight)


def test_casts_follow_a_run_in_float64() -> None:
    """What is rounded back to a half follows the inputs: an oracle can run the file, and the file is the module's."""
    module = Wide().to(torch.bfloat16).eval()
    x, scale = torch.randn(3, 4).bfloat16(), torch.randn(4, 4)
    text = ProblemText(module, (x, scale), {}, "Wide")
    assert torch.equal(run(text, module, [x, scale]), module(x, scale))
    space: dict[str, Any] = {}
    exec(text.source, space)
    with widened_casts():
        assert space["Model"]().double()(x.double(), scale.double()).dtype == torch.float64
