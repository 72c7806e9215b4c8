"""Which machine code is read, and what is in it."""

from __future__ import annotations

from tools.evaluation.wire.jobs.builder import KernelBinary
from tools.records import KernelResources, Record


class ResourcesJob(Record):
    """Which kernels to read."""

    arch: str
    kernels: tuple[KernelBinary, ...]


class ResourcesAnswer(Record):
    """What was read, and what could not be."""

    kernels: tuple[KernelResources, ...]
    notes: tuple[str, ...] = ()
