"""What a compiler would take, estimated."""

from __future__ import annotations

from tests.tools.models.test_choice import group
from tools.cost.compiled import compiled_reference
from tools.hardware import load_sheet
from tools.models.choosing.choice import problem_of
from tools.records import DEFAULT_POLICY, Problem, Work


def problem(*operators: str) -> Problem:
    """Operators on eight MiB."""
    trace = group("some", ("a",), 0.5, 100.0).trace
    assert trace is not None
    work: Work = trace.work.model_copy(update={"operators": operators})
    return problem_of("some", trace.model_copy(update={"work": work}), DEFAULT_POLICY)


def test_operators_between_products_are_one_launch() -> None:
    """Three in a row take as long as one of them; a product among them parts them."""
    sheet = load_sheet("h200")
    exp, mm = "aten.exp.default", "aten.mm.default"
    row, parted = problem(exp, exp, exp), problem(exp, mm, exp)
    fused, apart = compiled_reference(row, sheet), compiled_reference(parted, sheet)
    assert fused.compiled_us < 0.5 * fused.eager_us
    assert apart.compiled_us == apart.eager_us
