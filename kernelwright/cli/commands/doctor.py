"""Say what this machine can do: versions, GPU, isolation, compiler tools, keys, memory, disk.

Nothing is changed. Each line says what was found, and what it means where something is missing.

Example: kernelwright doctor --json
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelwright.cli.shared.options import Home, Json, home_folder

PACKAGES = ("torch", "triton", "langgraph", "langchain-openai", "chromadb", "sentence-transformers", "nvidia-ml-py")


def command(home: Home = None, json: Json = False) -> None:
    """Print the findings."""
    findings = _findings(home_folder(home))
    if json:
        from json import dumps

        print(dumps(findings, indent=1))
        return
    width = max(map(len, findings))
    for name, found in findings.items():
        print(f"{name:<{width}}  {found}")


def _findings(home: Path) -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "gpu": _gpu(),
        "isolation": _isolation(),
        "nsight compute": _ncu(),
        "key": _key(),
        **_servers(home),
        "home": f"{home} ({_free(home)} GB free)",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _gpu() -> str:
    from tools.errors import UserError
    from tools.hardware import detect_sheet

    try:
        sheet = detect_sheet()
    except UserError as error:
        return f"{error.what} {error.mend}"
    if sheet is None:
        return "none: kernels are checked in the interpreter and cross-compiled; times are estimated"
    return f"{sheet.title}: times are measured"


def _isolation() -> str:
    from tools.errors import MachineError
    from tools.evaluation.processes.worker_pool import WorkerPool
    from tools.profiling.nvml import device_title

    device = 0 if device_title(0) else None
    with tempfile.TemporaryDirectory() as scratch:
        workers = WorkerPool(Path(scratch), device)
        try:
            workers.start()
            return workers.isolation(gpu=device is not None).sentence
        except MachineError as error:
            return f"{error.what} {error.mend}"
        finally:
            workers.close()


def _ncu() -> str:
    from tools.errors import MachineError
    from tools.evaluation.processes.worker_pool import WorkerPool
    from tools.evaluation.supervisor.counters_client import try_counters
    from tools.profiling.ncu import find_ncu
    from tools.profiling.nvml import device_title

    found = find_ncu()
    rest = "profiles rest on events, machine code and the model"
    if found is None:
        return f"not found: {rest}"
    if device_title(0) is None:
        return f"{found}, but there is no GPU to count on: {rest}"
    with tempfile.TemporaryDirectory() as scratch:
        workers = WorkerPool(Path(scratch), 0)
        try:
            workers.start()
            reason = try_counters(workers, found)
        except MachineError as error:
            reason = error.what
        finally:
            workers.close()
    return f"{found}, works: hardware counters of the best candidates are read" if not reason else f"{found}, but {rest}: {reason}"


def _key() -> str:
    names = [name for name in ("KERNELWRIGHT_API_KEY", "OPENAI_API_KEY") if os.environ.get(name)]
    return f"{names[0]} is set" if names else "none set: hosted models cannot be asked; local servers and the built-in agents can"


def _servers(home: Path) -> dict[str, str]:
    """What servers of language models turned out to lack; known from the first refusal on, and found out again after a week."""
    from agents.models import Shared
    from agents.models.check import SHARED_MODELS

    shared = Shared(home / SHARED_MODELS)
    found = shared.all_findings()
    shared.close()
    return {f"model {one.model}": f"{one.server} lacks {', '.join(one.lacks) or 'nothing'}; worked around" for one in found}


def _free(home: Path) -> str:
    folder = next(path for path in (home, *home.parents) if path.exists())
    return f"{shutil.disk_usage(folder).free / 1e9:.0f}"
