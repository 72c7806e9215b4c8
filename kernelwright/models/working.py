"""The work on one model from its file to a proven package: capture, choose, optimise, put back, prove, take out what does not help."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphs.run.assembly import resolve_target
from kernelwright.models.first_choices import modelled
from kernelwright.models.making import Making
from kernelwright.models.operators import Listener
from kernelwright.models.page import write_report
from kernelwright.models.proving import Proving
from kernelwright.models.recording import Recording
from kernelwright.models.records import ModelSettings, Outcome
from kernelwright.models.report import summary
from kernelwright.models.work import work_of
from tools.models.apart import model_processes
from tools.models.choosing.choice import choose, compiled_calls
from tools.models.choosing.chosen import Chosen
from tools.models.form import NOT_PROVEN_YET, check_package_place
from tools.models.jobs import CaptureJob, Proof
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.package import write_package
from tools.models.records import Capture
from tools.problems.source import read_source
from tools.records import HardwareSheet

SEED_BITS = 31
UNPROVEN = Proof(what=NOT_PROVEN_YET, mend="Run the command again: it goes on here.")
"""What is written down until there is a proof."""


def work_on_file(file: Path, factory: str, out: Path, settings: ModelSettings, home: Path, listener: Listener) -> Outcome:
    """Do all of it; wrong input raises UserError before anything is spent. `out` must be empty or not there."""
    began = time.monotonic()
    check_package_place(out)
    source = read_source(file)
    sheet, settings = targeted(settings)
    with model_processes(settings.run.devices, sheet.title) as processes:
        work = work_of(file, source, factory, out, settings, home)
        if work.done is None:
            job = CaptureJob(
                file=str(file.absolute()),
                factory=factory,
                device=processes.device,
                policy=settings.run.policy,
                largest=settings.largest,
                autocast=settings.autocast,
                threads=1,
            )
            listener({"event": "capturing", "title": f"{file.name}{f':{factory}' if factory else ''}", "device": processes.device})
            captured = processes.capture(job)
            listener({"event": "choosing", "capture": captured})
            work.begin(captured, choose_from(captured, sheet, settings, measured=processes.device != "cpu"))
        assert work.done is not None
        captured, rows = work.done.capture, work.done.rows
        listener({"event": "chosen", "capture": captured, "rows": rows, "target": sheet.title})
        begun = first_outcome(str(file), factory, sheet, processes.device, settings, captured, rows)
        recording = Recording(home, begun, listener)
        making = Making(captured, settings, home, recording, work)
        outcomes, delivered = making.optimise(rows)
        outcome = begun.model_copy(update={"operators": outcomes})
        if delivered:
            # a kill during the proof costs no more than the proof
            finish(outcome.model_copy(update={"proof": UNPROVEN}), delivered, out, time.monotonic() - began)
            seed = secrets.randbits(SEED_BITS)

            def heard(event: dict[str, Any]) -> None:
                if event["event"] == "proven":
                    # nor does a kill while compilers are timed cost what is known
                    finish(event["outcome"], event["delivered"], out, time.monotonic() - began)
                listener(event)

            proving = Proving(processes, file, source, factory, sheet, settings, processes.device != "cpu", seed, heard)
            outcome, delivered = proving.settle(outcome, delivered, making.instead)
        outcome = finish(outcome, delivered, out, time.monotonic() - began)
        recording.end(outcome)
        work.end()
        return outcome


def targeted(settings: ModelSettings) -> tuple[HardwareSheet, ModelSettings]:
    """Find the device that operators are made for, and name it in the settings of runs."""
    sheet = resolve_target(settings.run.target)
    return sheet, settings.model_copy(update={"run": settings.run.model_copy(update={"target": sheet.name})})


def first_outcome(
    file: str,
    factory: str,
    sheet: HardwareSheet,
    device: str,
    settings: ModelSettings,
    captured: Capture,
    rows: Sequence[Chosen],
) -> Outcome:
    """Write down what is known before the first operator is done."""
    return Outcome(
        file=file,
        factory=factory,
        target=sheet.title,
        device=device,
        policy=str(settings.run.policy),
        autocast=settings.autocast,
        capture=captured,
        chosen=tuple(rows),
        operators=(),
        proof=Proof(what="No operator was delivered, so there is nothing to prove.", mend="Give a larger --budget."),
    )


def choose_from(captured: Capture, sheet: HardwareSheet, settings: ModelSettings, *, measured: bool) -> tuple[Chosen, ...]:
    """Choose what to work on; without evaluations, by what the kernels that will be delivered would take."""
    policy, most, compiled = settings.run.policy, settings.most, None
    if settings.budget:
        if settings.compiled:
            compiled = compiled_calls(captured, sheet, policy)
        return choose(captured, sheet, policy, budget=settings.budget, most=most, measured=measured, compiled=compiled)
    times = modelled(captured, settings, measured=measured)
    if settings.compiled:
        compiled = {name: one.compiled for name, one in times.items() if one.compiled}
    ours = {name: one.us for name, one in times.items()}
    rows = choose(captured, sheet, policy, budget=1, most=most, measured=measured, modelled=ours, compiled=compiled)
    return tuple(row.model_copy(update={"judged": False}) for row in rows)


def tried_here(device: str) -> tuple[str, str, str]:
    """Name a device with the torch and triton of this process."""
    import torch
    import triton

    return device, torch.__version__, triton.__version__


def finish(outcome: Outcome, delivered: Sequence[Delivered], out: Path, seconds: float) -> Outcome:
    """Write the package with its report, in place of what was written before; without an operator the report alone."""
    outcome = outcome.model_copy(update={"seconds": seconds, "package": str(out) if delivered else ""})
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if delivered:
        facts = {
            "made_for": outcome.target,
            "tried": [tried_here(outcome.target)] if outcome.ratios else [],
            "policy": outcome.policy,
            "operators": [one.model_dump(mode="json") for one in outcome.operators if one.kept],
            "measured": bool(outcome.ratios),
        }
        write_package(out, outcome.capture.title, summary(outcome), delivered, facts)
    write_report(outcome, out)
    return outcome
