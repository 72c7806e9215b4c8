"""What torch.compile would run of an operator, as a file of its own. Nothing is run or timed."""

from __future__ import annotations

from pathlib import Path

from graphs.run.assembly import resolve_target
from tools.errors import UserError
from tools.inductor import RefusedError, candidate_text
from tools.records import DEFAULT_POLICY, PrecisionPolicy
from tools.references.reading import read_problem
from tools.references.writing import written_apart


def compiled_source(problem: str | Path, *, target: str = "", policy: PrecisionPolicy = DEFAULT_POLICY, entry: str | None = None) -> str:
    """Write the file made of Inductor's kernels for a device; UserError for wrong input, and where there can be none."""
    sheet = resolve_target(target)
    read = read_problem(Path(problem), policy, entry)
    try:
        return candidate_text(read.problem, written_apart(read.problem, read.variants, sheet))
    except RefusedError as error:
        raise UserError(f"No file could be made of torch.compile's kernels: {error}.", "Leave --compiled out.") from None
