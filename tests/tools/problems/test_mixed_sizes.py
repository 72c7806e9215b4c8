"""Declared sizes are mixed, so that numbers which follow two sizes by chance are told from those that do."""

from __future__ import annotations

from itertools import combinations

from tests.tools.codegen.harness import generated, problem_of, traced_at_all_sizes
from tools.codegen import emit
from tools.problems import small_variants
from tools.problems.mixed_sizes import mixed_variants, mixtures

SCALED = """
import torch

ROWS, WIDTH, SIDE = 4, 256, 64
SMALL_SIZES = [{"ROWS": 2, "WIDTH": 12, "SIDE": 6}, {"ROWS": 4, "WIDTH": 32, "SIDE": 8}]


def scaled(x, y):
    return x * y.shape[0]


def example_inputs():
    return torch.rand(ROWS, WIDTH), torch.rand(SIDE)
"""
"""A side is a width by the rows at all declared sizes."""
HELD = SCALED.replace("y.shape[0]", "SIDE")


def test_any_two_constants_come_from_different_entries() -> None:
    """Few mixtures tell any two constants apart; what is the same in both entries stays."""
    one, two = dict.fromkeys("abcdefg", 1) | {"same": 5}, dict.fromkeys("abcdefg", 2) | {"same": 5}
    found = [*mixtures(one, two)]
    assert len(found) == 3
    assert all(any(mixed[a] != mixed[b] for mixed in found) for a, b in combinations("abcdefg", 2))
    assert {mixed["same"] for mixed in found} == {5}


def test_a_quotient_by_chance_is_not_taken_for_a_size() -> None:
    """A kernel that does not read what has the side takes that as a number, and makes it of no sizes that fit where all vary alike."""
    problem, graph = traced_at_all_sizes(SCALED, "scaled")
    source = emit(problem, graph, generated(graph, {})).source
    assert "x.shape[1] // x.shape[0]" not in source
    assert "y.shape[0])" in source


def test_mixtures_that_run_other_operators_or_none_are_left_out() -> None:
    """A width of one entry is no multiple of the side of the other."""
    unfit = SCALED.replace("x * y.shape[0]", "x.unflatten(1, (-1, y.shape[0]))").replace('"SIDE": 8', '"SIDE": 32')
    assert [variant.sizes for variant in mixed_variants(problem_of(unfit, "unfit"))] == [{"ROWS": 2, "WIDTH": 32, "SIDE": 32}]


def test_constants_that_fit_together_alone_are_mixed_with_the_others() -> None:
    """A side that is a multiple of its windows' comes from the entry that they come from, and the rows from the other."""
    windows = """
import torch

ROWS, SIDE, WINDOW = 16, 56, 7
SMALL_SIZES = [{"ROWS": 1, "SIDE": 6, "WINDOW": 3}, {"ROWS": 2, "SIDE": 8, "WINDOW": 4}]


class Model(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window, self.shift = window, window // 2

    def forward(self, x):
        at = (torch.arange(x.shape[1], device=x.device) + self.shift) % x.shape[1]
        return (x[:, at] * 2).unflatten(1, (-1, self.window))


def get_inputs():
    return [torch.randn(ROWS, SIDE)]


def get_init_inputs():
    return [WINDOW]
"""
    assert [variant.sizes for variant in mixed_variants(problem_of(windows, "windows"))] == [{"ROWS": 1, "SIDE": 8, "WINDOW": 4}]


def test_mixtures_that_run_as_one_of_the_entries_does_are_kept() -> None:
    """Of a single row a transposed copy is none; the first entry has one, too."""
    single = SCALED.replace("x * y.shape[0]", "(x.t().contiguous() + 1).t().contiguous() * y.shape[0]").replace('"ROWS": 2', '"ROWS": 1')
    problem = problem_of(single, "single")
    one, two = (len(variant.work.operators) for variant in small_variants(problem))
    assert one < two == len(problem.work.operators)
    assert [variant.sizes["ROWS"] for variant in mixed_variants(problem)] == [1, 1]


def test_nothing_is_mixed_that_cannot_be_told() -> None:
    """One entry has nothing to be mixed with; a constant that the reference itself uses is read off no tensor."""
    one = SCALED.replace(', {"ROWS": 4, "WIDTH": 32, "SIDE": 8}', "")
    assert mixed_variants(problem_of(one, "one")) == mixed_variants(problem_of(HELD, "held")) == ()
