"""How many confirmed kernels are sealed, counted from rows that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.kernelbench.sealed_share import rows_of, share
from tools.errors import UserError

ROOT = Path(__file__).parents[3]


def row(problem: str, tier: str, *notes: str, **fields: Any) -> dict[str, Any]:
    """A row of confirm_kernels."""
    return {"problem": problem, "tier": tier, "notes": list(notes), "verdict": "PASS", **fields}


def test_the_last_confirmation_of_each_problem_counts() -> None:
    """Shares are by level and of all; a search's evaluation and an earlier confirmation do not count; reasons come without figures."""
    slower = "Not sealed: without its host code the median is {} µs, so its host code adds."
    rows = [
        row("level1/1_a", "in-process", "Not sealed: old."),
        row("level1/1_a", "sealed", "Sealed: …"),
        row("level1/2_b", "in-process", "another note", slower.format("12.5"), stage="confirm"),
        row("level2/3_c", "bracketed", unsealed=slower.format("1.25e+04")),
        row("level2/4_d", "in-process", stage="search"),
        row("level2/5_e", "in-process", "cut short"),
    ]
    text = share(rows)
    assert "| level1 | 2 | 1 | 0 | 1 | 50% |" in text
    assert "| level2 | 2 | 0 | 1 | 1 | 0% |" in text
    assert "| all | 4 | 1 | 1 | 2 | 25% |" in text
    assert "* 2: without its host code the median is … µs, so its host code adds (level1/2_b, level2/3_c)" in text
    assert "* 1: its row keeps no note that says why (level2/5_e)" in text


def test_the_kept_rows_can_be_counted() -> None:
    """The rows on KernelBench's page give a table; a file that is not there is named."""
    assert "| all | " in share(rows_of(ROOT / "docs" / "results" / "kernelbench" / "confirmed.jsonl"))
    with pytest.raises(UserError, match="There is no"):
        rows_of(ROOT / "nowhere.jsonl")
