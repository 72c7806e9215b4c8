"""A run is named by the beginning of its name, where that is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.tracing.finding import find_run


def test_runs_that_could_be_meant_are_named(tmp_path: Path) -> None:
    """Three of them at most, the last begun first."""
    for number in range(5):
        (tmp_path / "runs" / f"op-{number}").mkdir(parents=True)
        (tmp_path / "runs" / f"op-{number}" / "run.db").touch()
    with pytest.raises(UserError, match="5 runs start with 'op'") as refused:
        find_run(tmp_path, "op")
    assert refused.value.mend.startswith("They are op-4, op-3, op-2 and 2 more. List")
