"""What a confirmed kernel has to beat to be delivered."""

from __future__ import annotations

import pytest

from graphs.optimize.confirm import praise, shortfall
from tests.agents.reviewer.cases import passed, timing
from tools.records import Packing, Sample, Tier


def test_the_better_baseline_counts_unless_eager_is_asked_for() -> None:
    """Twice as fast as eager and a percent behind torch.compile: kept back, and delivered to those who hold it against eager alone."""
    tie = passed(timing(50.0, eager_us=100.0, compile_us=49.5))
    assert "against compile when confirmed" in shortfall(tie, 1.01)
    assert shortfall(tie, 1.01, "eager") == ""


def test_against_eager_the_noise_counts_as_ever() -> None:
    """An interval that reaches below the floor is no gain over eager either."""
    assert "against eager when confirmed" in shortfall(passed(timing(99.0, compile_us=300.0, spread=0.02)), 1.01, "eager")


@pytest.mark.parametrize(("kernel_us", "told"), [(50.0, "in 3,000 µs (in-process), which 100 calls pay for."), (100.0, "(in-process).")])
def test_packing_is_told_apart_from_the_speed_up(kernel_us: float, told: str) -> None:
    """What is delivered says what packing its weights takes once, and how many calls pay for it where any do."""
    packing = Packing(time=Sample(median_us=3000.0, low_us=2990.0, high_us=3010.0, count=15), tier=Tier.IN_PROCESS)
    found = passed(timing(kernel_us, eager_us=100.0).model_copy(update={"packing": packing}))
    assert praise(found, "better").endswith(told)
    assert "packed" not in praise(passed(timing(kernel_us, eager_us=100.0)), "better")
