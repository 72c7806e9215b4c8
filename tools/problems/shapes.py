"""The shapes at which a problem's kernel is to be used: `WORKLOADS` in its file, read into records."""

from __future__ import annotations

from tools.errors import UserError
from tools.problems.constants import constants, workloads
from tools.problems.source import Recognised
from tools.problems.variants import with_sizes
from tools.records import Problem, ProblemForm, ProblemShape
from tools.syntax import parsed


def declared_shapes(problem: Problem) -> tuple[ProblemShape, ...]:
    """Read a problem at each of its workloads; empty where its file names none. Sizes that do not run raise UserError."""
    if problem.form is ProblemForm.EXPORTED:
        return ()
    tree = parsed(problem.source)
    found = workloads(tree, problem.name)
    known = {constant.key for constant in constants(tree, Recognised(problem.form, problem.entry).makers)} if found else set()
    return tuple(_shape(problem, name, weight, sizes, known) for name, (weight, sizes) in found.items())


def _shape(problem: Problem, name: str, weight: float, sizes: dict[str, int], known: set[str]) -> ProblemShape:
    where = f"The workload {name!r} of {problem.name}"
    if unknown := sorted(set(sizes) - known):
        what = f"{where} names {unknown[0]!r}, which is no integer constant of the file."
        raise UserError(what, f"It has: {', '.join(sorted(known)) or 'none'}.")
    try:
        made = with_sizes(problem, sizes)
    except UserError as error:
        raise UserError(f"{where} does not run. {error.what}", "Give sizes that fit together.") from error
    kinds = [[(len(spec.shape), spec.dtype) for spec in (*one.inputs, *one.parameters, *one.outputs)] for one in (made.abi, problem.abi)]
    if kinds[0] != kinds[1]:
        raise UserError(f"{where} has tensors of other ranks or dtypes than the file as written.", "Make a file of its own for it.")
    return ProblemShape(name=name, weight=weight, sizes=sizes, abi=made.abi, work=made.work)
