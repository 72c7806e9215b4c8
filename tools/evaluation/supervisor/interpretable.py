"""What Triton's interpreter can judge: known of a problem before anything is made for it, and of a size once its launches are known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tools.evaluation.wire.jobs.builder import BuildAnswer
from tools.problems.proposals import adjustable
from tools.problems.variants import sizes_to_declare
from tools.records import EvaluationRequest, Problem, ProblemForm

_CHEAP_PROGRAMS = 2048
"""An interpreted program takes about a millisecond or more: this many are two to ten seconds."""
_CHEAP_BYTES = 32 << 20
_CHEAP_BYTES_BLIND = 2 << 20
"""Where the launches are not known."""
_CHEAP_FLOPS = 2e8

EMULATED = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
"""What the interpreter is taught (`tools/evaluation/untrusted/interpreter/builder.py`)."""
_SPELLED = {
    "bfloat16": "bfloat16|bf16",
    "float8_e4m3fn": "float8_e4m3fn|float8e4nv",
    "float8_e5m2": "float8_e5m2|float8e5",
    "float8_e4m3fnuz": "float8_e4m3fnuz|float8e4b8",
    "float8_e5m2fnuz": "float8_e5m2fnuz|float8e5b16",
    "float8e4b15": "float8e4b15",
}
"""How torch and Triton write what the interpreter does not know by itself."""

NEEDS_DEVICE = "Use a GPU, or let workers with one judge it (--evaluator spool:DIR, docs/workers.md)."
NEEDS_FILE = f"Put the module into a file with get_inputs() and SMALL_SIZES (docs/evaluation.md). Or: {NEEDS_DEVICE}"


def obstacle(problem: Problem, variants: Sequence[Problem]) -> tuple[str, str]:
    """Say why no candidate for `problem` can be judged without a GPU, and what would mend it; empty where one can."""
    fault = too_large(problem)
    if fault and not variants:
        what = f"no small sizes could be derived of it, and as written it is too large for Triton's interpreter ({fault})"
        return what, NEEDS_FILE if problem.form is ProblemForm.EXPORTED else needs_sizes(problem)
    return "", ""


def needs_sizes(problem: Problem) -> str:
    """Say how a file without small sizes gets some: a line for it where its reference uses the constants that would have to change."""
    free, found = {constant.key for constant in adjustable(problem).sizes}, sizes_to_declare(problem)
    held = [key for key in dict.fromkeys(key for sizes in found for key in sizes) if key not in free]
    if not held:
        return f"Give the file SMALL_SIZES, sizes that an interpreter can run (docs/evaluation.md). Or: {NEEDS_DEVICE}"
    are, them = ("is", "it") if len(held) == 1 else ("are", "them")
    kept = f"{', '.join(held)} {are} used by the reference itself, and so kept as written"
    if problem.form is ProblemForm.KERNELBENCH:
        return (
            f"{kept}: give {them} to the constructor by get_init_inputs(), or take {them} from the shapes of arguments. Or: {NEEDS_DEVICE}"
        )
    line = ", ".join(json.dumps(sizes) for sizes in found)
    ways = f"take {them} from the shapes of arguments, or give the file SMALL_SIZES = [{line}] (docs/evaluation.md)"
    return f"{kept}: {ways}. Or: {NEEDS_DEVICE}"


def emulated(request: EvaluationRequest, build: BuildAnswer) -> tuple[str, ...]:
    """List the dtypes that a candidate's kernels compute in and the interpreter does not know.

    Of a candidate whose launches are unknown they are all that it names.
    """
    if build.status != "opaque":
        return build.short_floats
    abi = request.problem.abi
    held = {spec.dtype for spec in (*abi.inputs, *abi.parameters, *abi.outputs)}
    named = {name for name, pattern in _SPELLED.items() if re.search(rf"\b({pattern})\b", request.source)}
    return tuple(sorted(named | held & EMULATED))


def too_large(problem: Problem, build: BuildAnswer | None = None) -> str:
    """Say why the interpreter could not run a problem as written in a few seconds, by what a candidate launches if that is known."""
    blind = build is not None and build.status == "opaque"
    nbytes = problem.abi.nbytes
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
