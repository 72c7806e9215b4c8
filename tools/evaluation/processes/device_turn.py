"""Turns on one GPU among the pools of this user's processes: they check side by side, and while one times nothing of another's runs."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tools.errors import MachineError
from tools.evaluation.processes.host_turn import locked
from tools.profiling.nvml import device_uuid
from tools.scratch import PREFIX

_PAUSE_S = 0.01
_PATIENCE_S = 600.0
"""Whoever has waited for as long is told: a time that was taken beside another run's work would be wrong without saying so."""


class DeviceTurn:
    """One pool's part of a device; who dies gives it back."""

    def __init__(self, file: Path | None, patience_s: float = _PATIENCE_S) -> None:
        """Share the device with whoever locks `file`; with none this pool has it for itself. Nothing is opened yet.

        Whoever waits in vain for `patience_s` seconds gets a MachineError.
        """
        self._file, self._patience_s = file, patience_s
        self.is_shared = file is not None
        """Whether there may be others."""

    def shared(self) -> AbstractContextManager[None]:
        """Be there while nobody is alone."""
        return self._had(fcntl.LOCK_SH)

    def alone(self) -> AbstractContextManager[None]:
        """Be there while nobody else is."""
        return self._had(fcntl.LOCK_EX)

    def is_taken(self) -> bool:
        """Whether somebody is alone there now."""
        if self._file is None:
            return False
        try:
            held = locked(self._file, fcntl.LOCK_SH)
        except BlockingIOError:
            return True
        if held >= 0:
            os.close(held)
        return False

    @contextmanager
    def _had(self, kind: int) -> Iterator[None]:
        held = self._locked(kind) if self._file else -1
        try:
            yield
        finally:
            if held >= 0:
                # closing it unlocks it
                os.close(held)

    def _locked(self, kind: int) -> int:
        assert self._file is not None
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return locked(self._file, kind)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise MachineError(
                        f"Another run of yours has not let go of the GPU for {self._patience_s:g} s.",
                        f"See with nvidia-smi which runs, and end the one that hangs; it has {self._file} locked.",
                    ) from None
                time.sleep(_PAUSE_S)


def turn_on(device: int) -> DeviceTurn:
    """Give the turn on the GPU at NVML's index `device`."""
    name = f"{PREFIX}device-{os.geteuid()}-{device_uuid(device) or device}.lock"
    return DeviceTurn(Path(tempfile.gettempdir()) / name)
