"""Which of a session's clocks says how long a candidate takes."""

from __future__ import annotations

import pytest

from tools.evaluation.supervisor.timed.chains import Chains
from tools.evaluation.supervisor.timed.measured import Measured


@pytest.mark.parametrize(
    ("single_us", "chained_us", "figure", "is_late"),
    [
        ([385.0, 300.0, 470.0], [151.0, 150.0, 152.0], 151.0, True),
        ([104.0, 110.0, 112.0], [100.0, 101.0, 99.0], 110.0, False),
        ([90.0] * 3, [], 90.0, False),
    ],
)
def test_the_device_waits_for_no_host(single_us: list[float], chained_us: list[float], figure: float, is_late: bool) -> None:
    """Where calls one by one take much longer than those issued ahead, the latter are the figure, and it is said; the raw times stay."""
    measured = Measured(event_us=single_us, chains=Chains(call_us=chained_us))
    said = measured.without_host()
    assert sorted(measured.candidate_us)[1] == figure
    assert measured.raw.candidate == tuple(single_us)
    assert bool(said) is is_late
