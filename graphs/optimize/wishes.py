"""Grants what a search method wishes for: each wish once a run, its answer kept under the wish's name, and what came of it in words."""

from __future__ import annotations

from agents.planner.choices import action_fault
from agents.planner.weigh import WeighCase, Weigher, Weights
from agents.planner.world import TreeCase, TreeEdit, TreeEditor, TreeEdits
from graphs.optimize.briefing import brief, recalled_for
from graphs.optimize.survey import make_survey
from graphs.optimize.teaching import lesson_writer
from graphs.run.context import Services
from graphs.run.records import Considered
from graphs.search.archive import Offer
from graphs.search.protocol import Ask, Survey
from graphs.search.wishes import Answer, EditWish, Reflected, ReflectWish, WeighWish, Wish
from graphs.search.world_asked import decisions, tree_check
from graphs.search.world_tree import MOST_INSERTS
from tools.errors import KernelwrightError

EDITS = "tree_edits"
REFLECTIONS = "reflection"
WEIGHTS = "weights"
SHOWN = 4
"""Choices named in the words on a weighing."""


def granted(services: Services, wish: Wish) -> Answer | None:
    """Read the answer to a wish; None where it was not granted yet."""
    if isinstance(wish, ReflectWish):
        return services.store.get(REFLECTIONS, wish.name, Reflected)
    if isinstance(wish, WeighWish):
        return services.store.get(WEIGHTS, wish.name, Weights)
    return services.store.get(EDITS, wish.name, TreeEdits)


async def grant(services: Services, wish: Survey | Wish, round_: int) -> tuple[str, ...]:
    """Grant one wish, and say what came of it; BudgetReached where no model call can be paid any more."""
    if isinstance(wish, Survey):
        await make_survey(services, wish, round_)
        return ()
    if isinstance(wish, ReflectWish):
        said = await _reflect(services, wish)
    elif isinstance(wish, WeighWish):
        said = await _weigh(services, wish, round_)
    else:
        said = await _edit(services, wish, round_)
    if said:
        services.store.put("considered", wish.name, Considered(said=said))
    return said


def opened_offers(services: Services, parent: str) -> tuple[Offer, ...]:
    """Steps on a parent that the planner opened by its edits of a tree."""
    found = services.store.all(EDITS, TreeEdits, subject=parent).values()
    return tuple(_offer(one, answer.by) for answer in found for one in answer.edits if one.edit == "insert")


def _offer(one: TreeEdit, by: str) -> Offer:
    assert one.action is not None
    fields = one.model_dump(include={"score", "difficulty"})
    return Offer(action=one.action, predicted_gain=one.gain, rationale=one.reason, planner=by, **fields)


async def _edit(services: Services, wish: EditWish, round_: int) -> tuple[str, ...]:
    """Let the planner edit the tree; one without words for trees leaves it to the method's rules."""
    planner = services.team.planner
    if not isinstance(planner, TreeEditor):
        services.store.put(EDITS, wish.name, TreeEdits(), subject=wish.parent)
        return ()
    await recalled_for(services, wish.parent, round_)
    briefing = await brief(services, Ask(parent=wish.parent), round_)
    case = TreeCase(name=wish.name, briefing=briefing, focus=wish.focus, nodes=decisions(wish.tree), ended=wish.ended, most=MOST_INSERTS)
    must_open = bool(briefing.options or briefing.free)
    answer = await planner.edit(case, tree_check(wish, lambda action: action_fault(action, briefing), must_open=must_open))
    services.store.put(EDITS, wish.name, answer, subject=wish.parent)
    return _edit_words(wish, answer)


async def _weigh(services: Services, wish: WeighWish, round_: int) -> tuple[str, ...]:
    """Let the planner weigh the choices; one that cannot leaves it to its ratings, and that is said once."""
    planner = services.team.planner
    asked = isinstance(planner, Weigher)
    if isinstance(planner, Weigher):
        await recalled_for(services, wish.parent, round_)
        briefing = await brief(services, Ask(parent=wish.parent), round_)
        fields = {"groups": wish.groups, "actions": wish.actions, "history": wish.history}
        weights = await planner.weigh(WeighCase(name=wish.name, briefing=briefing, **fields))
    else:
        weights = Weights(reason=f"The planner {planner.name} has no token probabilities")
    first = not services.store.all(WEIGHTS, Weights)
    services.store.put(WEIGHTS, wish.name, weights, subject=wish.parent)
    if not weights.scores:
        return (f"{weights.reason}: its ratings weigh the choices.",) if first or asked else ()
    shown = sorted(weights.scores.items(), key=lambda one: -one[1])[:SHOWN]
    listed = ", ".join(f"{group} {score:.2f}" for group, score in shown)
    why = f" ({weights.reason})" if weights.reason else ""
    return (f"{weights.model} weighed {len(weights.scores)} choices by {weights.by}{why}: {listed}.",)


async def _reflect(services: Services, wish: ReflectWish) -> tuple[str, ...]:
    """Let memory go over what this run has taught so far; a memory that may not change stays as it is, and that is said once."""
    try:
        update = await services.memory.reflect(services.run, wish.number, lesson_writer(services.team), wish.most)
    except KernelwrightError as error:
        services.store.put(REFLECTIONS, wish.name, Reflected())
        return (f"Memory could not go over its lessons: {error.what} {error.mend}",)
    services.store.put(REFLECTIONS, wish.name, Reflected(rewritten=update.rewritten if update else ()))
    if update is None:
        off = f"No lessons are rewritten between batches of trajectories: memory is {services.memory.name}."
        return (off,) if wish.number == 1 else ()
    said = f"Between batches of trajectories memory went over {update.outcomes} outcomes ({update.by})"
    return (f"{said}: {len(update.rewritten)} of {update.considered} lessons rewritten.", *update.notes)


def _edit_words(wish: EditWish, answer: TreeEdits) -> tuple[str, ...]:
    when = f"after node {wish.ended.node} had ended" if wish.ended else "to open it"
    if answer.reason:
        return (f"{answer.reason} The built-in rules edited the tree {when}.", *(f"Refused: {fault}." for fault in answer.refused))
    listed = "; ".join(f"{one.edit} {one.node}{f' {one.action}' if one.action else ''} ({one.reason})" for one in answer.edits)
    return (f"{answer.by} edited the tree {when}: {listed}.", *(f"Refused: {fault}." for fault in answer.refused))
