"""Repeat a run from its record, with no key and no network, and say whether it reaches the same plans and sources.

The agents and the graph are those of this version; what models said is taken from the run's record, and what the evaluator said
too, unless it is to judge afresh. Exit status 0: the same; 1: it went another way, and the first difference is named.

Examples:
  kernelwright replay softmax-20261121

  kernelwright replay softmax-20261121 --evaluate afresh

  kernelwright replay softmax-20261121 --strict --keep again
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kernelwright.cli.shared.options import Home, Json, home_folder
from tools.scratch import PREFIX, scratch

if TYPE_CHECKING:
    from graphs.replay import Repetition
    from tools.tracing import RunStore

DIVERGED = 1


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it, or its folder.")],
    evaluate: Annotated[
        Literal["record", "afresh"], typer.Option(help="Take evaluations from the record, or judge every candidate again here.")
    ] = "record",
    strict: Annotated[bool, typer.Option("--strict", help="Count a prompt in other words as a difference too.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the repeated run in this new folder.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Repeat a run and compare."""
    from tools.errors import UserError

    record = _open(run, home)
    from graphs.replay import repeat

    if keep is not None and keep.exists():
        raise UserError(f"{keep} exists already.", "Give --keep a folder that does not.")
    with scratch(f"{PREFIX}replay-") as folder:
        done = asyncio.run(repeat(record, keep or folder / record.meta("run"), evaluate))
    same = not done.divergences and not (strict and done.prompts)
    if json:
        from json import dumps

        print(dumps({**done.model_dump(mode="json"), "same": same}, indent=1))
    else:
        _print(done, same=same)
    if not same:
        raise typer.Exit(DIVERGED)


def _open(run: str, home: Path | None) -> RunStore:
    from tools.tracing import RunStore
    from tools.tracing.finding import find_run

    folder = Path(run)
    return RunStore(folder if (folder / "run.db").is_file() else find_run(home_folder(home), run))


def _print(done: Repetition, *, same: bool) -> None:
    print(f"{done.run}: {done.plans} plans and {done.candidates} sources in the record; {done.calls} model calls answered from it")
    if done.prompts:
        first = done.prompts[0]
        print(f"{len(done.prompts)} prompts are in other words now; the first, of the {first.role} for {first.purpose!r}: {first.line}")
    for place, one in enumerate(done.divergences):
        print(f"{'first difference' if place == 0 else 'then'} ({one.kind}): {one.what}")
    words = "the same plans and sources" if not done.divergences else "it went another way"
    print(words if same or done.divergences else f"{words}, but prompts differ, which --strict counts")
