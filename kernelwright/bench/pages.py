"""Writes a report's pages: Markdown with its plots as SVG files beside it, and one HTML file that needs nothing else."""

from __future__ import annotations

import math
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from kernelwright.bench.merging import Gathered
from kernelwright.bench.plots import plots_of
from kernelwright.bench.report import Report, make_report
from tools.errors import UserError


def write_report(gathered: Gathered, folder: Path) -> Report:
    """Work out the report and write `report.md`, `report.html`, `report.json` and `plots/` into `folder`."""
    report = make_report(gathered)
    drawn = {section.basis: plots_of(section) for section in report.sections}
    pages = ("report.md", "report.html", "report.json")
    report = report.model_copy(update={"files": tuple(str(folder / name) for name in pages)})
    try:
        (folder / "plots").mkdir(parents=True, exist_ok=True)
        for basis, plots in drawn.items():
            for plot in plots:
                (folder / "plots" / f"{basis}-{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
        for name in ("report.md", "report.html"):
            text = _environment().get_template(f"{name}.j2").render(report=report, plots=drawn)
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "report.json").write_text(report.model_dump_json(indent=1), encoding="utf-8")
    except OSError as error:
        raise UserError(f"The report cannot be written to {folder} ({error.strerror}).", "Give another --out.") from error
    return report


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kernelwright.bench"),
        autoescape=select_autoescape(("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"times": times, "number": number, "percent": percent, "cell": cell, "error": error_text}
    return environment


def times(value: float | None) -> str:
    """A speed-up: `1.42x`; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.2f}x"


def number(value: float | None, digits: int = 1) -> str:
    """A plain figure with a thousands separator; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """A share: `84 %`; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.0f} %"


def error_text(value: float | None) -> str:
    """A relative error: `2.1e-07`."""
    return "–" if value is None else f"{value:.1e}"


def cell(text: str) -> str:
    """Text that may stand in a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "/")
