"""What Triton's interpreter can judge: known of a problem before anything is made for it, and of a size once its launches are known."""

from __future__ import annotations

from collections.abc import Sequence

from tools.evaluation.wire.jobs.builder import BuildAnswer
from tools.records import Problem

_CHEAP_PROGRAMS = 2048
"""An interpreted program takes about a millisecond or more: this many are two to ten seconds."""
_CHEAP_BYTES = 32 << 20
_CHEAP_BYTES_BLIND = 2 << 20
"""Where the launches are not known."""
_CHEAP_FLOPS = 2e8

NEEDS_DEVICE = "Use a GPU, or let workers with one judge it (--evaluator spool:DIR, docs/workers.md)."
NEEDS_SIZES = f"Give the file SMALL_SIZES, sizes that an interpreter can run (docs/evaluation.md). Or: {NEEDS_DEVICE}"


def obstacle(problem: Problem, variants: Sequence[Problem]) -> tuple[str, str]:
    """Say why no candidate for `problem` can be judged without a GPU, and what would mend it; empty where one can."""
    abi = problem.abi
    if any(spec.dtype == "bfloat16" for spec in (*abi.inputs, *abi.parameters, *abi.outputs)):
        return "it has tensors of bfloat16, which Triton's interpreter computes wrongly", NEEDS_DEVICE
    fault = too_large(problem)
    if fault and not variants:
        return (
            f"no small sizes could be derived from its file, and as written it is too large for Triton's interpreter ({fault})",
            NEEDS_SIZES,
        )
    return "", ""


def too_large(problem: Problem, build: BuildAnswer | None = None) -> str:
    """Say why the interpreter could not run a problem as written in a few seconds, by what a candidate launches if that is known."""
    blind = build is not None and build.status == "opaque"
    nbytes = problem.abi.compulsory_bytes
    if nbytes > (_CHEAP_BYTES_BLIND if blind else _CHEAP_BYTES):
        return f"{nbytes / 1e6:,.0f} MB of tensors"
    if problem.work.matmul_flops > _CHEAP_FLOPS:
        return f"{problem.work.matmul_flops / 1e6:,.0f} million operations in products"
    programs = _programs(build) if build else 0
    return f"{programs:,} interpreted programs a call" if programs > _CHEAP_PROGRAMS else ""


def _programs(build: BuildAnswer) -> int:
    total = 0
    for launch in build.launches:
        product = 1
        for size in launch.grid:
            product *= max(size, 0)
        total += product
    return total
