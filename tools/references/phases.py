"""What happens in the processes for references: reading a problem's file, tracing a reference, and what makes their zygote ready."""

from __future__ import annotations

import os
from pathlib import Path

from tools.cores import usable_cores
from tools.errors import UserError
from tools.evaluation.wire.phase import Phase
from tools.garbage import look_seldom
from tools.records import Problem
from tools.references.jobs import ReadAnswer, ReadJob, TraceJob, WriteJob


def warm_up() -> dict[str, str]:
    """Import what reading and tracing need, by exporting a trifle; starts no thread and no CUDA."""
    import torch

    # imported here, so that no fork has to
    import tools.codegen
    import tools.cost.rank_schedules
    import tools.problems.analysis
    import tools.problems.trial
    import tools.references.graph_text  # noqa: F401

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    look_seldom()
    torch.set_num_threads(1)
    torch.export.export(Twice(), (torch.ones(2),), strict=False)
    return {}


def read(phase: Phase) -> None:
    """Read a problem's file and answer with the problem, its variants and notes, or with what is wrong with it."""
    from tools.problems import load_problem
    from tools.problems.patience import STEP_S, limit_steps
    from tools.problems.trial import RandomReferenceError

    _use_some_cores()
    limit_steps(STEP_S)
    job = ReadJob.model_validate_json(phase.job)
    try:
        found = _answer(load_problem(Path(job.file), job.policy, job.entry))
    except UserError as error:
        random = isinstance(error, RandomReferenceError)
        found = ReadAnswer(failure="random" if random else "unreadable", what=error.what, mend=error.mend)
    phase.answer(found.model_dump_json().encode())


def vary(phase: Phase) -> None:
    """Look for the small variants of a problem that was read before, and answer as `read` does."""
    _use_some_cores()
    problem = Problem.model_validate_json(phase.job)
    try:
        found = _answer(problem)
    except UserError as error:
        found = ReadAnswer(failure="unreadable", what=error.what, mend=error.mend)
    phase.answer(found.model_dump_json().encode())


def _answer(problem: Problem) -> ReadAnswer:
    from tools.problems import problem_notes, small_variants
    from tools.problems.mixed_sizes import mixed_variants

    return ReadAnswer(problem=problem, variants=small_variants(problem), mixed=mixed_variants(problem), notes=problem_notes(problem))


def trace(phase: Phase) -> None:
    """Trace a reference, have the cost model choose schedules for it, and answer with both as text."""
    from tools.codegen import trace as traced
    from tools.cost.rank_schedules import modelled_choices
    from tools.problems.mixed_sizes import MIXED
    from tools.problems.variants import VARIANTS
    from tools.references.graph_text import as_text

    _use_some_cores()
    job = TraceJob.model_validate_json(phase.job)
    if job.variants is not None:
        VARIANTS.keep(job.problem, job.variants)
    if job.mixed is not None:
        MIXED.keep(job.problem, job.mixed)
    graph = traced(job.problem)
    phase.answer(as_text(graph, modelled_choices(graph, job.sheet, job.problem.policy) if job.sheet else ()))


def write(phase: Phase) -> None:
    """Have Inductor write kernels for a reference, and answer with its text."""
    from tools.inductor.generate import write as written

    _use_some_cores()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(phase.scratch)
    job = WriteJob.model_validate_json(phase.job)
    phase.answer(written(job.problem, job.variants, job.sheet).model_dump_json().encode())


def _use_some_cores() -> None:
    """Leave most cores to those who time."""
    import torch

    torch.set_num_threads(max(1, usable_cores() // 4))
