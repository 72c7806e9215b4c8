"""Re-check an evidence bundle on this machine, and say claim by claim what holds.

First its files against the manifest, then its figures against its own raw data, then its kernel again with fresh seeds.
Kernel and reference are a stranger's code: both run in the sandbox alone. Exit status: 0 where everything that can be
checked holds, 1 where a claim fails, 2 for a wrong input.

Examples:
  kernelwright verify evidence

  kernelwright verify evidence --problem my_operator.py

  kernelwright verify evidence --no-run --json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.options import Json

if TYPE_CHECKING:
    from tools.evidence import Report

_COLOURS = {"holds": "green", "fails": "bold red", "not checked": "yellow"}


def command(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder that `optimize` or `evaluate --bundle` wrote.")],
    no_run: Annotated[bool, typer.Option("--no-run", help="Check files and figures only; run nothing of the bundle.")] = False,
    problem: Annotated[
        Path | None,
        typer.Option(help="Your own copy of the problem: used in the bundle's place, outside the sandbox.", show_default="the bundle's"),
    ] = None,
    entry: Annotated[str | None, typer.Option(help="Function to judge against, where --problem has several.")] = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="default|exact|tf32|fp16|bf16|FILE",
            help="Policy the bundle must not be looser than; judges it.",
            show_default="the bundle's",
        ),
    ] = "",
    digest: Annotated[str, typer.Option(help="Digest the bundle must have, from a source you trust.", show_default="any")] = "",
    json: Json = False,
) -> None:
    """Verify and print."""
    from kernelwright.api.judging import verify
    from kernelwright.cli.waiting import printing_aside, waiting
    from tools.policies import load_policy

    demanded = load_policy(policy) if policy else None
    with printing_aside(), waiting(f"checking {bundle}"):
        report = verify(bundle, run=not no_run, problem=problem, entry=entry, policy=demanded, digest=digest)
    if json:
        from json import dumps

        fields = report.model_dump(mode="json", exclude={"evaluation": {"seeds": True, "timing": {"raw"}}})
        print(dumps({**fields, "holds": not report.failed, "unchecked": [claim.name for claim in report.unchecked]}, indent=1))
    else:
        _print(report)
    raise typer.Exit(1 if report.failed else 0)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tools.logs import printable

    console = Console(highlight=False)
    console.rule(escape(report.bundle))
    table = Table(box=None, show_header=False)
    for claim in report.claims:
        colour = _COLOURS[claim.standing]
        table.add_row(claim.name, f"[{colour}]{claim.standing}[/]", escape(printable(claim.words)))
    console.print(table)
    console.print(f"digest:  {escape(printable(report.digest)) or 'none'}", soft_wrap=True)
    console.print(_summary(report), soft_wrap=True)


def _summary(report: Report) -> str:
    """One closing sentence."""
    failed, left = len(report.failed), len(report.unchecked)
    if failed:
        return f"[bold red]{failed} of {len(report.claims)} claims fail.[/] Do not rely on this bundle."
    rest = f" {left} could not be checked here." if left else ""
    run = "" if report.evaluation else " The kernel was not run: files and figures agree with each other, and that is all this says."
    return f"[green]Every claim that was checked holds.[/]{rest}{run}"
