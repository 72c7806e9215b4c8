"""What a confirmed kernel has to beat to be delivered."""

from __future__ import annotations

import pytest

from graphs.optimize.confirm import praise, shortfall
from tests.agents.reviewer.cases import estimate, passed, timing
from tools.records import Packing, Sample, Tier


def test_the_better_baseline_counts_unless_eager_is_asked_for() -> None:
    """Twice as fast as eager and a percent behind torch.compile: kept back, and delivered to those who hold it against eager alone."""
    tie = passed(timing(50.0, eager_us=100.0, compile_us=49.5, tier=Tier.BRACKETED))
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


def test_what_only_its_own_process_says_is_not_delivered_as_faster() -> None:
    """In-process alone does not hold, and the reason that it is not sealed is said; bracketed, sealed, or slower than its launches does."""
    alone = timing(50.0, compile_us=80.0, unsealed="its host code draws random numbers (aten.rand.default)")
    reason = shortfall(passed(alone), 1.01)
    assert reason.startswith("1.600x against compile when confirmed, but only its own process says so: its time is in-process")
    assert reason.endswith("not bracketed and not sealed (its host code draws random numbers (aten.rand.default))")
    assert "not beyond the noise" in shortfall(passed(timing(90.0)), 1.01)
    for change in ({"tier": Tier.BRACKETED}, {"tier": Tier.SEALED}, {"sealed_us": 40.0}):
        assert shortfall(passed(alone.model_copy(update=change)), 1.01) == ""
    assert shortfall(passed(alone.model_copy(update={"sealed_us": 60.0})), 1.01)
    assert shortfall(passed(estimate(50.0)), 1.01) == ""


def test_a_reviewer_says_what_keeps_a_kernel_from_being_delivered() -> None:
    """A time that cannot be sealed as the kernel is written is a concern, with the reason; one that is bracketed is none."""
    evaluation = passed(timing(50.0, unsealed="its host code reads values from the device"))
    assert (
        "only its own process says how fast it is (in-process; not bracketed, and not sealed, since its host code reads" in evaluation.doubt
    )
    assert passed(timing(50.0, unsealed="x", tier=Tier.BRACKETED)).doubt == ""
    assert passed(timing(50.0)).doubt == ""


def test_a_lone_baseline_is_not_called_the_faster_one() -> None:
    """Where torch.compile was not there in time, what is delivered says that eager is all it was held against."""
    found = timing(50.0, eager_us=100.0)
    lone = found.model_copy(update={"baselines": {"eager": found.baselines["eager"]}, "speedups": {"eager": found.speedups["eager"]}})
    assert "against eager, the only baseline that could be timed;" in praise(passed(lone), "better")
    assert ", the faster baseline;" in praise(passed(found), "better")
