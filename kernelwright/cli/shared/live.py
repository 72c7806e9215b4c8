"""Sees a run through: progress while it works, its result at the end."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from graphs.optimize.execute import Listener
from graphs.run.assembly import assemble
from graphs.run.context import Services
from kernelwright.cli.shared.early import check_out
from kernelwright.cli.shared.options import UNJUDGED
from kernelwright.screen.ending import print_result
from kernelwright.screen.facts import result_facts
from kernelwright.screen.lines import Lines
from kernelwright.screen.reasons import Reasons
from kernelwright.screen.table import LiveTable
from kernelwright.screen.telling import Teller
from kernelwright.viewers.watching import see_through as watched
from tools.errors import INTERRUPTED, MachineError, UserError
from tools.references.reading import read_again
from tools.tracing import RunStore


def see_through(store: RunStore, as_json: bool, out: Path | None, notes: Sequence[str] = (), *, verbose: bool = False) -> None:
    """Run or continue the run of `store`, print `notes` on its beginning and its result, copy the kernel to `out`."""
    check_out(out)
    try:
        services = assemble(store)
        teller = teller_for(
            services, Console(stderr=True, highlight=False, quiet=as_json and not verbose), verbose=verbose, watched=sys.stdout.isatty()
        )
        teller.open(notes)
    except KeyboardInterrupt:
        say_stopped(store.meta("run"))
        raise typer.Exit(INTERRUPTED) from None
    try:
        teller.start()
        asyncio.run(stoppable(services, teller))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        what = f"{error.strerror or error}{where}."
        raise MachineError(what, f"Mend that; nothing finished is lost. Go on with: kernelwright resume {services.run}") from error
    finally:
        teller.close()
    facts = result_facts(store)
    if out is not None and facts["kernel"]:
        _copy(Path(facts["kernel"]), out)
    if as_json:
        from json import dumps

        print(dumps({**facts, "problem_notes": list(read_again(services.problem).notes)}, indent=1))
    else:
        print_result(Console(highlight=False), facts, verbose=verbose)
    if not facts["judged"]:
        raise typer.Exit(UNJUDGED)


def _copy(kernel: Path, out: Path) -> None:
    try:
        shutil.copyfile(kernel, out)
    except OSError as error:
        what = f"The kernel could not be copied to {out} ({error.strerror})."
        raise UserError(what, f"It was delivered all the same: {kernel}.") from error


def teller_for(services: Services, console: Console, *, verbose: bool, watched: bool) -> Teller:
    """Choose how progress is told: with its reasons, as a table to those who watch a terminal, else one line a round."""
    if verbose:
        return Reasons(services, console)
    drawn = watched and console.is_terminal and not console.is_dumb_terminal and not console.quiet
    return LiveTable(services, console) if drawn else Lines(services, console)


async def stoppable(services: Services, listener: Listener) -> None:
    """Execute; where Ctrl-C ends it, say how to go on, whatever else is quiet."""
    beat = asyncio.create_task(listener.watch()) if isinstance(listener, Teller) else None
    try:
        await watched(services, listener)
    except asyncio.CancelledError:
        say_stopped(services.run)
        raise
    finally:
        if beat is not None:
            beat.cancel()


def say_stopped(run: str) -> None:
    """Say on standard error how to go on."""
    said = f"kernelwright: stopped. What was finished is kept; go on with: kernelwright resume {run}"
    print(said, file=sys.stderr, flush=True)
