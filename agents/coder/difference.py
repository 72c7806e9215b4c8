"""What a step really was: the difference between a parent and its child, whatever the plan was called.

Memory is credited with that. A repair may have changed another number than the plan named, and a model may have written something else
altogether: a lesson about the plan's words would then be about something that nobody tried.
"""

from __future__ import annotations

from agents.records.tune import is_tuning
from tools.codegen import Schedule
from tools.cost.choice import chosen_number
from tools.records import IDEA, Action, ActionKind, Candidate
from tools.records.renamed import Value
from tools.tuning.written import text_around, written_numbers

KINDS = {"num_warps": ActionKind.LAUNCH, "num_ctas": ActionKind.LAUNCH, "num_stages": ActionKind.PIPELINE}
"""Kind of action that sets a number; any other number is a size of tiles."""


def changed_action(action: Action, parent: Candidate | None, child: Candidate) -> Action | None:
    """Name the step from `parent` (None: the reference) to `child`, which was planned as `action`; None where it has no name."""
    if is_tuning(action) or chosen_number(action):
        return action
    if action.kind is ActionKind.REWRITE:
        idea = child.idea or str(action.parameters.get(IDEA, ""))
        return action.model_copy(update={"parameters": {IDEA: idea}}) if idea else None
    if child.schedule is not None:
        return _as_built(action, child.schedule) if child.repairs else action
    if parent is not None and parent.schedule is None:
        return _between(action, parent.source, child.source)
    return _held(action, child.source)


def _as_built(action: Action, schedule: str) -> Action:
    """The action with the values that its regions have in the end: a repair takes smaller ones."""
    regions = [one for one in Schedule.model_validate_json(schedule).regions if one.id in action.region.split("+")]
    values = {name: one.parameters[name] for one in regions for name in action.parameters if name in one.parameters}
    return action.model_copy(update={"parameters": {**action.parameters, **values}})


def _between(action: Action, before: str, after: str) -> Action | None:
    """The numbers that differ, where nothing else does; else the action as far as the child has it."""
    old, new = written_numbers(before), written_numbers(after)
    if text_around(before, old) != text_around(after, new):
        return _held(action, after)
    own = {one.name: one.value for one in old}
    changed: dict[str, Value] = {_plain(one.name): one.value for one in new if own.get(one.name) != one.value}
    if not changed:
        return None
    planned = action.kind if changed.keys() & action.parameters.keys() else KINDS.get(next(iter(changed)), ActionKind.TILING)
    return action.model_copy(update={"kind": planned, "parameters": changed})


def _held(action: Action, source: str) -> Action | None:
    """The action without the numbers that have other values in the source; None where it was about these alone."""
    written: dict[str, set[Value]] = {}
    for one in written_numbers(source):
        written.setdefault(_plain(one.name), set()).add(one.value)
    kept = {name: value for name, value in action.parameters.items() if not _is_number(value) or value in written.get(name, {value})}
    return action.model_copy(update={"parameters": kept}) if kept or not action.parameters else None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(name: str) -> str:
    """A number's name without its kernel and its place."""
    return name.partition("@")[0].rpartition(".")[2]
