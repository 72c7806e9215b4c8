"""How wrong an output is and may be."""

from __future__ import annotations

import math

import pytest
import torch

from tools.evaluation.trusted import numerics
from tools.evaluation.trusted.numerics import EXACT, Errors
from tools.evaluation.trusted.rounding import to_tf32
from tools.records import PrecisionPolicy, TensorSpec

SPEC = TensorSpec(name="output0", shape=(64, 129), dtype="float32")
EXACT_POLICY = PrecisionPolicy()


def truth() -> torch.Tensor:
    """A float64 oracle."""
    return torch.randn(SPEC.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def judged(value: torch.Tensor, policy: PrecisionPolicy = EXACT_POLICY) -> bool:
    """Whether a value passes beside a reference that is only rounded."""
    oracle = truth()
    reference = oracle.float()
    own = numerics.distance(reference, oracle, reference)
    limit = numerics.limits(SPEC, policy, own, EXACT)
    return numerics.output_error(SPEC, numerics.distance(value, oracle, reference), own, limit).passed


def test_rounded_oracle_passes() -> None:
    """The oracle rounded to the output's dtype is within the limits."""
    assert judged(truth().float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_fails_under_exact(dtype: torch.dtype) -> None:
    """A result that went through a half format is not exact."""
    assert not judged(truth().to(dtype).float())


def test_tf32_fails_under_exact() -> None:
    """A result rounded to TF32's mantissa is not exact."""
    assert not judged(to_tf32(truth().float()))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_non_finite_element_fails(value: float) -> None:
    """A single NaN or infinity where the reference is finite fails, whatever the rest."""
    wrong = truth().float()
    wrong[3, 7] = value

    assert not judged(wrong)


def test_non_finite_elements_must_be_where_the_reference_has_them() -> None:
    """Infinities of the reference are no error where the candidate has the same, and are where it has the other sign."""
    oracle = truth()
    oracle[0, 0] = math.inf
    reference = oracle.float()
    flipped = reference.clone()
    flipped[0, 0] = -math.inf

    assert numerics.distance(reference, oracle, reference).relative_l2 < 1e-6
    assert numerics.distance(flipped, oracle, reference).relative_l2 == math.inf


def test_one_wrong_row_among_many_fails_by_the_worst_row() -> None:
    """An error in a single row shows in the worst row long before the whole norm."""
    oracle = torch.ones(10_000, 16, dtype=torch.float64)
    value = oracle.float()
    value[17] = 0

    errors = numerics.distance(value, oracle, oracle.float())

    assert errors.worst_row == pytest.approx(1.0)
    assert errors.relative_l2 == pytest.approx(0.01)


@pytest.mark.parametrize("piece", [1, 129, 129 * 5, 1 << 20])
def test_large_outputs_are_measured_in_pieces_of_whole_rows(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are measured at once, errors are the same, and NaN in the last row is found."""
    oracle, wrong = truth(), truth().float()
    wrong[40] *= 1.001
    whole = numerics.distance(wrong, oracle, oracle.float())
    monkeypatch.setattr(numerics, "_PIECE", piece)
    assert numerics.distance(wrong, oracle, oracle.float()) == whole
    wrong[-1, -1] = math.nan
    assert numerics.distance(wrong, oracle, oracle.float()) == numerics.INFINITE


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_masks_filled_with_the_least_number_are_judged(dtype: torch.dtype) -> None:
    """The oracle fills with the least number of float64: such elements must be the reference's, and hide no error beside them."""
    oracle = torch.randn(8, 32, dtype=torch.float64)
    reference = oracle.to(dtype)
    oracle[:, ::2], reference[:, ::2] = torch.finfo(torch.float64).min, torch.finfo(dtype).min
    limit = Errors(1e-3, 1e-3)
    assert numerics.distance(reference.clone(), oracle, reference).within(limit)
    for column, change in ((0, 0.5), (0, float("inf")), (1, 1.5)):
        wrong = reference.clone()
        wrong[:, column] *= change
        assert not numerics.distance(wrong, oracle, reference).within(limit)


def test_zeros_never_pass_for_tiny_values() -> None:
    """Values far below any absolute tolerance are judged relative to themselves."""
    oracle = truth() * 1e-30
    errors = numerics.distance(torch.zeros(SPEC.shape), oracle, oracle.float())

    assert errors.relative_l2 == pytest.approx(1.0)


def test_zero_oracle_demands_zeros() -> None:
    """Where the truth is zero the error itself counts."""
    zero = torch.zeros(4, 4, dtype=torch.float64)

    assert numerics.distance(zero.float(), zero, zero.float()) == EXACT
    assert numerics.distance(torch.ones(4, 4), zero, zero.float()).relative_l2 == pytest.approx(1.0)


def test_integers_equal_reference_or_oracle() -> None:
    """An integer is right where it equals the reference or the oracle, and nothing else."""
    spec = TensorSpec(name="output0", shape=(4,), dtype="int64")
    reference, oracle = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 9, 4])

    assert numerics.mismatch(torch.tensor([1, 2, 9, 4]), reference, oracle) == EXACT
    assert numerics.mismatch(torch.tensor([1, 2, 5, 4]), reference, oracle).relative_l2 == 0.25
    assert numerics.limits(spec, EXACT_POLICY, EXACT, EXACT) == EXACT


def test_limits_follow_the_reference_and_the_inputs() -> None:
    """A limit is the factor times the larger of the reference's error and the sensitivity, never below the floor."""
    policy = PrecisionPolicy(factor=3.0)

    assert numerics.limits(SPEC, policy, Errors(1e-4, 2e-4), EXACT) == Errors(pytest.approx(3e-4), pytest.approx(6e-4))
    assert numerics.limits(SPEC, policy, EXACT, Errors(1e-3, 0.0)).relative_l2 == pytest.approx(3e-3)
    assert numerics.limits(SPEC, policy, EXACT, EXACT).relative_l2 == pytest.approx(16 * 2**-24)


def test_nan_error_never_passes() -> None:
    """An error that is NaN is outside any limit."""
    error = numerics.output_error(SPEC, Errors(math.nan, 0.0), EXACT, Errors(1.0, 1.0))

    assert not error.passed
    assert error.severity == math.inf


def test_infinite_error_survives_json() -> None:
    """An infinite error comes back from JSON as it was."""
    error = numerics.output_error(SPEC, numerics.INFINITE, EXACT, Errors(1.0, 1.0))

    assert type(error).model_validate_json(error.model_dump_json()) == error


def test_unit_roundoff_is_the_policys_or_the_dtypes() -> None:
    """A looser policy counts, a tighter one than the dtype does not."""
    assert numerics.unit_roundoff(PrecisionPolicy(name="tf32"), "float32") == 2**-11
    assert numerics.unit_roundoff(PrecisionPolicy(name="tf32"), "bfloat16") == 2**-8
    assert numerics.unit_roundoff(EXACT_POLICY, "float32") == 2**-24


def test_result_too_small_for_a_normal_float_may_be_flushed() -> None:
    """Zero in the place of a denormal is no error; anything else is measured."""
    oracle = torch.tensor([1.0, 3e-39, 2.0], dtype=torch.float64)
    flushed = torch.tensor([1.0, 0.0, 2.0])

    assert numerics.distance(flushed, oracle, oracle.float()) == EXACT
    assert numerics.distance(torch.tensor([0.0, 0.0, 2.0]), oracle, oracle.float()).relative_l2 > 0.4


def test_explicit_tolerance_raises_both_limits() -> None:
    """A stated tolerance is the least limit of the whole, and its own of the worst row."""
    limit = numerics.limits(SPEC, PrecisionPolicy(tolerance=1e-3, row_tolerance=5e-3), EXACT, EXACT)

    assert limit == Errors(1e-3, 5e-3)
