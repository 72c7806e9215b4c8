"""Real machine code, cross-compiled once a session in a process of its own, and the sheet whose figures these tests know."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.codegen.harness import made_once
from tools.hardware import load_sheet
from tools.machine_code.resources import read_resources
from tools.records import HardwareSheet, KernelResources

ARCHES = {"sm80": "sm_80", "sm90": "sm_90", "sm100": "sm_100", "gfx942": "gfx942"}

Read = Callable[[str], KernelResources]


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the machine code of every kernel of `machine_code/compile_kernels.py`, made once for all workers of a test run."""
    return Path(made_once(tmp_path_factory, "machine-code", _compiled)["folder"])


def _compiled(folder: Path) -> dict[str, Path]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).parent / "machine_code" / "compile_kernels.py"
    done = subprocess.run([sys.executable, str(script), str(folder)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {"folder": folder}


@pytest.fixture(scope="session")
def read(machine_code: Path) -> Read:
    """Read the resources of a compiled kernel by its name there, e.g. `add_sm90`, once: the disassembler takes half a second to start."""
    shared = json.loads((machine_code / "shared.json").read_text())

    @functools.cache
    def of(name: str) -> KernelResources:
        function, target = name.split("_", maxsplit=1)[0], name.rsplit("_", 1)[1]
        return read_resources((machine_code / name).read_bytes(), function, ARCHES[target], shared[name])

    return of


@pytest.fixture(scope="session")
def h200() -> HardwareSheet:
    """The sheet of the device whose figures these tests know."""
    return load_sheet("h200")
