"""Reads a problem's ABI, work and small variants anew out of its source: a record that came from elsewhere may claim others."""

from __future__ import annotations

from tools.errors import UserError
from tools.evaluation.wire.jobs.derive import Derived, DeriveJob
from tools.evaluation.wire.phase import Phase


def derive(phase: Phase) -> None:
    """Run the source and answer with what it gives."""
    from tools.problems import problem_notes, reload_problem, small_variants

    job = DeriveJob.model_validate_json(phase.job)
    try:
        fresh = reload_problem(job.problem)
        found = Derived(problem=fresh, variants=small_variants(fresh), notes=problem_notes(fresh))
    except UserError as error:
        found = Derived(problem=None, refusal=error.what)
    phase.answer(found.model_dump_json().encode())
