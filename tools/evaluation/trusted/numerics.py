"""How wrong an output is, and how wrong it may be.

Errors are relative to a float64 oracle. The limit is `factor` times the largest of: the reference's own error at its
declared precision; the oracle's change when its float inputs are known no better than that precision (a result
cannot be asked to have digits that its inputs do not determine); and never below a floor of a few units in the last place,
because GPU libraries' elementary functions are that far from correctly rounded. An explicit tolerance raises it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tools.float8 import NAMES, widened
from tools.records import OutputError, PrecisionPolicy, TensorSpec

if TYPE_CHECKING:
    import torch

ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "tf32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8} | {
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "complex64": 2.0**-24,
}
"""Half the distance from 1 to the next number, by format."""

FLOOR_ROUNDOFFS = {"float64": 2048.0, "float32": 16.0, "float16": 1.0, "bfloat16": 1.0, "float8_e4m3fn": 0.25, "float8_e5m2": 0.25} | {
    "complex64": 16.0
}
"""Smallest limit of the relative L2 error in roundoffs of the output's dtype.

float32: exp, tanh and erf on a GPU are off by up to 2 units in the last place (CUDA programming guide, mathematical
functions appendix), and a fused chain of four of them by 8 units, that is 16 roundoffs: 9.5e-7, where TF32 or fp16 inputs make
2.9e-4. Half formats: the rounding of the result dominates. float8: the oracle's result is rounded to it, too, so that only ties
may differ; truncated results are off by four times as much. float64: the oracle has no more digits than the candidate, so the
floor alone judges sums in another order. complex64 is judged as its parts, which are float32.
"""

POLICY_FLOOR = {"default": 0.0, "exact": 0.0, "tf32": 1.5 * 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
"""Smallest limit of the relative L2 error that a policy gives.

tf32: a tensor core drops the lower bits of its operands unless the caller rounds them first, which is off by up to a unit in
the last place, 2^-10, and half of it in the mean; both operands of a product together by 1.4 times 2^-11 in the mean.
"""

SMALLEST_NORMAL = {"float32": 2.0**-126, "bfloat16": 2.0**-126}
"""A result below it may be flushed to zero: library functions on a GPU do that. Other formats keep their denormals."""

FEW = 8.0
"""Roundoffs by which an element that the dtype does not hold may differ from the reference's."""

ROW_FLOOR = 2.0
"""The floor of the worst row over the floor of the whole: one row averages over fewer elements."""

_PIECE = 1 << 25
"""Elements measured at once, in whole rows: in float64 and with what is made of them they take more than a gigabyte."""

_POLICY_FORMAT = {"tf32": "tf32", "fp16": "float16", "bf16": "bfloat16"}


class Errors(NamedTuple):
    """Distance of one output from the oracle."""

    relative_l2: float
    worst_row: float

    def within(self, limit: Errors) -> bool:
        """Whether neither is beyond its limit; NaN always is."""
        return self.relative_l2 <= limit.relative_l2 and self.worst_row <= limit.worst_row

    def largest(self, other: Errors) -> Errors:
        """Take the larger of each."""
        return Errors(max(self.relative_l2, other.relative_l2), max(self.worst_row, other.worst_row))


EXACT = Errors(0.0, 0.0)
INFINITE = Errors(float("inf"), float("inf"))


def unit_roundoff(policy: PrecisionPolicy, dtype: str) -> float:
    """Roundoff of the precision that a tensor of `dtype` is declared to be computed in."""
    return max(ROUNDOFF[dtype], ROUNDOFF[_POLICY_FORMAT.get(policy.name, dtype)])


def input_roundoff(policy: PrecisionPolicy, dtype: str) -> float:
    """Roundoff to which an input of `dtype` is known: float8 is what others were rounded to, and as exact as what it is computed in."""
    return unit_roundoff(policy, "float32" if dtype in NAMES else dtype)


