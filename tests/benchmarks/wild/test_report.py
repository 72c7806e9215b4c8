"""Tables of how far the operators of a suite came."""

from __future__ import annotations

from benchmarks.wild.report import report, totals
from benchmarks.wild.row import Ended, Left, WildRow

SORT = Left(operator="aten.sort.default", reason="aten.sort.default has no template")
ROWS = [
    WildRow(operator="norms/a", part="development", ended=Ended.RIGHT, generated=("rows: mean",), trace_s=2.0, judge_s=3.0),
    WildRow(operator="norms/b", part="development", ended=Ended.NOT_RIGHT, why="WRONG: At ROWS=3, it is off", trace_s=9.0),
    WildRow(operator="norms/c", part="development", ended=Ended.NOT_RIGHT, why="WRONG: At WIDTH=7, it is off"),
    WildRow(operator="sampling/d", part="held out", ended=Ended.NOTHING, why=SORT.reason, left=(SORT,)),
    WildRow(operator="norms/a", part="development", sizes={"ROWS": 1}, ended=Ended.UNKNOWN),
]


def test_each_family_has_a_line() -> None:
    """Operators, those with a right kernel, those with nothing else than ours, and the longest times."""
    lines = list(report(ROWS))
    assert "| norms | 3 | 1 | 1 |  |  |  |  | 2 | 9.0 | 9.0 |" in lines
    assert next(line for line in lines if line.startswith("| all |")).startswith("| all | 4 | 1 |")


def test_equal_reasons_are_counted_together() -> None:
    """Sizes and names of one operator do not part what failed for the same reason."""
    assert "| not right | WRONG: At …it is off | 2: b, c |" in list(report(ROWS))


def test_what_is_left_to_pytorch_is_counted_by_operators_that_have_it() -> None:
    """The reason stands beside it."""
    assert "| sort.default | an operator has no template | 1 |" in list(report(ROWS))


def test_other_sizes_stand_by_themselves() -> None:
    """They are in no table: one line says how many have a kernel."""
    assert list(report(ROWS))[-1].strip() == "Other sizes: 1, 1 with a kernel"


def test_totals_name_no_operator() -> None:
    """One line for each part, and one for both."""
    text = "\n".join(totals(ROWS))
    assert not any(name in text for name in ("norms", "sampling", "sort"))
    assert "| held out | 1 |" in text
