"""Where the reference has no digits on inputs made to be hard, another rounding is right; whatever else is wrong stays so."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.support.breadth import covering, unlike
from tests.tools.evaluation.trusted.judged import judged_on, passes
from tools.evaluation.trusted.distributions import transform
from tools.evaluation.trusted.free_rounding import FreeRounding
from tools.evaluation.trusted.inputs import made_inputs, unusable
from tools.evaluation.trusted.reference import DeclaredReference
from tools.evaluation.trusted.rounding import to_tf32
from tools.evaluation.trusted.tolerance import Tolerance, has_digits
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.distributions import AS_MADE, NAMES
from tools.evaluation.wire.jobs.oracle import OracleAnswer
from tools.problems import load_problem, small_variants
from tools.records import DEFAULT_POLICY, Problem

DATA = Path(__file__).parents[4] / "data"
OPERATORS = DATA / "operators"
DEVIATION = """
import torch


def deviation(x, sources, targets):
    ones = torch.ones(len(targets), 1, device=x.device)
    n = torch.zeros(50, 1, device=x.device).index_add(0, targets, ones).clamp(min=1)
    met = x[sources]
    mean = torch.zeros_like(x).index_add(0, targets, met) / n
    squares = torch.zeros_like(x).index_add(0, targets, met * met) / n
    return torch.sqrt((squares - mean * mean).clamp(min=0) + 1e-5)


def example_inputs():
    return torch.randn(50, 16), torch.randint(0, 50, (120,)), torch.randint(0, 50, (120,))
"""
SOFTMAX = """
import torch


def softmax(x):
    return torch.softmax(x, -1)


def example_inputs():
    return (torch.randn(24, 40),)
"""
JUMP = """
import torch


def jump(x):
    return torch.sign(x * x - torch.relu(x).square())


def example_inputs():
    return (torch.randn(24, 40),)
"""
COUNT = """
import torch


def count(x):
    return torch.ones(65, device=x.device)[(x.sigmoid() * 64).long()] * (x * 3 - x * 2 - x)


def example_inputs():
    return (torch.randn(24, 40),)
"""
POLE = """
import torch


def pole(x, y):
    return y + 1e-10 / (x * x - torch.relu(x).square() + 1e-9)


def example_inputs():
    return torch.randn(24, 40), torch.randn(24, 40)
"""
TOTAL = """
import torch


def total(x):
    return x.sum(-1)


def example_inputs():
    return (torch.randn(24, 40),)
"""
LOSES_DIGITS = ("low bits", "times 64", "heavy tail", "sparse", "block diagonal", "denormals", "signed zeros")
Given = list[torch.Tensor]
Candidate = Callable[[Given], torch.Tensor]


def graph(distribution: str, seed: int = 0) -> Given:
    """Features and edges; a node that one edge reaches has no variance."""
    torch.manual_seed(seed)
    return transform(distribution, [torch.randn(50, 16), torch.randint(0, 50, (120,)), torch.randint(0, 50, (120,))])


def moments(given: Given) -> tuple[torch.Tensor, torch.Tensor]:
    """Means of what nodes meet, and of its squares."""
    x, sources, targets = given
    n = torch.zeros(50, 1).index_add(0, targets, torch.ones(len(targets), 1)).clamp(min=1)
    one, two = (torch.zeros_like(x).index_add(0, targets, met) / n for met in (x[sources], x[sources] ** 2))
    return one, two


def contracted(given: Given) -> torch.Tensor:
    """The honest kernel: the product is not rounded, as in a fused multiply-add."""
    mean, squares = moments(given)
    return torch.sqrt((squares.double() - mean.double() ** 2).float().clamp(min=0) + 1e-5)


def is_even(given: Given) -> torch.Tensor:
    """Mark nodes that one edge reaches, or none: they have no variance."""
    return (given[2].bincount(minlength=50) <= 1)[:, None]


def in_tf32(given: Given) -> torch.Tensor:
    """Squares of a shorter format."""
    return contracted([to_tf32(given[0]), *given[1:]])


def without_variance(given: Given) -> torch.Tensor:
    """The epsilon alone."""
    return torch.full_like(given[0], 1e-5**0.5)


def instead(value: float) -> Candidate:
    """One number where there is no variance."""
    return lambda given: torch.where(is_even(given), value, contracted(given))


def elsewhere(error: float) -> Candidate:
    """An error where there is variance; the rest is as it must be."""
    return lambda given: torch.where(is_even(given), 1.0, 1 + error) * contracted(given)


HOSTILE: dict[str, Candidate] = {
    "zero": instead(0.0),
    "one hundredth": instead(0.01),
    "not a number": instead(float("nan")),
    "no variance": without_variance,
    "a hundred thousandth elsewhere": elsewhere(1e-5),
    "a few roundoffs elsewhere": elsewhere(2e-6),
    "a shorter format": in_tf32,
}
USUAL = ("attention", "conv_block", "layer_norm", "log_sum_exp", "matmul_bias_gelu", "rms_norm_residual")
"""Of a product, a convolution or a row, with what follows it."""


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., OracleAnswer]:
    """The oracle, given a reference, inputs of a distribution, and what a candidate made of them."""

    def asked(reference: str, given: Given, distribution: str, value: torch.Tensor) -> OracleAnswer:
        file = tmp_path / "reference.py"
        file.write_text(reference)
        return judged_on(monkeypatch, load_problem(file), given, [value], distribution=distribution)

    return asked


@pytest.mark.parametrize("distribution", LOSES_DIGITS)
def test_one_rounding_less_is_right(judge: Callable[..., OracleAnswer], distribution: str) -> None:
    """A variance that is not quite nothing is as right as eager's zero, and a note says where that was needed."""
    found = [judge(DEVIATION, given, distribution, contracted(given)) for given in (graph(distribution, seed) for seed in range(4))]
    assert all(map(passes, found))
    assert any("are lost to the reference's own rounding" in note for answer in found for note in answer.notes)


