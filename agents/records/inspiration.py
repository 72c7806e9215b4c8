"""Another candidate beside the parent, shown for ideas."""

from __future__ import annotations

from tools.records import Action, Record


class Inspiration(Record):
    """Another candidate that the search method wants planner and coder to see."""

    candidate: str
    speedup: float
    """Best baseline time over its time."""
    steps: tuple[Action, ...]
    """The actions that led to it from the reference, the first one first."""
    mate: bool = False
    """Whether it is a second parent: its steps are worth taking over."""
    diverse: bool = False
    """Whether it is shown because its strategy differs, not because it is fast."""
    time_us: float | None = None
    tier: str = ""
    """How far that time can be trusted."""
    bottleneck: str = ""
    """As its profile has it; empty where there is none."""
    source: str = ""
    """For the coder; the planner is shown its steps."""

    @property
    def part(self) -> str:
        """Why it is shown."""
        return "a second parent" if self.mate else "a program of another strategy" if self.diverse else "a leading program"
