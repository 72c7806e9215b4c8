"""The command `kernelwright`: its options, its commands, and the one place where errors become lines of text."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from kernelwright.cli.commands import (
    actions,
    bench,
    desk,
    doctor,
    evaluate,
    explain,
    fork,
    hardware,
    join,
    mcp,
    model,
    optimize,
    prompts,
    recheck,
    replay,
    report,
    resume,
    runs,
    steer,
    trace,
    ui,
    verify,
    worker,
)
from kernelwright.cli.knowledge import group as knowledge
from kernelwright.cli.shared.guarded import guarded, stopped_by_sigterm
from kernelwright.cli.shared.help import WIDEST, GroupedCommand, examples_kept
from kernelwright.cli.shared.options import UNJUDGED
from tools.errors import KernelwrightError, Postponed, UnjudgeableError
from tools.garbage import look_seldom
from tools.version import VERSION

app = typer.Typer(
    name="kernelwright",
    help="Takes a PyTorch operator and gives back a faster Triton or CUDA kernel, the evidence that it is right and faster, "
    "and a memory that makes the next operator cheaper.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": WIDEST},
    epilog="Start with: kernelwright optimize data/operators/softmax.py",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(VERSION)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole stack trace of an error.", envvar="KERNELWRIGHT_DEBUG")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)] = False,
) -> None:
    if debug:
        os.environ["KERNELWRIGHT_DEBUG"] = "1"


MODULES = (
    *(optimize, model, recheck, join, evaluate, explain, verify, resume, steer, fork, replay, runs, trace, report, ui),
    *(doctor, hardware, actions, prompts, desk, mcp, worker),
)
"""In the order in which `--help` lists them."""
for module in MODULES:
    app.command(name=module.__name__.rpartition(".")[2], help=module.__doc__, cls=GroupedCommand if module is optimize else None)(
        module.command
    )
app.add_typer(bench.app, name="bench")
app.add_typer(knowledge.app, name="knowledge")
for group in (app, bench.app, knowledge.app):
    for one in group.registered_commands:
        assert one.callback is not None
        one.callback = guarded(one.callback)
        one.help = examples_kept(one.help or getattr(one.callback, "__doc__", None) or "")


@cache
def commands() -> Callable[[], Any]:
    """Make all commands and their options of the functions' signatures, which takes 60 ms; a process that runs several makes them once."""
    return get_command(app)


def main() -> None:
    """Run the command line; wrong input ends with one clear line, its mend and exit status 2."""
    _trace_crashes()
    look_seldom()
    try:
        with stopped_by_sigterm():
            commands()()
    except KernelwrightError as error:
        if os.environ.get("KERNELWRIGHT_DEBUG"):
            raise
        print(f"kernelwright: {error.what}\n  {error.mend}", file=sys.stderr)
        # 75: come back later, as sysexits.h has it
        sys.exit(75 if isinstance(error, Postponed) else UNJUDGED if isinstance(error, UnjudgeableError) else 2)
    except OSError as error:
        if os.environ.get("KERNELWRIGHT_DEBUG") or not error.filename:
            raise
        print(f"kernelwright: {error.strerror} ({error.filename}).\n  Mend that and try again.", file=sys.stderr)
        sys.exit(2)


def _trace_crashes() -> None:
    """Have a crash in native code print every thread's stack on standard error, where there is one; child processes inherit nothing."""
    if not faulthandler.is_enabled():
        with contextlib.suppress(AttributeError, OSError, RuntimeError, ValueError):
            faulthandler.enable(sys.stderr)
