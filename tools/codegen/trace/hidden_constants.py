"""Integer constants of a file that no shape of an input tells, such as the number of cells of a grid that forward makes.

What is emitted takes them as written, but at the exact sizes of a small variant, which may have others. A constant that a constructor or
an argument hands over is none of them: a caller may give another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.codegen.ir.graph import TensorMeta
from tools.codegen.ir.sizes import Fact, Length, Sizes, is_told
from tools.records import Problem, ProblemForm, ScalarSpec


def hidden_constants(
    problem: Problem, traced: Sequence[Problem], inputs: Mapping[str, TensorMeta], own: Mapping[str, tuple[int | None, ...]]
) -> tuple[Sizes | Length, ...]:
    """List the values that such constants have in each trace; those of lengths are their `own` where the traces have others."""
    if problem.form is ProblemForm.EXPORTED or len(traced) == 1:
        return ()
    facts = [Fact("", sizes) for meta in inputs.values() for sizes in meta.shape]
    given = set(zip(*(_scalars(each) for each in traced), strict=True))
    return tuple(
        Length(values, own[key]) if key in own else values
        for values, key in {values: key for key, values in _values(problem, traced)}.items()
        if len(set(values)) > 1 and values not in given and not is_told(values, facts)
    )


def _scalars(problem: Problem) -> list[object]:
    return [spec.value for spec in problem.abi.arguments if isinstance(spec, ScalarSpec)]


def _values(problem: Problem, traced: Sequence[Problem]) -> Iterator[tuple[str, Sizes]]:
    from tools.problems.constants import constants, reachable
    from tools.problems.source import Recognised
    from tools.syntax import parsed

    # what makers alone use reaches forward by shapes
    used = reachable(problem.source, [problem.entry]) - reachable(problem.source, ["get_init_inputs"])
    for constant in constants(parsed(problem.source), Recognised(problem.form, problem.entry).makers):
        if constant.name in used:
            yield constant.key, tuple(each.sizes.get(constant.key, constant.value) for each in traced)
