"""Where a problem has several shapes, the candidates that are fastest at each are joined into one more, before the best is confirmed."""

from __future__ import annotations

from agents.models import BudgetReached
from graphs.run.context import Services
from graphs.run.judge import judge
from graphs.run.steering import is_vetoed
from tools.codegen.joined import UnjoinableError, joined
from tools.records import Action, ActionKind, Candidate, Evaluation, Verdict

MOST = 3
"""Configurations that one file dispatches over, at most."""
WORTH = 0.98
"""Share of the time of a shape from which another candidate counts as faster there: less is noise."""
JOINER = "dispatch"
"""Who planned and wrote it."""


async def join_best(services: Services) -> str:
    """Write, keep and judge a file that gives each shape to the candidate that is fastest there; its name, or empty for none."""
    shapes = services.problem.shapes
    chosen = _chosen(_passed(services)) if len(shapes) > 1 else []
    if len(set(chosen)) < 2:
        return ""
    try:
        best = [(shape, services.candidate(name).source) for shape, name in zip(shapes, chosen, strict=True)]
        source = joined(services.problem, best)
    except UnjoinableError:
        return ""
    served = {shape.name: name[:6] for shape, name in zip(shapes, chosen, strict=True)}
    candidate = Candidate(
        problem=services.problem.id,
        parent=max(set(chosen), key=chosen.count),
        action=Action(kind=ActionKind.ALGORITHM, region=services.problem.entry, parameters={"implementation": JOINER}),
        source=source,
        coder=JOINER,
        notes=(f"By a bound on an input's elements: {', '.join(f'{shape} by {name}' for shape, name in served.items())}.",),
    )
    services.store.put_candidate(candidate)
    try:
        await judge(services, services.request(candidate))
    except BudgetReached:
        return ""
    return candidate.id


def _passed(services: Services) -> dict[str, Evaluation]:
    """Find the search's right candidates, the tuner's trials too, with what came of each shape."""
    found = {}
    for key, one in services.store.all("evaluation", Evaluation).items():
        known = services.store.candidate(one.candidate)
        right = one.verdict is Verdict.PASS and all(shape.evaluation.time_us for shape in one.shapes) and one.shapes
        if right and known is not None and services.request(known).key == key and not is_vetoed(services.store, one.candidate):
            found[one.candidate] = one
    return found


def _chosen(passed: dict[str, Evaluation]) -> list[str]:
    """Choose for each shape a candidate: the best of all, or one that is faster there, of at most so many that save most."""
    if not passed:
        return []
    times = {name: [shape.evaluation.time_us or 0.0 for shape in one.shapes] for name, one in passed.items()}
    weights = [shape.weight for shape in next(iter(passed.values())).shapes]

    def cost(names: list[str]) -> float:
        return sum(weight * min(times[name][place] for name in names) for place, weight in enumerate(weights))

    taken = [min(times, key=lambda name: cost([name]))]
    while len(taken) < min(MOST, len(times)):
        more = min((name for name in times if name not in taken), key=lambda name: cost([*taken, name]))
        if cost([*taken, more]) > WORTH * cost(taken):
            break
        taken.append(more)
    return [min(taken, key=lambda name: times[name][place]) for place in range(len(weights))]
