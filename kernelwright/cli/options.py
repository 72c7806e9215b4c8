"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="KERNELWRIGHT_HOME", help="Folder of runs and knowledge.", show_default="~/.kernelwright"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else there.")]


def home_folder(home: Path | None) -> Path:
    """The folder the user named, or the default."""
    from graphs.optimize.settings import default_home

    return home or default_home()
