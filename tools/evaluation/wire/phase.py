"""The phases a zygote can fork, and what each is handed."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Phase:
    """What a forked process holds: its job, its control socket, shared memory by name, its scratch."""

    job: bytes
    control: socket.socket
    shared: dict[str, int] = field(default_factory=dict)
    scratch: Path = Path("/")
    light: bool = False
    """Whether a job of the oracle server has left nothing to be given back to the device."""
    given: list[int] = field(default_factory=list)
    """Descriptors that the oracle server sends back with the end of a job, and then closes."""

    def answer(self, data: bytes) -> None:
        """Write the phase's result into the memory the supervisor made for it; it reads a bounded part, after the end.

        A later answer replaces an earlier one.
        """
        with os.fdopen(os.dup(self.shared["answer"]), "wb") as file:
            file.seek(0)
            file.truncate()
            file.write(data)
