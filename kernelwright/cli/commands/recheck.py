"""Check a whole model's package again, after an upgrade of torch, triton or the driver, or on another machine.

Each operator's evidence is verified and its kernel judged and timed here, in the sandbox. With --model the whole model is run
with the package, too. Where all of it is right and was timed, the package notes that it was tried here.
Exit status: 0 where everything is right, 1 where something is not, 2 for a wrong input.

Examples:
  kernelwright recheck faster_decoder

  kernelwright recheck faster_decoder --model my_model.py:large
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli.shared.options import Json

if TYPE_CHECKING:
    from kernelwright.api.rechecking import Recheck


def command(
    package: Annotated[Path, typer.Argument(metavar="PACKAGE", help="Folder that `kernelwright model` wrote.")],
    model: Annotated[str, typer.Option(metavar="FILE[:FACTORY]", help="The model's file: it is proven with the package.")] = "",
    rounds: Annotated[int, typer.Option(min=3, help="Timed runs of the whole model for each way of running it.")] = 30,
    json: Json = False,
) -> None:
    """Check and print."""
    from kernelwright.api.rechecking import recheck
    from tools.models.form import check_form

    if model:
        check_form(Path(model.partition(":")[0]), model.partition(":")[2])
    found = recheck(package, model, rounds)
    if json:
        print(found.model_dump_json(indent=1))
    else:
        _show(found)
    if not found.holds:
        raise typer.Exit(1)


def _show(found: Recheck) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("operator", "here", "by its evidence", "now", "does not hold", box=None, pad_edge=False)
    for one in found.operators:
        now = f"{one.now:.2f}x ({one.tier})" if one.now else "–"
        table.add_row(*map(escape, (one.name, one.verdict, f"{one.before:.2f}x", now, ", ".join(one.failed) or "–")))
    console.print(table)
    if found.proof is not None:
        said = found.proof.what or ("right, used and undone" if found.proof.holds else "NOT right")
        console.print(f"model:   {escape(said)}; {sum(found.proof.hits.values())} calls by operators", soft_wrap=True)
    for ratio in found.ratios:
        console.print(f"model:   {ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}], {ratio.under} against {ratio.over}")
    console.print(
        f"tried:   noted for {found.device}"
        if found.noted
        else f"tried:   not noted: {'nothing was timed' if found.holds else 'not everything is right'}"
    )
