"""What a confirmed kernel has to beat to be delivered."""

from __future__ import annotations

from graphs.optimize.confirm import shortfall
from tests.agents.reviewer.cases import passed, timing


def test_the_better_baseline_counts_unless_eager_is_asked_for() -> None:
    """Twice as fast as eager and a percent behind torch.compile: kept back, and delivered to those who hold it against eager alone."""
    tie = passed(timing(50.0, eager_us=100.0, compile_us=49.5))
    assert "against compile when confirmed" in shortfall(tie, 1.01)
    assert shortfall(tie, 1.01, "eager") == ""


def test_against_eager_the_noise_counts_as_ever() -> None:
    """An interval that reaches below the floor is no gain over eager either."""
    assert "against eager when confirmed" in shortfall(passed(timing(99.0, compile_us=300.0, spread=0.02)), 1.01, "eager")
