"""Re-check an evidence bundle on this machine, and say claim by claim what holds.

First its files against the manifest, then its figures against its own raw data, then its kernel again with fresh seeds.
Kernel and reference are a stranger's code: both run in the sandbox alone. Exit status: 0 where everything that can be
checked holds, 1 where a claim fails, 2 for a wrong input.

Examples:
  kernelwright verify evidence

  kernelwright verify evidence --problem my_operator.py

  kernelwright verify evidence --no-run --json

  kernelwright verify evidence --digest

  kernelwright verify evidence --signature evidence.digest.sig --allowed-signers signers
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import Json

if TYPE_CHECKING:
    from tools.evidence import Report, Signature

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
    digest: Annotated[bool, typer.Option("--digest", help="Only print the digest, to publish or to sign: one line; run nothing.")] = False,
    expect: Annotated[
        str, typer.Option(metavar="DIGEST", help="Digest the bundle must have, from a source you trust.", show_default="any")
    ] = "",
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Signature of the digest, which must hold: `ssh-keygen -Y sign -n kernelwright-evidence`."),
    ] = None,
    allowed_signers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Whose signatures are accepted: ssh-keygen's file of names and public keys.")
    ] = None,
    signer: Annotated[str, typer.Option(metavar="NAME", help="Who of them must have signed.", show_default="any of them")] = "",
    json: Json = False,
) -> None:
    """Verify and print."""
    from kernelwright.api.judging import verify
    from kernelwright.cli.shared.waiting import printing_aside, waiting
    from tools.policies import load_policy

    if digest:
        print(_whole_digest(bundle))
        return
    demanded = load_policy(policy) if policy else None
    signed = _signature(signature, allowed_signers, signer)
    with printing_aside(), waiting(f"checking {bundle}"):
        report = verify(bundle, run=not no_run, problem=problem, entry=entry, policy=demanded, digest=expect, signature=signed)
    if json:
        from json import dumps

        fields = report.model_dump(mode="json", exclude={"evaluation": {"seeds": True, "timing": {"raw"}}})
        print(dumps({**fields, "holds": not report.failed, "unchecked": [claim.name for claim in report.unchecked]}, indent=1))
    else:
        _print(report)
    raise typer.Exit(1 if report.failed else 0)


def _whole_digest(bundle: Path) -> str:
    """The digest of a bundle whose files are what its manifest says; of another it would be worth nothing."""
    from tools.errors import UserError
    from tools.evidence import damages
    from tools.evidence.manifest import digest_of

    found = digest_of(bundle)
    if broken := damages(bundle):
        raise UserError(f"{bundle} is damaged: {broken[0]}.", "Get the bundle again from where it came.")
    return found


def _signature(file: Path | None, allowed: Path | None, signer: str) -> Signature | None:
    """What the options demand of a signature; None where they say nothing of one."""
    from tools.errors import UserError
    from tools.evidence import Signature

    if file is None and allowed is None and not signer:
        return None
    if file is None or allowed is None:
        raise UserError("A signature is checked with both --signature and --allowed-signers.", "Name both files.")
    return Signature(file, allowed, signer)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from kernelwright.screen.hanging import print_hanging
    from tools.logs import printable

    console = Console(highlight=False)
    console.rule(escape(report.bundle))
    table = Table(box=None, show_header=False)
    for claim in report.claims:
        colour = _COLOURS[claim.standing]
        table.add_row(claim.name, f"[{colour}]{claim.standing}[/]", escape(printable(claim.words)))
    console.print(table)
    console.print(f"digest:  {escape(printable(report.digest)) or 'none'}", soft_wrap=True)
    print_hanging(console, Text(), Text.from_markup(_summary(report)))


def _summary(report: Report) -> str:
    """One closing sentence."""
    failed, left = len(report.failed), len(report.unchecked)
    if failed:
        return f"[bold red]{failed} of {len(report.claims)} claims fail.[/] Do not rely on this bundle."
    rest = f" {left} could not be checked here." if left else ""
    run = "" if report.evaluation else " The kernel was not run: files and figures agree with each other, and that is all this says."
    return f"[green]Every claim that was checked holds.[/]{rest}{run}"