def test_inputs_as_made_are_judged_as_ever(judge: Callable[..., OracleAnswer]) -> None:
    """What a problem is called with in earnest has the digits that the reference has."""
    given = graph(AS_MADE)
    assert passes(judge(DEVIATION, given, "negated", contracted(given)))
    assert not passes(judge(DEVIATION, given, AS_MADE, contracted(given)))


@pytest.mark.parametrize(("hostile", "distribution"), covering([(hostile, name) for hostile in HOSTILE for name in LOSES_DIGITS]))
def test_what_is_wrong_beside_stays_wrong(judge: Callable[..., OracleAnswer], hostile: str, distribution: str) -> None:
    """Elements without digits allow no constant, and lend nothing to others."""
    given = graph(distribution)
    assert not passes(judge(DEVIATION, given, distribution, HOSTILE[hostile](given)))


@pytest.mark.parametrize("distribution", NAMES)
def test_an_operator_with_digits_has_no_more_room(judge: Callable[..., OracleAnswer], distribution: str) -> None:
    """A softmax that is off by a little more than its limit in every element is wrong, whatever it is given."""
    torch.manual_seed(0)
    given = transform(distribution, [torch.randn(24, 40)])
    exact = torch.softmax(given[0].double(), -1)
    (call,) = judge(SOFTMAX, given, distribution, exact.float()).calls
    assert call.outputs[0].passed
    off = exact * (1 + 1.2 * call.outputs[0].limit_relative_l2)
    assert not passes(judge(SOFTMAX, given, distribution, off.float()))


@pytest.mark.parametrize("operator", unlike(USUAL, {"layer_norm", "log_sum_exp", "rms_norm_residual"}))
def test_no_element_of_a_usual_operator_is_free(operator: str) -> None:
    """However its operations are rounded, each element stays within the limit of one of its magnitude on the whole battery."""
    problem = small_variants(load_problem(OPERATORS / f"{operator}.py", policy=DEFAULT_POLICY))[0]
    assert {name: share for name in NAMES if (share := _free(problem, name))} == {}


def _free(problem: Problem, distribution: str) -> float:
    """The share of elements that another rounding takes beyond the limits of a call."""
    reference = DeclaredReference(problem, "cpu")
    tolerance = Tolerance(problem, reference.parameters(), "cpu")
    arguments = made_inputs(reference, CallSpec(seed=1, distribution=distribution, group=distribution))
    limits = tolerance.limits([tolerance.truth(partial(deepcopy, arguments), distribution).scale])
    if unusable(reference, deepcopy(arguments), distribution) or not has_digits(limits):
        return 0.0
    # what is no number is never right, so that all runs are made
    wrong = [torch.full_like(value, float("nan")) for value in reference.outputs(deepcopy(arguments))]
    rounding = FreeRounding(tolerance, lambda: deepcopy(arguments), distribution)
    rounding.held([wrong], limits)
    return max(float(rounding.free(place, limit).double().mean()) for place, limit in enumerate(limits))


