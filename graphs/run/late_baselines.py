"""Baselines that came after the reference was measured: a run's record of its reference takes them over from the first timing with them."""

from __future__ import annotations

from graphs.run.context import Services
from tools.records import Baselines, Evaluation


def keep_late_baselines(services: Services, evaluation: Evaluation) -> None:
    """Add what an evaluation was timed beside and the run's baselines lack."""
    known = services.store.get("baselines", services.problem.id, Baselines)
    if known is None or not known.samples or evaluation.timing is None:
        return
    late = {name: sample for name, sample in evaluation.timing.baselines.items() if name not in known.samples}
    if late:
        note = f"{', '.join(late)} came later than it was waited for: its time is that beside candidate {evaluation.candidate[:6]}."
        update = {"samples": {**known.samples, **late}, "notes": (*known.notes, note)}
        services.store.put("baselines", services.problem.id, known.model_copy(update=update))
