"""List the devices kernels can be optimised for, or show one device's sheet with the source of each figure.

Examples:
  kernelwright hardware

  kernelwright hardware h200
"""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.cli.shared.options import Json


def command(name: Annotated[str, typer.Argument(metavar="[NAME]", help="Device sheet to show whole.")] = "", json: Json = False) -> None:
    """Print sheets."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from kernelwright.screen.hanging import print_hanging
    from tools.hardware import load_sheet, sheet_names

    names = (name,) if name else sheet_names()
    sheets = [load_sheet(one) for one in names]
    if json:
        from json import dumps

        print(dumps([sheet.model_dump(mode="json") for sheet in sheets], indent=1))
        return
    table = Table("name", "device", "arch", "memory GB/s", "fp32 TFLOP/s", "fp16 TFLOP/s", box=None)
    for sheet in sheets:
        rates = (sheet.memory_gbps, sheet.fp32_tflops, sheet.fp16_tflops)
        table.add_row(sheet.name, sheet.title, sheet.arch, *(f"{rate:,.0f}" if rate else "–" for rate in rates))
    console = Console(highlight=False)
    console.print(table)
    if name:
        figures = sheets[0].model_dump()
        for field, source in sheets[0].sources.items():
            print_hanging(console, Text("  "), Text(f"{field} = {figures.get(field)}: {source}"))
