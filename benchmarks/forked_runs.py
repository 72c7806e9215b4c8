"""Runs in processes forked from one that has imported what they need: to kill a hundred of them takes minutes, not hours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


class ForkedRuns:
    """Forks a run for each folder that it is given, by a module that ends in `tests.support.forking.serve`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> ForkedRuns:
        """Start the process that imports, and forks."""
        command, pipe = [sys.executable, "-m", self._module], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return self

    def __exit__(self, *_: object) -> None:
        """Let it end."""
        self._process.communicate(timeout=60)

    def begin(self, folder: Path, *words: str) -> None:
        """Start or resume the run in `folder`; it writes its process's number into `folder`.pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(folder), *words]) + "\n")
        self._process.stdin.flush()

    def ended(self) -> int:
        """Wait for its exit status."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def process_of(folder: Path) -> int:
    """Number of the process that a run in `folder` wrote down."""
    return int(folder.with_suffix(".pid").read_text())
