"""Modules and functions given in Python: how they are called, and which of their sizes may vary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from logging.handlers import BufferingHandler
from typing import Any

import pytest
import torch
from torch import nn

from tools.errors import UserError
from tools.guards import contract_of
from tools.guards.contract import Size
from tools.problems import open_problem, problem_from_module, reload_problem, small_variants
from tools.records import Problem, ScalarSpec


class Scaled(nn.Module):
    """A module with every kind of argument."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 7)

    def forward(
        self, x: torch.Tensor, times: int = 2, mask: torch.Tensor | None = None, *, mode: str = "relu", flag: bool = True
    ) -> torch.Tensor:
        """Branch on plain values."""
        y = self.linear(x) * times
        y = y if mask is None else y + mask
        return torch.relu(y) if flag and mode == "relu" else y


def shifted(x: torch.Tensor, shift: float = 0.5) -> torch.Tensor:
    """A function with a default."""
    return torch.relu(x) + shift


@pytest.fixture(scope="module")
def batched() -> Problem:
    """A module whose first dimension is dynamic."""
    return problem_from_module(Scaled().eval(), torch.randn(40, 12), dynamic=0)


def test_a_tensor_alone_is_an_example(batched: Problem) -> None:
    """One argument needs no tuple, and defaults that are left out stay out."""
    assert [one.name for one in batched.abi.arguments] == ["x"]


def test_keyword_arguments_are_put_in_their_places() -> None:
    """What lies before a given argument keeps its default, and may be left out of a call where the default is what was given."""
    problem = problem_from_module(Scaled().eval(), {"x": torch.randn(4, 12), "mask": None, "times": 3})
    assert problem.abi.arguments[1:] == (ScalarSpec(name="times", value=3), ScalarSpec(name="mask", value=None, optional=True))
    problem = problem_from_module(Scaled().eval(), {"x": torch.randn(4, 12), "mask": None})
    assert problem.abi.arguments[1] == ScalarSpec(name="times", value=2, optional=True)


def test_a_function_needs_no_source() -> None:
    """Functions and lambdas are traced: their text is not needed, and a lambda is called `function`."""
    named = problem_from_module(shifted, (torch.randn(4, 6), 0.5))
    unnamed = problem_from_module(lambda x, y: x @ y, (torch.randn(4, 6), torch.randn(6, 3)))
    assert (named.name, [one.name for one in named.abi.arguments]) == ("shifted", ["x", "shift"])
    assert (unnamed.name, unnamed.entry, unnamed.abi.parameters) == ("function", "function", ())


def test_a_dynamic_size_gives_variants(batched: Problem) -> None:
    """A kernel is judged at other values of the size, and its guard lets the size be any."""
    variants = small_variants(batched)
    assert [one.sizes for one in variants] == [{"x[0]": 7}, {"x[0]": 16}, {"x[0]": 1}, {"x[0]": 5}]
    assert [one.abi.inputs[0].shape for one in variants] == [(7, 12), (16, 12), (1, 12), (5, 12)]
    assert [tuple(one.shape) for one in open_problem(variants[0]).outputs(open_problem(variants[0]).inputs(1))] == [(7, 7)]
    assert contract_of(batched, variants).inputs[0].sizes == (Size("any"), 12)  # type: ignore[union-attr]  # it is a tensor's


def test_only_the_chosen_sizes_vary() -> None:
    """What the module would leave free besides stays as in the example, however small the rest is."""
    either = problem_from_module(shifted, torch.randn(40, 60), dynamic={"x": 1})
    assert {one.abi.inputs[0].shape[0] for one in small_variants(either)} == {40}


def test_a_large_module_is_judged_at_its_dynamic_sizes() -> None:
    """Weights that no small variant could have do not keep a dynamic size from being varied."""
    problem = problem_from_module(nn.Linear(512, 512), torch.randn(300, 512), dynamic=0)
    assert [one.abi.inputs[0].shape[0] for one in small_variants(problem)] == [7, 16, 1, 5]


