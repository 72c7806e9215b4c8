"""The cost model's choices as actions of the built-in coder: the whole forward as the model likes it best, second best, and so on."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence

from agents.coder.traced import traced_choices, traced_graph
from agents.records.expectation import Expectation
from tools.codegen import IllegalAction, Schedule, apply, initial_schedule
from tools.codegen.ir.schedule import FORMAT, INSIDE
from tools.codegen.rewrite.bind import bind
from tools.codegen.schedule.cuda_graph import CAPTURE
from tools.codegen.schedule.push_down import ALGEBRA
from tools.codegen.templates.registry import knobs_of
from tools.cost.choice import CHOICE, MADE, Choice, choice_action, chosen_number
from tools.cost.rank_schedules import modelled_choices
from tools.cost.schedule_model import ScheduleModel
from tools.records import Action, Candidate, HardwareSheet, Problem

TOLD = 1.01
"""Factor from which on a modelled change is told."""
SHRUNK = ("num_stages", "UNROLL", "BLOCK_K", "BLOCK_M", "ELEMENTS")
"""Numbers that a choice which is too large is mended by, the one that costs least time first."""
KEPT = 16
"""Problems whose choices are kept; the one used longest ago goes first."""

_KEEPING = threading.Lock()
_CHOICES: OrderedDict[tuple[str, str], tuple[Choice, ...]] = OrderedDict()


def choices_of(problem: Problem, sheet: HardwareSheet) -> tuple[Choice, ...]:
    """Name the model's choices for a problem on a device, or give back those that were named."""
    found = traced_choices(problem, sheet)
    return _chosen_here(problem, sheet) if found is None else found


def _chosen_here(problem: Problem, sheet: HardwareSheet) -> tuple[Choice, ...]:
    """Choose for another device than the problem was traced for; nobody waits for it who asks about another problem."""
    name = (problem.id, sheet.model_dump_json())
    with _KEEPING:
        known = _CHOICES.get(name)
    if known is None:
        known = modelled_choices(traced_graph(problem), sheet, problem.policy)
    with _KEEPING:
        _CHOICES[name] = known
        _CHOICES.move_to_end(name)
        while len(_CHOICES) > KEPT:
            _CHOICES.popitem(last=False)
    return known


def choice_actions(problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
    """List the choices that differ from a parent's schedule, the best first."""
    own = Schedule.model_validate_json(parent.schedule) if parent and parent.schedule else None
    return tuple(choice_action(number) for number, one in enumerate(choices_of(problem, sheet), 1) if one.schedule != own)


def choice_of(action: Action, problem: Problem, sheet: HardwareSheet) -> Choice | None:
    """Find the choice that an action names; None where there are not so many."""
    found = choices_of(problem, sheet)
    number = chosen_number(action)
    return found[number - 1] if 0 < number <= len(found) else None


def kept_action(action: Action, problem: Problem, sheet: HardwareSheet) -> Action:
    """Word an action as memory keeps it: of a choice of the model what it makes, not its number; any other as it is."""
    choice = choice_of(action, problem, sheet) if chosen_number(action) else None
    if choice is None:
        return action
    others = {name: value for name, value in action.parameters.items() if name != CHOICE}
    return action.model_copy(update={"parameters": {**others, MADE: choice.made}})


def regions_in_words(problem: Problem, parent: Candidate | None) -> dict[str, str]:
    """Say by region what a parent's schedule, or the first one, runs there: `rows: mul, softmax`; empty for free text."""
    if parent is not None and parent.schedule is None:
        return {}
    own = Schedule.model_validate_json(parent.schedule) if parent and parent.schedule else initial_schedule(traced_graph(problem))
    inside = tuple(region for region in own.generated if INSIDE in region.id)
    return {region.id: f"{region.template}: {', '.join(region.nodes)}" for region in (*own.regions, *inside)}


def smaller_schedule(schedule: Schedule) -> Schedule | None:
    """Take fewer stages, or where there is one a smaller step or tile, in every generated region; None where all are smallest."""
    changed = schedule
    for region in schedule.generated:
        knobs = knobs_of(region.template)
        for name in SHRUNK:
            own = region.parameters.get(name)
            values = [value for value in knobs[name].values if isinstance(own, int) and int(value) < own] if name in knobs else []
            if values:
                changed = changed.replaced(region.model_copy(update={"parameters": {**region.parameters, name: max(values)}}))
                break
    return changed if changed != schedule else None


def _promise(choice: Choice) -> str:
    """The note as a clause."""
    return choice_note(choice).removesuffix(".").replace("Chosen by the cost model, which expects", "the cost model expects", 1)


def choice_note(choice: Choice) -> str:
    """Say what the model expects, and of what it knows nothing."""
    rest = f"; it knows nothing of {', '.join(choice.unmodelled)}, which has the coder's own first values" if choice.unmodelled else ""
    replayed = ", replayed as a CUDA graph" if choice.schedule.captured else ""
    return f"Chosen by the cost model, which expects about {choice.us:.0f} µs on the device{replayed} (estimated){rest}."


def expectations(problem: Problem, parent: Candidate | None, options: Sequence[Action], sheet: HardwareSheet) -> dict[str, Expectation]:
    """Say what the cost model expects of each option, by its id; nothing of options that it cannot tell from the parent."""
    found: dict[str, Expectation] = {}
    own = Schedule.model_validate_json(parent.schedule) if parent and parent.schedule else None
    if own is None and not any(chosen_number(action) for action in options):
        return {}
    graph = traced_graph(problem)
    model = ScheduleModel(bind(graph, own).rewritten if own else graph, sheet, problem.policy)
    plain = own is not None and not any(FORMAT in region.parameters for region in own.regions)
    before = model.schedule_us(own) if own and plain else None
    for action in options:
        choice = choice_of(action, problem, sheet) if chosen_number(action) else None
        was, after = before, choice.us if choice else None
        if before and own and not choice and not {FORMAT, ALGEBRA} & action.parameters.keys():
            # a capture saves launching, which the head start of a timed call hides
            in_use = CAPTURE in action.parameters
            try:
                after = model.schedule_us(apply(graph, own, action), in_use=in_use)
            except IllegalAction:
                continue
            was = model.schedule_us(own, in_use=in_use)
        gain = was / after if was and after and 0 < after < math.inf else None
        if choice:
            found[action.id] = Expectation(words=_promise(choice), gain=gain, made=choice.made)
        elif gain and not 1 / TOLD < gain < TOLD:
            found[action.id] = Expectation(words=f"the cost model expects {gain:.2f}x (estimated)", gain=gain)
    return found
