"""torch.compile's own kernels as a parent: judged in the first round beside what the search method asks for."""

from __future__ import annotations

import asyncio

from agents.coder.protocol import Draft, Refusal
from graphs.run.context import Services
from graphs.search.protocol import Ask
from tools.hardware.devices import choose_devices
from tools.inductor import RefusedError, Written, candidate_text
from tools.records import ROOT, Action, ActionKind, Plan, Tier
from tools.references.writing import written_apart

COMPILED = "torch.compile"
"""Who planned and wrote that candidate."""
_TAG = "compiled"


def compiled_ask(services: Services, round_: int) -> tuple[Ask, ...]:
    """What is asked for beside the search method's wishes: once, in the first round in which that was asked for any."""
    wanted = services.settings.parents
    first = 2 if services.settings.start else 1
    if round_ != first or wanted == "none" or services.settings.team.frame.language != "triton":
        return ()
    if wanted == "auto" and services.baselines().tier is Tier.ESTIMATED:
        return ()
    return (Ask(parent=ROOT, tag=_TAG),)


def is_compiled_ask(ask: Ask) -> bool:
    """Whether an ask is this module's."""
    return ask.tag == _TAG


def compiled_plan(services: Services) -> Plan:
    """The plan that torch.compile's kernels are the outcome of."""
    action = Action(kind=ActionKind.ALGORITHM, region=services.problem.entry, parameters={"implementation": COMPILED})
    said = "What torch.compile itself would run, as a file of its own: nothing slower is worth delivering."
    return Plan(parent=ROOT, action=action, rationale=said, planner=COMPILED)


async def compiled_draft(services: Services) -> Draft | Refusal:
    """The file made of Inductor's kernels, which the run keeps, or why there is none."""
    known = services.store.get("compiled", services.problem.id, Draft)
    if known is not None:
        return known
    made = _made(services, await written(services))
    if isinstance(made, Draft):
        services.store.put("compiled", services.problem.id, made)
    return made


async def begin_writing(services: Services) -> None:
    """Have Inductor write while the reference is measured, where its kernels will be asked for."""
    settings = services.settings
    if settings.parents == "none" or settings.start or settings.team.frame.language != "triton":
        return
    is_timed = settings.evaluator == "local" and bool(choose_devices(settings.devices))
    known = services.store.get("compiled", services.problem.id, Draft)
    if known is None and (is_timed or settings.parents == COMPILED):
        await written(services)


async def written(services: Services) -> Written:
    """What Inductor writes for the problem, its shapes and its variants; begun once a run."""
    if services.inductor is None:
        services.inductor = asyncio.create_task(asyncio.to_thread(_written, services))
    # whoever gives up waiting leaves it to the others
    return await asyncio.shield(services.inductor)


def _written(services: Services) -> Written:
    shapes = tuple(services.problem.at(shape) for shape in services.problem.shapes)
    return written_apart(services.problem, (*shapes, *services.variants), services.sheet)


def _made(services: Services, found: Written) -> Draft | Refusal:
    try:
        source = candidate_text(services.problem, found, services.baselines().configurations)
    except RefusedError as error:
        return Refusal(reason=f"No file could be made of torch.compile's kernels: {error}.")
    sizes = len(found.programs)
    others = f" It knows {sizes} sizes and refuses others." if sizes > 1 else " It knows this size alone."
    return Draft(source=source, notes=(f"Derived from torch.compile (Inductor of torch {found.torch}).{others}",))
