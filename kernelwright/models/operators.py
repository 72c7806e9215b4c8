"""Has each chosen group optimised as an ordinary run, with one evaluator and one memory for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphs.optimize.confirm import KERNEL
from graphs.optimize.evidence import evidence_folder
from graphs.run.assembly import Shared, assemble, open_run, start_run
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from kernelwright.bench.borrowed import Borrowed
from kernelwright.models.records import ModelSettings, OperatorOutcome
from kernelwright.models.side_by_side import Lineup, Made, jobs_of
from kernelwright.models.small_sizes import with_small_sizes
from kernelwright.models.work import Work
from kernelwright.viewers.watching import see_through
from tools.errors import KernelwrightError, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.evidence import manifest
from tools.models.choosing.chosen import Chosen
from tools.models.packaging.delivered import Delivered, contract_for
from tools.models.records import Group, Trace
from tools.problems.variants import MAX_ELEMENTS
from tools.records import ROOT, Evaluation
from tools.references.reading import Read, read_problem

Listener = Callable[[dict[str, Any]], None]


async def optimise_all(
    rows: Sequence[Chosen],
    settings: ModelSettings,
    groups: Mapping[str, Group],
    pool: EvaluatorPool | None,
    folder: Path,
    home: Path,
    listener: Listener,
    work: Work,
) -> tuple[Made, ...]:
    """Run each that has a budget; a run that fails is told as its operator's outcome, and the next begins.

    Each has its part of the time that is left: what one does not need the next ones have. Where nothing is delivered for one, the groups
    that it was chosen over take its place. Problem files are written to `folder`.
    """

    async def make(row: Chosen, wall_s: float) -> Made:
        own = _with_budget(settings, row.budget, wall_s)
        try:
            return await _optimise(row, groups[row.group], own, pool, folder, home, listener, work)
        except KernelwrightError as error:
            return OperatorOutcome(name=row.group, run="", reason=f"{error.what} {error.mend}", delivered=False), None

    lineup = Lineup(rows, settings, jobs_of(settings))
    await lineup.work(make, work.run_of, listener)
    return tuple(lineup.made)


def _with_budget(settings: ModelSettings, evaluations: int, wall_s: float) -> ModelSettings:
    """Give a run its part of the evaluations and of the wall time."""
    budget = settings.run.budget.model_copy(update={"evaluations": evaluations, "wall_s": wall_s})
    # seconds a candidate that only a reader of the run's record would see
    counters = "never" if wall_s else settings.run.counters
    return settings.model_copy(update={"run": settings.run.model_copy(update={"budget": budget, "counters": counters})})


async def _optimise(
    row: Chosen,
    group: Group,
    settings: ModelSettings,
    pool: EvaluatorPool | None,
    folder: Path,
    home: Path,
    listener: Listener,
    work: Work,
) -> Made:
    trace, file = group.trace, folder / f"{row.group}.py"
    assert trace is not None
    # others are worked on beside it
    read, source = await asyncio.to_thread(read_operator, file, trace, settings.run, measured=not row.eager_us)
    if known := work.run_of(row.group):
        store = open_run(home, known)
    else:
        store = start_run(read.problem, settings.run.model_copy(update={"problem_file": str(file)}), home)
        work.note_run(row.group, store.meta("run"))
    try:
        services = assemble(store, Shared(pool=Borrowed(pool) if pool else None, variants=read.variants))
        delivery = await see_through(
            services, lambda event: listener({"event": "inside", "inner": event, "services": services, "row": row})
        )
        outcome = OperatorOutcome(name=row.group, run=services.run, reason=delivery.reason, delivered=delivery.candidate != ROOT)
        if delivery.candidate == ROOT:
            return outcome, None
        return _delivered(outcome, services, delivery.candidate, delivery.evaluation, group, trace.model_copy(update={"source": source}))
    finally:
        store.close()


def _delivered(
    outcome: OperatorOutcome, services: Services, candidate: str, key: str, group: Group, trace: Trace
) -> tuple[OperatorOutcome, Delivered]:
    folder = services.store.folder
    evaluation = services.store.get("evaluation", key, Evaluation)
    assert evaluation is not None
    bundle = evidence_folder(folder, candidate)
    told = {
        "speedup": evaluation.speedup or 0.0,
        "tier": str(evaluation.tier or ""),
        "digest": manifest.digest_of(bundle) if bundle.is_dir() else "",
    }
    kernel = Delivered(
        group=group,
        trace=trace,
        contract=contract_for(services.problem, services.variants, trace),
        kernel=(folder / "result" / KERNEL).read_text(),
        evidence=bundle if bundle.is_dir() else None,
    )
    return outcome.model_copy(update=told), kernel


def read_operator(file: Path, trace: Trace, settings: RunSettings, *, measured: bool) -> tuple[Read, str]:
    """Write and read the problem; small sizes that do not fit together, or whose weights are too much for an interpreter, are left out."""
    held = 0 if measured else sum(spec.numel for spec in trace.abi.parameters)
    failure = UserError("", "")
    for source in with_small_sizes(trace.source, chosen=held <= MAX_ELEMENTS):
        file.write_text(source)
        try:
            return read_problem(file, settings.policy), source
        except UserError as error:
            failure = error
    raise failure
