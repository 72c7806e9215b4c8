"""Join packages of one model, made on different devices, into one that picks the kernels of the nearest device.

On a device that it has no kernels for, those of the device most like it run: of the same generation, then compute capability,
then number of multiprocessors. Each module's first call is compared with the original there.
`kernelwright recheck OUT/DEVICE` tries the kernels of one folder.

Examples:
  kernelwright join faster_decoder made_on_h100 made_on_l40s
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Json


def command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write, whose name is the name to import.")],
    packages: Annotated[list[Path], typer.Argument(metavar="PACKAGE…", help="Folders that `kernelwright model` wrote.")],
    json: Json = False,
) -> None:
    """Join and print."""
    from json import dumps

    from tools.models.packaging.joining import join

    found = join(packages, out)
    if json:
        print(dumps({"package": str(out), "devices": found}, indent=1))
        return
    for name, (title, (major, minor), count) in found.items():
        print(f"{name}: {title}, compute capability {major}.{minor}, {count} multiprocessors")
    print(f"package: {out}; use: import {out.name}; {out.name}.apply(model)")
