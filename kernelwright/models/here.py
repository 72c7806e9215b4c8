"""The same work on a model that lives in this process: captured and proven here, optimised by ordinary runs."""

from __future__ import annotations

import importlib
import os
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs.run.evaluators import LOCAL
from kernelwright.models.making import Making
from kernelwright.models.operators import Listener
from kernelwright.models.proving import Proving
from kernelwright.models.recording import Recording
from kernelwright.models.records import ModelSettings, Outcome
from kernelwright.models.work import Work
from kernelwright.models.working import choose_from, finish, first_outcome, targeted
from tools.errors import UserError
from tools.evaluation.several import begin_local
from tools.models.form import check_package_place
from tools.models.jobs import Proof, ProofJob
from tools.references.processes import PROCESSES
from tools.scratch import PREFIX, scratch

if TYPE_CHECKING:
    from torch import nn

    from tools.models.loading import Workload

MOST_CALLS = 4
"""Calls that are taken of an iterable, such as a data loader."""


@dataclass(frozen=True)
class ModelHere:
    """A model of this process, as `Proving` asks it."""

    model: nn.Module
    workloads: Sequence[Workload]
    device: str

    def prove(self, job: ProofJob) -> Proof:
        """Prove a package in this process, where its kernels can run."""
        from tools.models.proof.prover import Prover

        if self.device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
            what = "The model is on the CPU, where kernels do not run: each operator was judged by itself, the whole model was not."
            return Proof(what=what, mend="Put the model on a GPU, or set TRITON_INTERPRET=1 before Python starts.")
        with scratch(f"{PREFIX}proof-") as folder:
            name = f"kernelwright_proof_{secrets.token_hex(4)}"
            for path, text in job.package.items():
                place = folder / name / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            prover = Prover(self.model, imported(folder / name), lambda seed: list(self.workloads), job.seed, policy=job.policy.name)
            found = prover.correctness(graphs=job.compiled, known=job.known)
            if not (job.timed and found.holds):
                return found
            *_, times = prover.times(job.operators, job.rounds, compiled=job.compiled, max_autotune=job.max_autotune)
            return found.model_copy(update={"times": times, "notes": prover.notes, "opaque": prover.opaque})


def work_here(model: nn.Module, inputs: Any, out: Path, settings: ModelSettings, home: Path, listener: Listener) -> Outcome:
    """Do all of it for `model` as it is; where it is proven, or cannot be proven here, the operators are in it when this returns."""
    from tools.autocast.as_cuda import rounding_as_cuda
    from tools.autocast.state import dtype_named, rounded_to
    from tools.models.loading import given

    check_package_place(out)
    if model.training:
        raise UserError("The model is in training mode, for which no kernel is made.", "Call model.eval() first.")
    # operators are judged in processes that import torch while the model is captured
    PROCESSES.start()
    if settings.run.evaluator == LOCAL:
        begin_local(settings.run.devices)
    workloads = calls_of(inputs)
    tensors = (*model.parameters(), *model.buffers(), *given(workloads))
    device = next((value.device.type for value in tensors), "cpu")
    rounding = dtype_named(settings.autocast, "autocast") or rounded_to(device)
    workloads = [replace(one, autocast=rounding) for one in workloads]
    with rounding_as_cuda() if device == "cpu" else nullcontext():
        return _worked(model, workloads, device, out, settings, home, listener)


def _worked(
    model: nn.Module, workloads: Sequence[Workload], device: str, out: Path, settings: ModelSettings, home: Path, listener: Listener
) -> Outcome:
    from tools.models.capturing.capture import capture

    began = time.monotonic()
    sheet, settings = targeted(settings)
    listener({"event": "capturing", "title": type(model).__name__, "device": device})
    captured = capture(model, workloads, settings.largest)
    listener({"event": "choosing", "capture": captured})
    rows = choose_from(captured, sheet, settings, measured=device != "cpu")
    listener({"event": "chosen", "capture": captured, "rows": rows, "target": sheet.title})
    begun = first_outcome("", "", sheet, device, settings, captured, rows)
    recording = Recording(home, begun, listener)
    making = Making(captured, settings, home, recording, Work())
    outcomes, delivered = making.optimise(rows)
    outcome = begun.model_copy(update={"operators": outcomes})
    if delivered:
        proving = Proving(ModelHere(model, workloads, device), Path(), "", "", sheet, settings, device != "cpu", 1, listener)
        outcome, delivered = proving.settle(outcome, delivered, making.instead)
    outcome = finish(outcome, delivered, out, time.monotonic() - began)
    recording.end(outcome)
    if outcome.package and (outcome.proof.holds or outcome.proof.what):
        imported(out).apply(model)
    return outcome


def calls_of(inputs: Any) -> list[Workload]:
    """Read the calls: one as a tensor, a tuple of arguments or a dictionary of keywords, or an iterable of such, a data loader too."""
    import torch

    from tools.models.loading import as_workload

    if isinstance(inputs, torch.Tensor | tuple | dict):
        return [as_workload("call", inputs)]
    if not isinstance(inputs, Iterable):
        raise UserError(
            f"The inputs are a {type(inputs).__name__}.", "Give a tensor, a tuple, a dictionary of keywords, or a list of such."
        )
    found = [as_workload(f"call {place}", each) for place, each in enumerate(islice(inputs, MOST_CALLS))]
    if not found:
        raise UserError("There is no call among the inputs.", "Give at least one.")
    return found


def imported(folder: Path) -> Any:
    """Import the package in `folder` by its name."""
    place = str(folder.absolute().parent)
    sys.path.insert(0, place)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(folder.name)
    finally:
        sys.path.remove(place)
