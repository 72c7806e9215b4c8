"""The planner of a team of one: says when the model writes its next design, and when the built-in coder has its turn."""

from __future__ import annotations

from agents.planner.builtin import BuiltinPlanner
from agents.planner.protocol import Briefing
from agents.planner.room import no_room
from tools.records import ATTEMPT, Action, ActionKind, Plan


class SoloPlanner:
    """Takes turns: what the built-in planner finds worth trying is done by construction, the rest is the model's own design.

    It asks no model. The design is stated by whoever writes it, so that one call does what planner and coder would do in two.
    """

    name = "solo"

    def __init__(self) -> None:
        """Have the built-in planner choose among what can be done by construction."""
        self._builtin = BuiltinPlanner()

    async def plan(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """Return at most `count` plans, one of them a design: of two that know the same at the same time, one would be the other again.

        The first plan of a run is built, so that there is something right to hold designs against.
        """
        return await self._turns(briefing, count, designs=1)

    async def listed(self, briefing: Briefing, count: int) -> tuple[Plan, ...]:
        """List `count` plans for a search method that chooses among them later, one at a time."""
        return await self._turns(briefing, count, designs=count)

    async def _turns(self, briefing: Briefing, count: int, designs: int) -> tuple[Plan, ...]:
        if no_room(briefing.profile, briefing.sheet, briefing.against):
            return ()
        built = list(await self._builtin.plan(briefing.model_copy(update={"free": False}), count))
        designed = briefing.standing.designs + briefing.begun
        others = len(briefing.standing.attempts) - briefing.standing.designs
        left = designs if briefing.free and briefing.allows(_design(briefing, 1)) else 0
        plans: list[Plan] = []
        while len(plans) < count and (built or left):
            if built and (others <= designed or not left):
                plans.append(built.pop(0))
                others += 1
            else:
                designed, left = designed + 1, left - 1
                plans.append(self._plan(_design(briefing, designed), briefing))
        return tuple(plans)

    def _plan(self, action: Action, briefing: Briefing) -> Plan:
        rationale = f"The model's design {action.parameters[ATTEMPT]}: it states its idea with the kernel."
        return Plan(parent=briefing.parent, action=action, rationale=rationale, planner=self.name)


def _design(briefing: Briefing, number: int) -> Action:
    return Action(kind=ActionKind.REWRITE, region=briefing.problem.entry, parameters={ATTEMPT: number})
