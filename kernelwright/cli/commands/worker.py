"""Evaluate what agents elsewhere ask for: take jobs from a folder, put the answers back.

The folder is shared between the machines, or copied out and back. Several workers may share it. A worker needs torch, triton and a
GPU, and neither a network nor a key. With --drain it evaluates what is there and ends; without, it goes on until it is stopped, and
gives back what it was working on.

Examples:
  kernelwright worker --spool /shared/spool

  kernelwright worker --spool spool --drain --devices 0,1

  kernelwright worker --spool spool --drain --devices interpreter
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Devices, Json


def command(
    spool: Annotated[Path, typer.Option(help="The folder that jobs come from and answers go to; made where it is not there.")],
    drain: Annotated[bool, typer.Option("--drain", help="Evaluate what is there, then end.")] = False,
    devices: Devices = "all",
    target: Annotated[str, typer.Option(help="Sheet that this machine's GPUs answer for.", show_default="the one of their title")] = "",
    jobs: Annotated[int, typer.Option(min=0, help="Evaluations under way at once; 0 chooses by cores and GPUs.")] = 0,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds after which a silent worker of another machine counts as dead; the same for all.")
    ] = 120.0,
    scratch: Annotated[Path | None, typer.Option(help="Folder on a local disk to work in.", show_default="the system's own")] = None,
    json: Json = False,
) -> None:
    """Work on a spool."""
    import sys

    from tools.spool.service import Service

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    service = Service(spool, devices=devices, target=target, jobs=jobs, lease_s=lease, scratch=scratch, say=say)
    ended = service.run(drain=drain)
    if json:
        from json import dumps

        print(dumps(ended.facts, indent=1))
    else:
        for line in ended.lines:
            print(line)
    if ended.signal:
        raise typer.Exit(128 + ended.signal)
