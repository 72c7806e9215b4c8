"""The evidence of a confirmed candidate: a bundle in the run's folder, which anyone can re-check."""

from __future__ import annotations

from pathlib import Path

from graphs.run.context import Services
from graphs.run.records import OTHER_BASELINES
from tools.evidence import Origin, make_bundle, write_bundle
from tools.evidence.manifest import MANIFEST
from tools.records import Baselines, Evaluation, EvaluationRequest, Profile


def evidence_folder(run_folder: Path, candidate: str) -> Path:
    """Where the bundle of a candidate is, once it has been confirmed."""
    return run_folder / "evidence" / candidate


def keep_evidence(services: Services, request: EvaluationRequest, evaluation: Evaluation) -> None:
    """Write the bundle of a confirmed candidate; one that a run wrote before it was cut short stays as it is."""
    store = services.store
    folder = evidence_folder(store.folder, request.candidate)
    if (folder / MANIFEST).is_file():
        return
    folder.parent.mkdir(exist_ok=True)
    baselines = store.get("baselines", request.problem.id, Baselines)
    profile = store.get("profile", request.candidate, Profile)
    origin = Origin.here(services.run, services.pool.name)
    others = {name: found for name in services.settings.baselines if (found := store.get(OTHER_BASELINES, name, Baselines))}
    write_bundle(make_bundle(request, evaluation, origin, baselines, profile, others), folder)
