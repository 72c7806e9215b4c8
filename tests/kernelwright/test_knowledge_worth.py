"""What `knowledge worth` makes of rows: made up, small enough to be worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kernelwright.bench.row import Status
from kernelwright.cli.knowledge.worth import page
from kernelwright.worth.records import LEARNT, SEEDS
from kernelwright.worth.report import report_worth
from tests.kernelwright.bench.rows import row


def rows() -> tuple[list[object], list[object], list[object]]:
    """Two held-out problems, one of a family learnt on: memory gains the same in a quarter of the evaluations, and harms the other."""
    off, frozen = {"arm": "greedy/off/builtin"}, {"arm": "greedy/frozen/builtin"}
    other = {"families": ("scan",)}
    slow, fast = [1.0, 1.0, 1.0, 2.0], [2.0, 2.0, 2.0, 2.0]
    cold = [row("level1/1", slow, **off), row("level1/1", slow, **frozen)]
    cold += [row("level1/2", slow, **off, **other), row("level1/2", slow, **frozen, **other)]
    warm = [row("level1/1", fast, **frozen), row("level1/2", [1.0, 1.0, 1.0, 1.5], **frozen, **other)]
    return cold, warm, [row("level1/9", fast)]


def test_savings_and_harm_are_told_apart_by_family() -> None:
    """A quarter of the evaluations within the family, the same final gain; outside it, the loss is reported as harm."""
    report = report_worth(*rows(), 4, None)  # type: ignore[arg-type]
    within, outside = report.groups
    (seeds, learnt) = within.against
    assert (seeds.arm, learnt.arm) == (SEEDS, LEARNT)
    assert (seeds.evaluations, learnt.evaluations) == pytest.approx((1.0, 0.25))
    assert (learnt.gpu_s, learnt.final) == pytest.approx((0.25, 1.0))
    assert learnt.harmed == ()
    assert outside.against[1].harmed == (("level1/2", pytest.approx(0.75)),)
    assert within.problems == ("level1/1",)


def test_a_memory_that_was_brought_along_has_one_group() -> None:
    """Where nothing was learnt here, families are not told apart."""
    cold, warm, _ = rows()
    report = report_worth(cold, warm, [], 4, None)  # type: ignore[arg-type]
    assert [len(group.problems) for group in report.groups] == [2]
    assert report.groups[0].against[1].evaluations == pytest.approx(math.sqrt(0.25 * 1.0))


def test_the_page_shows_intervals_and_harm(tmp_path: Path) -> None:
    """Two pairs give an interval, and what is harmed is named."""
    cold, warm, _ = rows()
    text = page(report_worth(cold, warm, [], 4, tmp_path))  # type: ignore[arg-type]
    assert "| learnt | ×0.50 (0.25–1.00) |" in text
    assert "level1/2 ×0.75" in text


def test_failed_runs_are_counted_and_teach_nothing() -> None:
    """A learning run that failed is none of what was learnt on; where an arm has no run, the page says that nothing is compared."""
    cold, warm, learning = rows()
    failed = {"status": Status.FAILED, "basis": "none"}
    report = report_worth(cold, [one.model_copy(update=failed) for one in warm], [*learning, row("level1/8", [1.0], **failed)], 4, None)  # type: ignore[arg-type, attr-defined]
    assert (report.learnt_on, report.groups) == (("level1/9",), ())
    said = page(report)
    for note in ("1 of 2 learning runs failed", "2 of 6 held-out runs failed", "nothing is compared"):
        assert note in said
