"""Where a run stands: what was tried on its problem, how each attempt ended, and what there is to beat."""

from __future__ import annotations

from pydantic import Field

from tools.records import ATTEMPT, IDEA, Action, ActionKind, OutputError, Record, Verdict


class Attempt(Record):
    """One plan of the run and what came of it."""

    candidate: str
    """Candidate id; empty where the coder refused."""
    parent: str
    action: Action
    idea: str = ""
    """What its writer said that it does; empty where the action says it."""
    verdict: Verdict | None
    """None where the coder refused."""
    time_us: float | None = None
    """Measured or estimated, as its tier says."""
    tier: str = ""
    speedup: float | None = None
    """Best baseline time over its time."""
    errors: tuple[OutputError, ...] = ()
    """Of each output beside its limits; empty where nothing was judged."""
    why: str = ""
    """The reviewer's sentence about it, or the coder's."""
    concerns: tuple[str, ...] = ()
    """What the reviewer has against it."""

    @property
    def words(self) -> str:
        """What was tried."""
        idea = self.idea or str(self.action.parameters.get(IDEA, ""))
        if idea or ATTEMPT in self.action.parameters:
            return idea or "a design of its own"
        return str(self.action)


class Standing(Record):
    """What is known of a problem in this run so far."""

    baselines: dict[str, float] = Field(default_factory=dict)
    """Times of the reference in microseconds: `eager`, `compile`, those of one tier."""
    tier: str = ""
    """Of these."""
    floor_us: float | None = None
    """Roofline floor of the problem on the target; None where it is not known."""
    attempts: tuple[Attempt, ...] = ()
    """In the order in which they ended."""
    hints: tuple[str, ...] = ()
    """What the person who runs it asked planner and coder to mind."""

    @property
    def best(self) -> Attempt | None:
        """The fastest right one, of the tier of the last that has a time."""
        timed = [one for one in self.attempts if one.verdict is Verdict.PASS and one.time_us is not None]
        alike = [one for one in timed if (one.tier == "estimated") == (timed[-1].tier == "estimated")]
        return min(alike, key=lambda one: one.time_us or 0.0, default=None)

    @property
    def limits(self) -> tuple[OutputError, ...]:
        """Errors and limits of each output as they were last judged; empty before anything was."""
        return next((one.errors for one in reversed(self.attempts) if one.errors), ())

    @property
    def designs(self) -> int:
        """How many designs a model has written as a whole."""
        return sum(one.action.kind is ActionKind.REWRITE for one in self.attempts)
