"""A shorter format under `exact` is caught at any size, and honest ways of computing pass, on inputs that hide it as on others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from tools.evaluation.supervisor.checking import call_plan
from tools.evaluation.trusted.inputs import made_inputs, unusable
from tools.evaluation.trusted.rounding import rounded
from tools.evaluation.trusted.tolerance import Tolerance, error_of, has_digits
from tools.evaluation.wire.calls import CallSpec
from tools.evaluation.wire.distributions import AS_MADE, HARD
from tools.problems import load_problem
from tools.records import PrecisionPolicy, Problem

Kernel = Callable[..., torch.Tensor]
TF32, BF16 = 2.0**-11, 2.0**-8

SCALE = "def work(x, y):\n    return x * y\n"
PRODUCT = "def work(x, y):\n    return x @ y\n"
MEAN = "def work(x, y):\n    return (x * y).mean(-1)\n"
MAKERS = {"random": "torch.randn({a}), torch.randn({b})", "integers": "torch.randint(1, 5, ({a})).float(), torch.ones({b})"}


def problem(folder: Path, work: str, a: str, b: str, maker: str, policy: PrecisionPolicy | None = None) -> Problem:
    """A problem of one function of two tensors."""
    file = folder / "work.py"
    file.write_text(f"import torch\n{work}\ndef example_inputs():\n    return ({MAKERS[maker].format(a=a, b=b)})\n")
    return load_problem(file, policy or PrecisionPolicy())


def passes(given: Problem, kernel: Kernel, names: tuple[str, ...] = (AS_MADE, *HARD)) -> bool:
    """Whether a kernel is within every limit, on the problem's own inputs and the hard distributions."""
    tolerance = Tolerance(given, {}, "cpu")
    for name in names:
        arguments = made_inputs(tolerance.reference, CallSpec(seed=call_plan.new_seed(), distribution=name, group=name))
        truth = tolerance.truth(partial(list, arguments), name)
        limits = tolerance.limits([truth.scale])
        if unusable(tolerance.reference, arguments, name) or not has_digits(limits):
            continue
        errors = error_of(given.abi.outputs[0], kernel(*arguments), truth.reference[0], truth.oracle[0])
        if not (errors.relative_l2 <= limits[0].relative_l2 and errors.worst_row <= limits[0].worst_row):
            return False
    return True


def in_format(work: Kernel, roundoff: float) -> Kernel:
    """The same work on inputs rounded to a shorter format."""
    return lambda x, y: work(rounded(x, roundoff), rounded(y, roundoff))


def half_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A product that adds in fp16."""
    total = torch.zeros(x.shape[0], y.shape[1], dtype=torch.float16)
    for k in range(x.shape[1]):
        total = total + (x[:, k : k + 1] * y[k : k + 1]).half()
    return total.float()


def backwards(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A product that adds in another order, in float32."""
    total = torch.zeros(x.shape[0], y.shape[1])
    for k in reversed(range(x.shape[1])):
        total = total + x[:, k : k + 1] * y[k : k + 1]
    return total


def in_lanes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A product that adds in another order, in float32: from the end, in eight partial sums, as vectors do."""
    totals = torch.zeros(8, x.shape[0], y.shape[1])
    for k in reversed(range(x.shape[1])):
        totals[k % 8] += x[:, k : k + 1] * y[k : k + 1]
    return totals.flip(0).sum(0)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("roundoff", [TF32, BF16], ids=["tf32", "bf16"])
@pytest.mark.parametrize("elements", [1, 2, 7, 4099])
def test_pointwise_work_on_shorter_inputs_is_caught(tmp_path: Path, elements: int, roundoff: float, maker: str) -> None:
    """From one element on, inputs in TF32, fp16 or bf16 exceed a limit, even where the problem's own inputs hide it; float32 passes."""
    given = problem(tmp_path, SCALE, f"{elements},", f"{elements},", maker)

    assert not passes(given, in_format(torch.mul, roundoff))
    assert passes(given, torch.mul)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("roundoff", [TF32, BF16], ids=["tf32", "bf16"])
@pytest.mark.parametrize("k", [1, 2, 3, 64, 1000])
def test_products_on_shorter_inputs_are_caught(tmp_path: Path, k: int, roundoff: float, maker: str) -> None:
    """A product of any depth, one included, may not round its operands; another order of summation is no offence."""
    given = problem(tmp_path, PRODUCT, f"3, {k}", f"{k}, 5", maker)

    assert not passes(given, in_format(torch.matmul, roundoff))
    assert passes(given, in_lanes)
    # where a thousand terms are all rounded one way, a running sum is about five times as far off as the BLAS of a processor with wide
    # vectors, and `exact` allows four: it depends on the machine
    if (k, maker) != (1000, "integers"):
        assert passes(given, backwards)


@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_sums_in_fp16_are_caught(tmp_path: Path, k: int) -> None:
    """A product that accumulates in fp16 is caught, however short the sum."""
    assert not passes(problem(tmp_path, PRODUCT, f"2, {k}", f"{k}, 3", "integers"), half_sum)


@pytest.mark.parametrize("roundoff", [TF32, BF16], ids=["tf32", "bf16"])
def test_averages_do_not_hide_a_shorter_format(tmp_path: Path, roundoff: float) -> None:
    """Rounding errors that average out over a long sum do not where all of them go one way."""
    given = problem(tmp_path, MEAN, "2, 50000", "2, 50000", "integers")

    def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y).mean(-1)

    assert not passes(given, in_format(work, roundoff), ("low bits",))
    assert passes(given, lambda x, y: (x.flip(-1) * y.flip(-1)).sum(-1) / 50000)


@pytest.mark.parametrize("name", ["tf32", "fp16"])
@pytest.mark.parametrize("k", [1, 3, 64])
def test_a_policy_allows_its_own_format_and_none_below(tmp_path: Path, name: str, k: int) -> None:
    """Under tf32 and fp16 ten bits pass, truncated or rounded, and the seven of bf16 do not."""
    given = problem(tmp_path, PRODUCT, f"3, {k}", f"{k}, 5", "random", PrecisionPolicy.model_validate({"name": name}))
    finite = (AS_MADE, "low bits", "constant rows")

    assert passes(given, in_format(torch.matmul, TF32), finite)
    assert not passes(given, in_format(torch.matmul, BF16), finite)


def test_a_tolerance_allows_what_it_says(tmp_path: Path) -> None:
    """An explicit tolerance lets a shorter format pass, and no more than that."""
    given = problem(tmp_path, SCALE, "64, 64", "64, 64", "random", PrecisionPolicy(tolerance=2e-3))

    assert passes(given, in_format(torch.mul, TF32), (AS_MADE,))
    assert not passes(given, in_format(torch.mul, 2.0**-6), (AS_MADE,))


def test_small_integers_must_be_exact_where_the_work_is_linear(tmp_path: Path) -> None:
    """On small integers a product has no rounding at all, so none is allowed; where it rounds in the reference too, limits stay."""
    exact = Tolerance(problem(tmp_path, PRODUCT, "8, 32", "32, 8", "random"), {}, "cpu")
    rounding = Tolerance(problem(tmp_path, MEAN, "8, 31", "8, 31", "random"), {}, "cpu")
    scales = []
    for tolerance in (exact, rounding):
        arguments = made_inputs(tolerance.reference, CallSpec(seed=1, distribution="small integers", group=""))
        scales.append(tolerance.limits([tolerance.truth(partial(list, arguments), "small integers").scale])[0])

    assert scales[0] == (0.0, 0.0)
    assert scales[1].relative_l2 > 0
