"""The phases a zygote can fork, and what each is handed."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PHASES = {
    "builder": "tools.evaluation.untrusted.builder:build",
    "runner": "tools.evaluation.untrusted.runner:run",
    "inputs": "tools.evaluation.trusted.inputs:make",
    "oracle": "tools.evaluation.trusted.oracle:judge",
    "sentinel": "tools.evaluation.trusted.sentinel:work",
    "vault": "tools.evaluation.trusted.vault:serve",
    "standing": "tools.evaluation.trusted.oracle_server:serve",
    "admission": "tools.evaluation.trusted.admission:examine",
    "baseline": "tools.evaluation.trusted.baseline:serve",
    "resources": "tools.evaluation.untrusted.machine_code:read",
    "derive": "tools.evaluation.trusted.derive:derive",
    "probe": "tools.evaluation.untrusted.probe:run",
    "counters": "tools.evaluation.untrusted.counters:count",
}
"""Phase to function; only `builder`, `runner` and `counters` ever meet candidate code."""


@dataclass
class Phase:
    """What a forked process holds: its job, its control socket, shared memory by name, its scratch."""

    job: bytes
    control: socket.socket
    shared: dict[str, int] = field(default_factory=dict)
    scratch: Path = Path("/")
    light: bool = False
    """Whether a job of the standing oracle has left nothing to be given back to the device."""
    given: list[int] = field(default_factory=list)
    """Descriptors that the standing oracle sends back with the end of a job, and then closes."""

    def answer(self, data: bytes) -> None:
        """Write the phase's result into the memory the supervisor made for it; it reads a bounded part, after the end.

        A later answer replaces an earlier one.
        """
        with os.fdopen(os.dup(self.shared["answer"]), "wb") as file:
            file.seek(0)
            file.truncate()
            file.write(data)


def phase_function(name: str) -> Callable[[Phase], None]:
    """Find the function of a phase."""
    module, function = PHASES[name].split(":")
    found: Callable[[Phase], None] = getattr(importlib.import_module(module), function)
    return found
