"""Kernels, launches and problems with chosen figures."""

from __future__ import annotations

import math
from typing import Any, Literal

from tools.records import (
    ABI,
    ITEM_BYTES,
    Correctness,
    Evaluation,
    KernelResources,
    Launch,
    OperatorFamily,
    OutputError,
    PolicyName,
    PrecisionPolicy,
    Problem,
    ProblemForm,
    Sample,
    TensorArgument,
    TensorSpec,
    Tier,
    Timing,
    Verdict,
    Work,
)


def resources(
    registers: int = 32,
    shared_bytes: int = 0,
    spill_bytes: int = 0,
    *,
    name: str = "kernel",
    arch: str = "sm_90",
    **instructions: int,
) -> KernelResources:
    """A kernel that streams 16 bytes a load, unless told otherwise."""
    mix = {"load": 2, "store": 2, "fp": 8, "integer": 10, "control": 2, "other": 10, "load_bytes_max": 16, "store_bytes_max": 16}
    return KernelResources(
        name=name,
        arch=arch,
        registers=registers,
        spill_bytes=spill_bytes,
        shared_bytes=shared_bytes,
        stack_bytes=0,
        instructions={**mix, **instructions},
    )


def launch(
    *shapes: tuple[int, ...],
    name: str = "kernel",
    grid: int = 4096,
    num_warps: int = 4,
    kind: Literal["triton", "library"] = "triton",
    **constants: int,
) -> Launch:
    """A launch over float32 tensors of these shapes, each moved once."""
    return Launch(
        kind=kind,
        name=name,
        grid=(grid,) if kind == "triton" else (),
        num_warps=num_warps if kind == "triton" else 0,
        constants=constants,
        tensors=tuple(TensorArgument(shape=s, strides=(1,) * len(s), dtype="float32") for s in shapes),
        nbytes=sum(math.prod(s) * 4 for s in shapes),
    )


def problem(
    inputs: tuple[tuple[int, ...], ...] = ((4096, 1024),),
    output: tuple[int, ...] = (4096, 1024),
    *,
    operators: tuple[str, ...] = ("aten.relu.default",),
    families: tuple[OperatorFamily, ...] = (OperatorFamily.POINTWISE,),
    matmul_flops: int = 0,
    eager_bytes: int | None = None,
    dtype: str = "float32",
    policy: PolicyName = "exact",
) -> Problem:
    """A problem with these tensors; eager moves each once, unless told otherwise."""
    arguments = tuple(TensorSpec(name=f"x{i}", shape=s, dtype=dtype) for i, s in enumerate(inputs))
    outputs = (TensorSpec(name="output0", shape=output, dtype=dtype),)
    moved = sum(math.prod(s) for s in (*inputs, output)) * ITEM_BYTES[dtype]
    return Problem(
        name="sample",
        form=ProblemForm.FUNCTION,
        entry="f",
        source="def f(x): ...",
        abi=ABI(arguments=arguments, outputs=outputs),
        work=Work(
            operators=operators,
            families=families,
            matmul_flops=matmul_flops,
            pointwise_flops=math.prod(output),
            eager_bytes=moved if eager_bytes is None else eager_bytes,
        ),
        policy=PrecisionPolicy(name=policy),
    )


def timing(candidate_us: float, eager_us: float = 250.0, spread: float = 0.01) -> Timing:
    """A measured timing beside eager, with a relative spread of its speed-up."""
    ratio = eager_us / candidate_us
    return Timing(
        tier=Tier.IN_PROCESS,
        candidate=sample(candidate_us),
        baselines={"eager": sample(eager_us)},
        speedups={"eager": (ratio, ratio * (1 - spread), ratio * (1 + spread))},
        device="NVIDIA H200",
        clock_mhz=1980.0,
        power_w=500.0,
        throttled=False,
    )


def sample(median_us: float) -> Sample:
    """Fifty times around a median."""
    return Sample(median_us=median_us, low_us=0.99 * median_us, high_us=1.01 * median_us, count=50)


def passed(**fields: Any) -> Evaluation:
    """A passing evaluation with these fields."""
    fine = OutputError(
        output="output0",
        relative_l2=1e-7,
        worst_row=1e-7,
        reference_relative_l2=1e-7,
        reference_worst_row=1e-7,
        limit_relative_l2=4e-7,
        limit_worst_row=4e-7,
    )
    checked = Correctness(outputs=(fine,), calls=3, sizes=("as written",), executor="gpu")
    return Evaluation(candidate="child", verdict=Verdict.PASS, correctness=checked, **fields)
