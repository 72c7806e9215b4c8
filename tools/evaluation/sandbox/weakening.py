"""What switching a defence off does to the walls and limits of a sandbox; for tests alone."""

from __future__ import annotations

import os

from tools.evaluation.sandbox.isolation import Box, Limits
from tools.evaluation.wire.defences import Defence, Defences

_PLENTY = Limits(memory_bytes=0, total_bytes=8 << 30, processes=4096, file_bytes=8 << 30, scratch_bytes=2 << 30, open_files=65536)


def limits(given: Limits, off: Defences) -> Limits:
    """Raise limits, to what a harmless test stays far below."""
    fields = {
        Defence.MEMORY_LIMIT: ("memory_bytes", "total_bytes"),
        Defence.PROCESS_LIMIT: ("processes",),
        Defence.SCRATCH_LIMIT: ("scratch_bytes",),
        Defence.FILE_LIMIT: ("file_bytes",),
        Defence.OPEN_FILES_LIMIT: ("open_files",),
    }
    raised = {name: getattr(_PLENTY, name) for defence, names in fields.items() if defence in off for name in names}
    return given.model_copy(update=raised)


def box(given: Box, off: Defences) -> Box:
    """Leave walls out."""
    walls: dict[str, object] = {}
    if Defence.SECCOMP in off:
        walls["seccomp"] = False
    if Defence.LANDLOCK in off:
        walls["landlock"] = False
    change: dict[str, object] = {"isolation": given.isolation.model_copy(update=walls), "missing": off}
    if Defence.PRIVATE_ROOT in off:
        change["readable"] = ("/etc", *given.readable)
    if Defence.OTHER_USER in off:
        # without capabilities it may still write only where its own user may
        change["uid"] = os.geteuid()
    if Defence.CLEAN_ENVIRONMENT in off:
        # keys alone: what an evaluator that clears nothing gives away
        change["environment"] = given.environment | {name: value for name, value in os.environ.items() if name.endswith("_API_KEY")}
    return given.model_copy(update=change)
