"""The command line, the web pages and the public Python API; nothing imports it.

Importing this package makes `tools`, `knowledge`, `agents` and `graphs` importable under their own names: from a
checkout's root, or from inside the installed package. Other distributions install packages of the same names, so a
process that has already imported one of those is stopped here with the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FOLDERS = ("tools", "knowledge", "agents", "graphs")


def _home() -> Path:
    """The folder that holds `FOLDERS`: this package's own when installed, the repository's root in a checkout."""
    package = Path(__file__).resolve().parent
    return package if (package / "tools").is_dir() else package.parent


def _claim_names(home: Path) -> None:
    """Put `home` first on sys.path; stop where another package of ours' names is already loaded."""
    for name in FOLDERS:
        loaded = sys.modules.get(name)
        origin = getattr(loaded, "__file__", None) or next(iter(getattr(loaded, "__path__", [])), None)
        if loaded is not None and (origin is None or not Path(origin).resolve().is_relative_to(home)):
            raise ImportError(
                f"kernelwright needs the name {name!r}, but {origin or 'another module'} is already imported under it. "
                f"Import kernelwright first, or run it in a process of its own."
            )
    path = str(home)
    if path in sys.path:
        sys.path.remove(path)
    sys.path.insert(0, path)


HOME = _home()
DATA = HOME / "data"
_claim_names(HOME)

from tools.version import VERSION  # noqa: E402 - our own folders are found only now

__version__ = VERSION


SETTINGS = {
    "Budget": "tools.records",
    "KernelwrightError": "tools.errors",
    "PrecisionPolicy": "tools.records",
    "RunSettings": "graphs.run.settings",
    "SearchSettings": "graphs.search.protocol",
    "UserError": "tools.errors",
}
"""What a caller of the Python API may need besides, and where it is from."""


def __dir__() -> list[str]:
    """What a notebook completes."""
    return sorted([*globals(), "Judgement", "Result", "evaluate", "optimize", "resume", "verify", *SETTINGS])


def __getattr__(name: str) -> Any:
    """Load the Python API at first use, so that `kernelwright --help` is instant."""
    if name in {"optimize", "resume", "Result"}:
        from kernelwright.api import runs

        return getattr(runs, name)
    if name == "accelerate":
        from kernelwright.api import models

        return models.accelerate
    if name in {"evaluate", "verify", "Judgement"}:
        from kernelwright.api import judging

        return getattr(judging, name)
    if name in SETTINGS:
        from importlib import import_module

        return getattr(import_module(SETTINGS[name]), name)
    raise AttributeError(f"module 'kernelwright' has no attribute {name!r}")
