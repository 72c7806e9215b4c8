"""The roofline floor of a problem: the least time the hardware's peak figures leave, and the figure that sets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tools.hardware import peak_tflops, rates
from tools.records import HardwareSheet, OperatorFamily, PrecisionPolicy, Problem, Record

Bound = Literal["bandwidth", "matmul", "pointwise"]


class Floor(Record):
    """Three lower bounds in microseconds; the largest is the floor."""

    bandwidth_us: float
    """Compulsory bytes over the datasheet's peak bandwidth."""
    matmul_us: float
    """Product flops over the fastest rate that the precision policy allows."""
    pointwise_us: float
    """Elements touched by the other operators over the ordinary fp32 rate."""

    @property
    def us(self) -> float:
        """The floor."""
        return max(self.bandwidth_us, self.matmul_us, self.pointwise_us)

    @property
    def bound(self) -> Bound:
        """The term that sets the floor."""
        terms: dict[Bound, float] = {"bandwidth": self.bandwidth_us, "matmul": self.matmul_us, "pointwise": self.pointwise_us}
        return max(terms, key=lambda name: terms[name])


def roofline(problem: Problem, sheet: HardwareSheet) -> Floor:
    """Compute the floor of `problem` on `sheet`: peak rates, every tensor of the ABI moved once, no operation saved.

    Float32 products split into three half-precision ones count among the rates (`peak_tflops(split=True)`): they can
    meet the exact policy. Algebra that removes operations, and operators that do not read all of an input, can go
    below the floor: judge a measured time by `impossible_us`. Of a problem with several shapes it is that of a call on average.
    """
    if problem.shapes:
        return _average([(shape.weight, roofline(problem.at(shape), sheet)) for shape in problem.shapes])
    work, policy = problem.work, loosest(problem).name
    parts = work.matmul_flops_by_dtype or {matmul_dtype(problem): work.matmul_flops}
    return Floor(
        bandwidth_us=bytes_us(problem.abi.compulsory_bytes, sheet.memory_gbps),
        matmul_us=sum(flops_us(flops, peak_tflops(sheet, policy, dtype, split=True)) for dtype, flops in parts.items()),
        pointwise_us=flops_us(work.pointwise_flops, sheet.fp32_tflops),
    )


def _average(parts: Sequence[tuple[float, Floor]]) -> Floor:
    whole = sum(weight for weight, _ in parts)
    return Floor(
        bandwidth_us=sum(weight * part.bandwidth_us for weight, part in parts) / whole,
        matmul_us=sum(weight * part.matmul_us for weight, part in parts) / whole,
        pointwise_us=sum(weight * part.pointwise_us for weight, part in parts) / whole,
    )


def floor_us(problem: Problem, sheet: HardwareSheet) -> float:
    """Return the roofline floor of `problem` on `sheet`, microseconds."""
    return roofline(problem, sheet).us


_READ_WHOLE = frozenset(
    {
        *(OperatorFamily.POINTWISE, OperatorFamily.REDUCTION, OperatorFamily.SOFTMAX, OperatorFamily.NORMALISATION),
        *(OperatorFamily.MATMUL, OperatorFamily.SCAN, OperatorFamily.ATTENTION, OperatorFamily.LOSS),
    }
)
"""Families whose operators need all of what they are given; a gather does not, nor does a window whose stride is wider than itself."""


def impossible_us(problem: Problem, sheet: HardwareSheet, *, packs: bool = False) -> float:
    """Return the time, microseconds, below which no honest kernel can be on `sheet`; 0 where there is no such bound.

    Only what must cross the memory bus counts: inputs and parameters, each read once at the datasheet's bandwidth, and no
    more than eager execution reads. What an L2 holds is left out, on the way in (contents just written may still be
    there) and on the way out (a store may leave the L2 after the clock has stopped). There is no bound where an
    operator may leave out part of its input. An output that does not depend on an input at all is for admission to find. Of a kernel
    that `packs` parameters in a step of its own the inputs alone count: what it reads of the others may be as little as a sum of them.
    """
    if not set(problem.work.families) <= _READ_WHOLE or any("nll_loss" in name for name in problem.work.operators):
        return 0.0
    abi = problem.abi
    whole = (t for place, t in enumerate(abi.inputs) if place not in abi.written_places)
    given = sum(t.nbytes for t in (*whole, *(() if packs else (t for t in abi.parameters if t.name not in abi.updated))))
    # a view that narrows an input is no operator, but the operators after it read less
    eager = problem.work.eager_bytes - sum(t.nbytes for t in problem.abi.outputs)
    return bytes_us(max(min(given, eager) - sheet.l2_mib * 2**20, 0), sheet.memory_gbps)


def loosest(problem: Problem) -> PrecisionPolicy:
    """Say what the policy comes to for that operator of a problem which may round the most."""
    return problem.policy.of_operator(cudnn=not rates.CUDNN.isdisjoint(problem.work.families))


def matmul_dtype(problem: Problem) -> str:
    """Name the dtype of most of the problem's products; without products the widest floating dtype among its inputs and parameters.

    Tables of angles and scales are often float32 where products are not.
    """
    if counted := problem.work.matmul_flops_by_dtype:
        return max(counted, key=counted.__getitem__)
    found = {t.dtype for t in (*problem.abi.inputs, *problem.abi.parameters)}
    return next((d for d in ("float64", "float32", "bfloat16", "float16") if d in found), "float32")


def bytes_us(nbytes: float, gbps: float) -> float:
    """Microseconds to move `nbytes` at `gbps` (1e9 bytes a second)."""
    return nbytes / gbps / 1e3


def flops_us(flops: float, tflops: float) -> float:
    """Microseconds to do `flops` operations at `tflops` (1e12 operations a second)."""
    return flops / tflops / 1e6