def distance(value: torch.Tensor, oracle: torch.Tensor, reference: torch.Tensor) -> Errors:
    """Measure `value` against `oracle` over the elements that are finite in `reference` and oracle; elsewhere it must equal `reference`.

    Where the truth is beyond what the dtype holds, as of a mask that is filled with `torch.finfo(x.dtype).min` and is wider in the oracle,
    it must be the reference's but for a few roundoffs.
    Shapes are equal. A zero oracle has no relative error: there the error's root mean square is taken as it is. Zero is no
    error where the truth is too small for a normal number.
    """
    import torch

    if oracle.numel() == 0:
        return EXACT
    width = oracle.shape[-1] if oracle.dim() else 1
    piece = max(1, _PIECE // width)
    whole = [widened(tensor).reshape(-1, width) for tensor in (value, oracle, reference)]
    found = [_row_norms(*(rows[start : start + piece] for rows in whole)) for start in range(0, len(whole[0]), piece)]
    row_errors, rows = (torch.cat([part[place] for part in found]) for place in (0, 1))
    agree = torch.stack([part[2] for part in found]).all()
    norm = torch.linalg.vector_norm(rows)
    scale = torch.where(norm > 0, norm, float(oracle.numel()) ** 0.5)
    typical = scale / float(rows.numel()) ** 0.5
    errors = torch.stack([torch.linalg.vector_norm(row_errors) / scale, (row_errors / torch.maximum(rows, typical)).max(), agree.double()])
    # read at once: where several processes use a device, each look at it waits for its turn there
    relative_l2, worst_row, agrees = errors.tolist()
    return Errors(relative_l2, worst_row) if agrees else INFINITE


def _row_norms(value: torch.Tensor, oracle: torch.Tensor, reference: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """L2 norms of the errors and of the truth of each row, and whether NaN and infinities stand where they do in the reference."""
    import torch

    dtype = str(value.dtype).removeprefix("torch.")
    known = torch.isfinite(reference) & torch.isfinite(oracle)
    beyond = known & (oracle.abs() > torch.finfo(value.dtype).max)
    keep = known & ~beyond
    zero = torch.zeros((), dtype=torch.float64, device=oracle.device)
    truth = torch.where(keep, oracle.double(), zero)
    smallest = SMALLEST_NORMAL.get(dtype, 0.0)
    near = (value - reference).abs() <= FEW * ROUNDOFF[dtype] * reference.abs()
    agree = _same_non_finite(value, reference) & (near | ~beyond).all()
    keep &= (value != 0) | (truth.abs() >= smallest)
    error = torch.where(keep, value.double() - truth, zero)
    return torch.linalg.vector_norm(error, dim=1), torch.linalg.vector_norm(truth, dim=1), agree


def _same_non_finite(value: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    import torch

    tests = (torch.isnan, torch.isposinf, torch.isneginf)
    return torch.stack([(test(value) == test(reference)).all() for test in tests]).all()


def mismatch(value: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor) -> Errors:
    """Share of integer or boolean elements that equal neither the reference at its declared precision nor the oracle.

    Where two elements of an input tie, an index may name either: `free_order` has both choose what the candidate has chosen.
    """
    if value.numel() == 0:
        return EXACT
    wrong = float(((value != reference) & (value != oracle)).double().mean())
    return Errors(wrong, wrong)


def limits(spec: TensorSpec, policy: PrecisionPolicy, own: Errors, sensitivity: Errors) -> Errors:
    """Say how wrong an output may be, given the reference's own error and the oracle's sensitivity."""
    if not spec.is_float:
        return EXACT
    floor = max(FLOOR_ROUNDOFFS[spec.dtype] * ROUNDOFF[spec.dtype], POLICY_FLOOR[policy.name])
    worst = own.largest(sensitivity)
    return Errors(
        max(policy.factor * worst.relative_l2, floor, policy.tolerance),
        max(policy.factor * worst.worst_row, ROW_FLOOR * floor, policy.worst_row_tolerance),
    )


def output_error(spec: TensorSpec, found: Errors, own: Errors, limit: Errors) -> OutputError:
    """Write errors and limits down."""
    return OutputError(
        output=spec.name,
        relative_l2=found.relative_l2,
        worst_row=found.worst_row,
        reference_relative_l2=own.relative_l2,
        reference_worst_row=own.worst_row,
        limit_relative_l2=limit.relative_l2,
        limit_worst_row=limit.worst_row,
    )
