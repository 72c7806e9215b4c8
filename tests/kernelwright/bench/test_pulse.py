"""What a bench says of answers while no run ends."""

from __future__ import annotations

from kernelwright.bench.pulse import Pulse


def test_answers_are_told_in_a_line_where_nothing_else_was_said() -> None:
    """Plans, sources and verdicts are counted, and told once."""
    heard: list[str] = []
    pulse = Pulse(heard.append, quiet_s=0.0)
    for event in ("planned", "planned", "recalled", "written", "evaluated"):
        pulse.note(event)
    pulse.look(3)
    pulse.look(3)
    assert heard == ["arrived: 2 plans, 1 source, 1 verdict; 3 runs in flight"]


def test_nothing_is_told_right_after_another_line() -> None:
    """A bench that talks by itself gets no second voice; what was counted is kept for later."""
    heard: list[str] = []
    pulse = Pulse(heard.append, quiet_s=60.0)
    pulse.note("written")
    pulse.told()
    pulse.look(1)
    assert heard == []