def test_a_dynamic_problem_is_read_anew_as_it_was(batched: Problem) -> None:
    """What the evaluator reads out of the source is the record that came with it."""
    assert reload_problem(batched) == batched


def test_dimensions_of_one_size_are_one() -> None:
    """Arguments that share a size share the dimension; others may be chosen each."""
    add = problem_from_module(lambda x, y: x + y, (torch.randn(8, 6), torch.randn(8, 6)), dynamic=0)
    assert small_variants(add)[0].sizes == {"x[0]": 7}
    both = problem_from_module(lambda x, y: x @ y, (torch.randn(8, 6), torch.randn(6, 9)), dynamic={"x": 0, "y": (1,)})
    assert small_variants(both)[0].sizes == {"x[0]": 7, "y[1]": 11}


def test_dynamic_sizes_are_told_apart() -> None:
    """However alike the example's sizes are, no two of six have the same values at all that a kernel is judged at."""

    def outer(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x.flatten()[:, None] + y.flatten() + z.flatten()[:, None, None]

    problem = problem_from_module(outer, tuple(torch.randn(4, 4) for _ in range(3)), dynamic={"x": (0, 1), "y": (0, 1), "z": (0, 1)})
    variants = small_variants(problem)
    assert len({tuple(one.sizes[label] for one in variants) for label in variants[0].sizes}) == len(variants[0].sizes) == 6


MODULE = nn.Linear(6, 4)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a name": (lambda: problem_from_module(shifted, torch.randn(4, 6), dynamic={"y": 0}), "No tensor argument is called 'y'"),
    "a dimension": (lambda: problem_from_module(shifted, torch.randn(4, 6), dynamic={"x": 2}), "x has no dimension 2"),
    "no dimension": (lambda: problem_from_module(shifted, torch.randn(4, 6), dynamic=3), "No tensor among"),
    "a single one": (lambda: problem_from_module(shifted, torch.randn(1, 6), dynamic=0), "is dynamic and 1 in the example"),
    "a fixed size": (
        lambda: problem_from_module(MODULE, torch.randn(4, 6), dynamic=1),
        "fixes dimension 1 of input, which is to be dynamic, at 6",
    ),
    "a keyword": (lambda: problem_from_module(Scaled(), {"z": 1}), "cannot be called with those keyword arguments"),
    "keyword only": (lambda: problem_from_module(Scaled(), {"x": torch.randn(4, 12), "mode": "relu"}), "by keyword alone"),
    "a shape": (lambda: problem_from_module(MODULE, torch.randn(4, 5)), "mat1 and mat2 shapes cannot be multiplied (4x5 and 6x4)"),
    "built in": (lambda: problem_from_module(torch.relu, torch.randn(4, 5)), "relu is built in"),
    "hidden weights": (lambda: problem_from_module(lambda x: MODULE(x) + 1, torch.randn(4, 6)), "calls a module (MODULE)"),
    "a method": (lambda: problem_from_module(MODULE.forward, torch.randn(4, 6)), "calls a module"),
}


@pytest.fixture
def warned() -> Iterator[list[logging.LogRecord]]:
    """What anybody logs as a warning or worse; torch's loggers hand nothing on to the root's."""
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger) and not each.propagate]
    kept = BufferingHandler(1000)
    kept.setLevel(logging.WARNING)
    for logger in (logging.root, *loggers):
        logger.addHandler(kept)
    yield kept.buffer
    for logger in (logging.root, *loggers):
        logger.removeHandler(kept)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_gets_one_line(case: str, warned: list[logging.LogRecord]) -> None:
    """What does not fit is said in one line, with nothing of torch's own traces."""
    attempt, words = WRONG[case]
    with pytest.raises(UserError) as caught:
        attempt()
    assert words in caught.value.what
    assert "\n" not in caught.value.what + caught.value.mend
    assert not warned
