"""Write a run as one HTML file that needs nothing else: what came of it, how, and every candidate with its source.

It has your operator's source and what kernels printed: look before you publish.

Examples:
  kernelwright report softmax-20261121

  kernelwright report softmax-20261121 --out softmax.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Home, home_folder


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run, or the start of it.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it; replaced where it exists.", show_default="RUN.html")
    ] = None,
    home: Home = None,
) -> None:
    """Write the page and say where it is."""
    from kernelwright.cli.shared.early import check_out, check_run

    check_run(home, run)
    check_out(out)
    from graphs.run.assembly import open_run
    from kernelwright.screen.report.report import write_report

    store = open_run(home_folder(home), run)
    place = out or Path(f"{store.meta('run')}.html")
    check_out(place)
    write_report(store, place)
    print(place.absolute())
