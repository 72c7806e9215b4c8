"""Reads the resources of compiled kernels: trusted code on untrusted bytes, so in a sandbox of its own."""

from __future__ import annotations

import base64

from tools.errors import MachineError
from tools.evaluation.wire.jobs.resources import ResourcesAnswer, ResourcesJob
from tools.evaluation.wire.phase import Phase
from tools.machine_code.resources import read_resources, unreadable


def read(phase: Phase) -> None:
    """Read each kernel with the disassembler."""
    job = ResourcesJob.model_validate_json(phase.job)
    found, notes = [], list(unreadable(job.arch))
    for kernel in job.kernels:
        try:
            found.append(read_resources(base64.b64decode(kernel.code), kernel.name, job.arch, kernel.shared_bytes))
        except MachineError as error:
            notes.append(f"The machine code of {kernel.name} could not be read: {error.what}")
    phase.answer(ResourcesAnswer(kernels=tuple(found), notes=tuple(notes)).model_dump_json().encode())
