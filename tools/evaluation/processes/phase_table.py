"""The phases that a zygote can fork, by name, and what it imports for all of them before it forks any.

Only here does code of the supervisor's side name modules of `trusted` and `untrusted`, and it names them as text: a zygote imports them so
that no fork has to, and calls none of them but the warm-up, which meets no candidate. Phases run in forks, those of `untrusted` in walls.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from tools.evaluation.wire.phase import Phase

PHASES = {
    "builder": "tools.evaluation.untrusted.builder:build",
    "runner": "tools.evaluation.untrusted.runner:run",
    "inputs": "tools.evaluation.trusted.inputs:make",
    "oracle": "tools.evaluation.trusted.oracle:judge",
    "calibration": "tools.evaluation.trusted.calibration:work",
    "sentinel": "tools.evaluation.trusted.sentinel:work",
    "store": "tools.evaluation.trusted.device_store:serve",
    "oracle_server": "tools.evaluation.trusted.oracle_server:serve",
    "admission": "tools.evaluation.trusted.admission:examine",
    "baseline": "tools.evaluation.trusted.baseline:serve",
    "resources": "tools.evaluation.untrusted.machine_code:read",
    "derive": "tools.evaluation.trusted.derive:derive",
    "probe": "tools.evaluation.untrusted.probe:run",
    "counters": "tools.evaluation.untrusted.counters:count",
    "read": "tools.references.phases:read",
    "vary": "tools.references.phases:vary",
    "trace": "tools.references.phases:trace",
    "write": "tools.references.phases:write",
    "model_capture": "tools.models.capturing.phase:capture",
    "model_proof": "tools.models.proof.phase:prove",
}
"""Phase to function; only `builder`, `runner`, `counters` and `model_proof` ever meet candidate code."""

WARM_UPS = {
    "evaluation": "tools.evaluation.untrusted.warmup:warm_up",
    "references": "tools.references.phases:warm_up",
    "baselines": "tools.evaluation.trusted.baseline:warm_up",
}
"""What is imported, and built once, by the kind of work that a zygote's phases do; the first by code that a runner has too."""

_UNTIMED = frozenset({"inputs", "oracle", "sentinel", "store", "oracle_server", "admission"})
"""Trusted phases that use a device and are not timed: they need no more than one queue to it.

A context with one takes 0.06 s for 0.11, and 0.3 s for 0.9 where eight are made side by side (an H200, 2026-11-28); the driver makes one
after the other, and who is to be timed waits for those.
"""

_LATE_MODULES = ("tools.problems.analysis", "tools.problems.archive")
"""What opening a problem imports at its first call, and Triton with it: 30 ms, in every phase with a reference."""


def phase_function(name: str) -> Callable[[Phase], None]:
    """Find the function of a phase."""
    found: Callable[[Phase], None] = _named(PHASES[name])
    return found


def run(name: str, phase: Phase) -> None:
    """Do a phase's work, in its own process, where CUDA is not started."""
    if name in _UNTIMED:
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    phase_function(name)(phase)


def import_common() -> dict[str, str]:
    """Import what phases need in any environment, and return the versions; nothing of Triton, which reads the environment at its import."""
    import numpy as np
    import torch

    for phase in PHASES:
        phase_function(phase)
    (torch.ones(2) + 1).sum().item()
    if "triton" in sys.modules:
        raise RuntimeError("something imports triton before its environment is known")
    return {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": str(np.__version__)}


def warm_up(kind: str) -> dict[str, str]:
    """Import and build what else phases of a kind need in this environment, and return the versions; starts no thread and no CUDA."""
    found: dict[str, str] = _named(WARM_UPS[kind])()
    for module in _LATE_MODULES:
        importlib.import_module(module)
    return found


def _named(place: str) -> Any:
    """Import `module:name`."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
