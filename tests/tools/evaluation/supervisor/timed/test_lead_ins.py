"""What is measured beside a candidate's own calls: when earlier measurements count, and when they do not."""

from __future__ import annotations

from tools.evaluation.supervisor.timed.statistics import HOLDS_US, JUST_S, LEAD_INS, LOOKS, JustTaken, LeadIns


class Device:
    """Measures what it is told to, and counts."""

    def __init__(self, *coming: float) -> None:
        self.coming, self.measured = list(coming), 0

    def __call__(self) -> float:
        """Give the next one; the last stays."""
        self.measured += 1
        return self.coming.pop(0) if len(self.coming) > 1 else self.coming[0]


def test_the_first_are_all_measured() -> None:
    """Of the first candidate all are measured, and their median counts."""
    device = Device(70.0, 71.0, 72.0, 90.0, 60.0)
    assert LeadIns().median_us("cold", device) == 71.0
    assert device.measured == LEAD_INS


def test_those_that_still_hold_are_looked_at_alone() -> None:
    """Where two new ones agree with those before, the last five count."""
    lead_ins, device = LeadIns(), Device(70.0)
    lead_ins.median_us("cold", device)
    device.measured, device.coming = 0, [70.2, 70.3]
    assert lead_ins.median_us("cold", device) == 70.0
    assert device.measured == LOOKS
    device.coming = [70.4, 70.4]
    assert lead_ins.median_us("cold", device) == 70.3


def test_where_one_is_off_all_are_measured_anew() -> None:
    """What a slower device, or a candidate that keeps it busy, makes of them stands for nobody else."""
    lead_ins, device = LeadIns(), Device(70.0)
    lead_ins.median_us("cold", device)
    for now in (70.0 + 2 * HOLDS_US, 70.0):
        device.measured, device.coming = 0, [now]
        assert lead_ins.median_us("cold", device) == now
        assert device.measured == LEAD_INS


def test_each_kind_of_chain_has_its_own() -> None:
    """Warm chains, and chains of fewer calls, are another thing."""
    lead_ins = LeadIns()
    assert [lead_ins.median_us(kind, Device(value)) for kind, value in ((("cold", 32), 70.0), (("warm", 32), 20.0))] == [70.0, 20.0]


def test_times_after_one_candidate_stand_before_the_next() -> None:
    """Of the same baselines, a moment later; not after a while, and not where torch.compile has come beside eager."""
    now = [10.0]
    alone = JustTaken(lambda: now[0])
    assert alone.of(["eager"]) == {}
    assert alone.kept({"eager": [5.0]}) == alone.of(["eager"]) == {"eager": [5.0]}
    assert alone.of(["eager", "compile"]) == {}
    now[0] += JUST_S
    assert alone.of(["eager"]) == {}
