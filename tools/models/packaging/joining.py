"""Makes one package of several, each made for the same model on another device: it picks the one of the nearest device."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING

from tools.errors import UserError
from tools.hardware import match_title
from tools.models.form import check_package_place
from tools.models.packaging.hub import VARIANT
from tools.models.packaging.package import RUNTIME, TRIED
from tools.records import content_hash

if TYPE_CHECKING:
    from tools.models.runtime.nearest import Device

NEAREST, REPORT = "nearest.py", "report.json"
LEAST = 2
TOP = '''"""Faster operators for {title}, made for {names}; written by kernelwright.

`apply(model)` puts in those of the device that the model's is most like, `remove(model)` takes them out.
"""

import importlib as _importlib
import sys as _sys

from .nearest import device_here as _device_here
from .nearest import nearest as _nearest

DEVICES = {devices}
"""By folder: device, compute capability, multiprocessors."""


def chosen(model=None):
    """Name the folder of the operators for a model's device, or without one for this machine's first."""
    return _nearest(DEVICES, _device_here(model))


def package(name):
    """Import the package of one folder."""
    return _importlib.import_module(f"{{__name__}}.{{name}}")


def apply(model, *, without=(), verify=None, device=""):
    """Replace the modules that kernels were made for, and return their paths; `device` names a folder other than the chosen.

    `without` names operators to leave out. With `verify` each module's first call is compared with the original; where it is None, that
    is so on a device, with a torch or a triton, with which the chosen kernels were not tried.
    """
    remove(model)
    return package(device or chosen(model)).apply(model, without=without, verify=verify)


def remove(model):
    """Give every module its own forward back, and return their paths."""
    return [path for one in _imported() for path in one.remove(model)]


def see_through(shown=None):
    """Say whether torch.compile sees the kernels of operators; `shown` sets it for what is compiled next."""
    return all([one.see_through(shown) for one in (_imported() or [package(chosen())])])


def counts(*, reset=False):
    """Say how often each operator ran, and how often the original did, and why."""
    found = {{"hits": {{}}, "misses": {{}}}}
    for each in [one.counts(reset=reset) for one in _imported()]:
        for kind, total in found.items():
            for name, number in each[kind].items():
                total[name] = total.get(name, 0) + number
    return found


def _imported():
    return [_sys.modules[name] for name in (f"{{__name__}}.{{one}}" for one in DEVICES) if name in _sys.modules]
'''
LAYERS = '''"""Layers for `kernelize`, of this machine's nearest device; written by kernelwright."""

import importlib

from . import chosen

_layers = importlib.import_module(f".{chosen()}.layers", __package__)
globals().update({name: value for name, value in vars(_layers).items() if not name.startswith("_")})
'''


def join(packages: Sequence[Path], out: Path) -> dict[str, Device]:
    """Write a package to `out` that has all of `packages`, each under its device's name; wrong input raises UserError."""
    if len(packages) < LEAST:
        raise UserError("One package has nothing to be joined with.", "Name two or more, made on different devices.")
    check_package_place(out)
    folders: dict[str, Path] = {}
    devices: dict[str, Device] = {}
    titles = {}
    for one in packages:
        device, titles[one] = _made_for(one)
        name = re.sub(r"[^a-z0-9]+", "_", device[0].lower()).strip("_")
        if name in folders:
            raise UserError(f"{folders[name]} and {one} are both for {device[0]}.", "Name one of them.")
        folders[name], devices[name] = one, device
    if len(set(titles.values())) > 1:
        raise UserError(
            f"These are packages of different models: {', '.join(sorted(set(titles.values())))}.", "Join packages of one model."
        )
    for name, folder in folders.items():
        shutil.copytree(folder, out / name, ignore=shutil.ignore_patterns("__pycache__", VARIANT.parts[0]))
    top = TOP.format(
        title=titles[packages[0]], names=" and ".join(one[0] for one in devices.values()), devices=pformat(devices, sort_dicts=False)
    )
    _write_top(out, top)
    _write_build(out, folders, top)
    return devices


def _write_top(folder: Path, top: str) -> None:
    (folder / "__init__.py").write_text(top)
    (folder / NEAREST).write_text((RUNTIME / NEAREST).read_text())


def _write_build(out: Path, folders: dict[str, Path], top: str) -> None:
    """Write the layout of the Hugging Face library kernels, of the builds that the packages have."""
    builds = {name: folder / VARIANT for name, folder in folders.items()}
    build = out / VARIANT
    for name, folder in builds.items():
        shutil.copytree(folder, build / name, ignore=shutil.ignore_patterns("__pycache__", "metadata.json"))
    _write_top(build, f"{top}\n\nfrom . import layers\n")
    (build / "layers.py").write_text(LAYERS)
    told = [json.loads((folder / "metadata.json").read_text()) for folder in builds.values()]
    version = content_hash(*(one["id"] for one in told))[:8]
    identity = f"{told[0]['id'].rpartition('_')[0]}_{version}"
    (build / "metadata.json").write_text(json.dumps({**told[0], "id": identity}, indent=2) + "\n")


def _made_for(package: Path) -> tuple[Device, str]:
    """Say which device a package was made for, and the title of its model."""
    report = package / REPORT
    if not (package / TRIED).is_file() or not report.is_file():
        raise UserError(f"{package} is no package.", "Name a folder that `kernelwright model` wrote.")
    told = json.loads(report.read_text())
    sheet = match_title(told["target"])
    digits = sheet.arch.removeprefix("sm_").rstrip("a") if sheet.backend == "cuda" else "00"
    return (sheet.title, (int(digits[:-1]), int(digits[-1])), sheet.sms), told["capture"]["title"]
