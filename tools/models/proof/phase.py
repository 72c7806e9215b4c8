"""What happens in the process that proves a model with its operators in place."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from tools.errors import UserError
from tools.evaluation.wire.phase import Phase
from tools.evaluation.wire.precision import set_precision
from tools.models.jobs import Proof, ProofJob

PACKAGE = "kernelwright_package"
"""Name that a package is imported by where it is proven."""


def prove(phase: Phase) -> None:
    """Run a model with and without a package and answer with what was found; each part is answered as soon as it is known."""
    import torch

    job = ProofJob.model_validate_json(phase.job)
    torch.set_num_threads(job.threads)
    set_precision(job.policy.precision)
    try:
        _prove(phase, job)
    except UserError as error:
        phase.answer(Proof(what=error.what, mend=error.mend).model_dump_json().encode())


def _prove(phase: Phase, job: ProofJob) -> None:
    from torch._inductor import config as compiler

    from tools.models.loading import ModelFile
    from tools.models.proof.prover import Prover

    if job.device == "cpu":
        _stand_in(job)
    # torch.compile would start processes of its own for more; what began this process may have read the variable before
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    compiler.compile_threads = 1
    sys.path.append(str(Path(job.file).parent))
    file = ModelFile(_written(phase.scratch, job), job.factory, job.autocast)
    model = file.model(job.device)
    package = importlib.import_module(PACKAGE)
    prover = Prover(model, package, lambda seed: file.workloads(model, seed, job.device), job.seed, policy=job.policy.name)
    found = prover.correctness(graphs=job.compiled, known=job.known)
    phase.answer(found.model_dump_json().encode())
    if job.timed and found.holds:
        for times in prover.times(job.operators, job.rounds, compiled=job.compiled, max_autotune=job.max_autotune):
            found = found.model_copy(update={"times": times, "notes": prover.notes, "opaque": prover.opaque})
            phase.answer(found.model_dump_json().encode())


def _written(scratch: Path, job: ProofJob) -> Path:
    """Write the model, what it imports, and the package to scratch, where this process may read, and return the model's file."""
    package = {f"{PACKAGE}/{name}": text for name, text in job.package.items()}
    for name, text in {**job.beside, **package}.items():
        place = scratch / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    sys.path.insert(0, str(scratch))
    place = scratch / Path(job.file).name
    place.write_text(job.source)
    return place


def _stand_in(job: ProofJob) -> None:
    """Have host code find the target where there is no device; kernels are interpreted."""
    from tools.evaluation.untrusted import gpu_stand_in
    from tools.evaluation.untrusted.interpreter import teaching

    gpu_stand_in.install(job.sheet)
    teaching.install()
