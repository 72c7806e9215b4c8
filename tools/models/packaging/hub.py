"""Writes the layout in which the Hugging Face library kernels finds operators: a build for any CUDA device, its metadata, and layers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tools.models.packaging.delivered import Delivered
from tools.records import content_hash

VARIANT = Path("build") / "torch-cuda"
"""Kernels of Python and Triton alone need no build for each version of torch, CUDA and Python."""
FILES = ("__init__.py", "table.py", "tried.py", "kernels", "runtime")
"""What a build takes from the package around it."""
LOADED = "\nfrom . import layers\n"
HEAD = '''"""Layers for `kernelize`; written by kernelwright."""

from .runtime.layers import layer
from .table import PLACES

'''


def write_build(folder: Path, delivered: Sequence[Delivered]) -> None:
    """Write or rewrite the build in a package that has its other files."""
    build = folder / VARIANT
    shutil.rmtree(build, ignore_errors=True)
    if not delivered:
        return
    build.mkdir(parents=True)
    copy_files(folder, FILES, build)
    with (build / "__init__.py").open("a") as file:
        file.write(LOADED)
    (build / "layers.py").write_text(layers_text(delivered))
    (build / "metadata.json").write_text(json.dumps(metadata(folder.name, delivered), indent=2) + "\n")


def copy_files(folder: Path, names: Sequence[str], to: Path) -> None:
    """Copy files and folders of Python."""
    for name in names:
        source = folder / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / name)


def layers_text(delivered: Sequence[Delivered]) -> str:
    """Write a layer for each class of modules; sections are no modules of the user's."""
    signatures = {one.group.title: one.trace.signature for one in delivered if one.group.forward is None}
    return HEAD + "".join(f"{title} = layer({title!r}, PLACES, {arguments!r})\n" for title, arguments in sorted(signatures.items()))


def metadata(name: str, delivered: Sequence[Delivered]) -> dict[str, object]:
    """Say what the library asks for: an identifier of this version, a name with dashes, a licence, what else has to be installed."""
    name = kernel_name(name)
    version = content_hash(*(one.kernel for one in delivered))[:8]
    return {
        "id": f"_{name.replace('-', '_')}_cuda_{version}",
        "name": name,
        "version": 1,
        "license": "other",
        "python-depends": [],
        "backend": {"type": "cuda"},
    }


def kernel_name(name: str) -> str:
    """Write a name as the library takes one: small letters, digits and dashes, a letter first."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words if re.fullmatch(r"[a-z][a-z0-9-]*[a-z0-9]", words) else f"kernels-{words or 'here'}"
