"""Where wall time went."""

from __future__ import annotations

import pytest

from tools.tracing.work import Work, shares


def test_each_moment_is_put_down_once_and_all_add_up() -> None:
    """Of two works at one time the first in order counts; what nobody measured, and what lies outside, is told apart."""
    works = [Work(what="memory", started=0.0, ended=6.0), Work(what="evaluation", started=4.0, ended=9.0)]
    found = shares(works, [(1.0, 7.0), (8.0, 10.0)], ["evaluation", "memory"], "other")
    assert {what: share.wall_s for what, share in found.items()} == {"evaluation": 4.0, "memory": 3.0, "other": 1.0}
    assert found["memory"].busy_s == 6.0
    assert sum(share.wall_s for share in found.values()) == pytest.approx(8.0)
