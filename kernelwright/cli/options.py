"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="KERNELWRIGHT_HOME", help="Folder of runs and knowledge.", show_default="~/.kernelwright"),
]
Evaluator = Annotated[
    str,
    typer.Option("--evaluator", metavar="local|spool:DIR", help="Who evaluates: this machine, or workers that watch a folder."),
]
Devices = Annotated[
    str, typer.Option("--devices", metavar="all|interpreter|0,1", help="GPUs of this machine to evaluate on, by nvidia-smi's numbers.")
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="With a spool: wait for answers, or stop (exit status 75) and go on with `resume`.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else there.")]


def home_folder(home: Path | None) -> Path:
    """The folder the user named, or the default."""
    from graphs.optimize.settings import default_home

    return home or default_home()
