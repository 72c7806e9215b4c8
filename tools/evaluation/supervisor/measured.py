"""What a timed session has measured of a candidate and of the baselines beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.records import RawTimes


@dataclass
class Measured:
    """Raw times in microseconds, in order."""

    event_us: list[float] = field(default_factory=list)
    """Of primed calls: the figure."""
    judged_us: list[float] = field(default_factory=list)
    """Those of them whose outputs are judged."""
    baselines: dict[str, list[float]] = field(default_factory=dict)
    """Of the baselines' primed calls."""
    idle_event_us: list[float] = field(default_factory=list)
    """Of calls on an idle device, as the runner says."""
    answer_us: list[float] = field(default_factory=list)
    """Of the same calls, from inputs revealed to the runner's answer by the supervisor's clock."""
    judged_answer_us: list[float] = field(default_factory=list)
    """Those of them whose outputs are judged."""
    bracket_us: list[float] = field(default_factory=list)
    """Of the same calls, from inputs revealed to outputs collected."""
    overhead_us: list[float] = field(default_factory=list)
    """Answer less event of the eager baseline on an idle device: what being called from outside costs."""
    packing_us: list[float] = field(default_factory=list)
    """Of packing the weights, by events."""
    before: dict[str, list[float]] = field(default_factory=dict)
    """Of the baselines alone, before the candidate's process was started."""
    after: dict[str, list[float]] = field(default_factory=dict)
    """The same after it had ended."""

    @property
    def raw(self) -> RawTimes:
        """All of them, as a record."""
        return RawTimes(
            candidate=tuple(self.event_us),
            baselines={name: tuple(times) for name, times in self.baselines.items()},
            idle_event=tuple(self.idle_event_us),
            answer=tuple(self.answer_us),
            bracket=tuple(self.bracket_us),
            overhead=tuple(self.overhead_us),
            packing=tuple(self.packing_us),
            alone_before={name: tuple(times) for name, times in self.before.items()},
            alone_after={name: tuple(times) for name, times in self.after.items()},
        )
