"""List the runs: name, state, target, evaluations, the speed-up so far and its tier.

With --import: take in a run that was exported elsewhere, so that `trace`, `report` and `ui` show it here.

Examples:
  kernelwright runs --json

  kernelwright runs --import softmax.json

  kernelwright runs --schema
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Home, Json, home_folder


def command(
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Take in a run that `trace RUN --export` wrote; nothing of it is run.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of an exported run.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Print a table of runs, newest first."""
    if schema:
        from kernelwright.traces.files import schema_text

        print(schema_text(), end="")
    elif import_:
        _import(import_, home_folder(home))
    else:
        _list(home, json=json)


def _import(file: Path, home: Path) -> None:
    from kernelwright.traces.files import read_trace
    from kernelwright.traces.importing import import_run

    name = import_run(read_trace(file), home, str(file.absolute())).meta("run")
    print(f"{name} (see: kernelwright trace {name})")


def _list(home: Path | None, *, json: bool) -> None:
    from kernelwright.screen.facts import run_facts
    from tools.errors import KernelwrightError
    from tools.tracing import RunStore

    folder = home_folder(home) / "runs"
    facts = []
    for path in sorted(folder.glob("*/run.db")):
        try:
            facts.append(run_facts(RunStore(path.parent)))
        except KernelwrightError as error:
            # one that cannot be read hides no other
            print(f"not listed: {path.parent.name}. {error.what} {error.mend}", file=sys.stderr)
    facts.sort(key=lambda fact: -fact["created"])
    if json:
        from json import dumps

        print(dumps(facts, indent=1))
        return
    from rich.console import Console
    from rich.table import Column, Table

    if not facts:
        print(f"No runs in {folder}. Start one with: kernelwright optimize FILE")
        return
    names = ("state", "target", "evals", "speed-up", "tier")
    # a narrow terminal folds the long names of runs, and never crops a figure or its tier
    run = Column("run", overflow="fold")
    table = Table(run, *(Column(name, no_wrap=True) for name in names), box=None, pad_edge=False)
    for fact in facts:
        speedup = f"{fact['speedup']:.2f}x" if fact["speedup"] else "–"
        table.add_row(fact["run"], fact["state"], fact["target"], str(fact["evaluations"]), speedup, fact["tier"] or "–")
    Console().print(table)