@pytest.mark.parametrize(
    ("operator", "distribution", "place", "wrong"),
    [
        ("science/window_indicators", "all equal", 4, lambda value: value + 2),
        ("science/column_physics", "times 0.01", 1, lambda value: value + 1e-5),
        ("layers/soft_alignment", "offset", 1, lambda value: value * 1.01),
    ],
    ids=["a step at its edge", "what cancels to nothing", "digits that sums of thousands lose"],
)
def test_an_output_that_is_free_throughout_is_what_rounding_can_make_of_it(
    operator: str, distribution: str, place: int, wrong: Candidate
) -> None:
    """Where each element's digits are chance, no other number is right for it."""
    problem = small_variants(load_problem(DATA / "suites" / "strangers" / f"{operator}.py", policy=DEFAULT_POLICY))[0]
    reference = DeclaredReference(problem, "cpu")
    tolerance = Tolerance(problem, reference.parameters(), "cpu")
    arguments = made_inputs(reference, CallSpec(seed=1, distribution=distribution, group=distribution))
    limits = tolerance.limits([tolerance.truth(partial(deepcopy, arguments), distribution).scale])
    run = reference.outputs(deepcopy(arguments))
    run[place] = wrong(run[place])
    rounding = FreeRounding(tolerance, lambda: deepcopy(arguments), distribution)
    (held,) = rounding.held([run], limits)
    assert rounding.free(place, limits[place]).all()
    assert not held.errors[place].within(limits[place])


def test_a_denominator_of_either_sign_frees_what_it_divides_alone(judge: Callable[..., OracleAnswer]) -> None:
    """What lies beside a pole may be any number, of which a rounding less makes a large one, and none that is no number."""
    torch.manual_seed(0)
    near = torch.rand(24, 40) < 0.3
    x, y = torch.where(near, 1.0, -1.0) * torch.rand(24, 40).add(0.5), torch.rand(24, 40).add(1)
    rest = x.double() ** 2 - torch.relu(x).square().double() + 1e-9
    once_less = (y + 1e-10 / rest).float()
    judged = partial(judge, POLE, [x, y], "negated")
    assert float((once_less - y).abs().max()) > 0.4
    assert passes(judged(once_less))
    for wrong in (torch.where(near, float("nan"), once_less), torch.where(near, once_less, once_less * (1 + 1e-5)), once_less.roll(1)):
        assert not passes(judged(wrong))


def test_a_step_frees_its_own_height_alone(judge: Callable[..., OracleAnswer]) -> None:
    """Signs that rounding decides may be any; another number is none of them, and other signs are judged."""
    torch.manual_seed(0)
    edge = torch.rand(24, 40) < 0.05
    x, right = torch.where(edge, 1.0, -1.0) * torch.rand(24, 40).add(0.5), torch.where(edge, 0.0, 1.0)
    judged = partial(judge, JUMP, [x], "negated")
    answer = judged(torch.where(edge, torch.rand(24, 40).round(), right))
    assert answer.calls
    assert passes(answer)
    assert not passes(judged(torch.where(edge, 10.0, right)))
    assert not passes(judged(torch.where(edge, right, -right)))


def test_sums_of_small_integers_are_exact_as_ever(judge: Callable[..., OracleAnswer]) -> None:
    """Where nothing is rounded nothing may be rounded otherwise."""
    given = [torch.randint(-4, 5, (24, 40)).float()]
    right = given[0].sum(-1)
    assert passes(judge(TOTAL, given, "small integers", right))
    assert not passes(judge(TOTAL, given, "small integers", torch.nextafter(right, torch.tensor(100.0))))


def test_indices_are_not_made_of_other_roundings(judge: Callable[..., OracleAnswer]) -> None:
    """On a GPU one that is out of range would end the judge: nothing is free there."""
    given = [torch.rand(24, 40) + 20]
    right = given[0] * 3 - given[0] * 2 - given[0]
    assert not passes(judge(COUNT, given, "times 64", right + 1e-5))
