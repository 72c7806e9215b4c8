"""What can be known of a model's file without running it: whether it defines what it has to, with the nearest name where it does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.errors import UserError
from tools.evidence.folder import check_place
from tools.nearest import nearest
from tools.problems.source import parse, read_source

MAKE, WORKLOADS, WEIGHTS, AUTOCAST = "make", "workloads", "WEIGHTS", "AUTOCAST"
"""Names that a file of a model has; the last two are optional."""
NOT_PROVEN_YET = "The work ended before its proof."
"""What the report of a package says until its model is proven with it."""
EXPECTED = (
    "Give the file make(), which returns an nn.Module, and workloads() or workloads(model), which returns {name: (argument, …)}; "
    "or a class Model with get_inputs(), as an operator's file has them."
)


def factory_of(names: set[str], factory: str) -> str:
    """Say what makes the model of a file that defines `names`."""
    return factory or ("Model" if MAKE not in names and "Model" in names else MAKE)


def check_form(file: Path, factory: str) -> None:
    """Raise UserError where a model's file cannot be read, is no Python, or does not define what it has to."""
    tree = parse(read_source(file), file.name)
    names = set(_names(tree))
    if "*" in names:
        return
    maker = factory_of(names, factory)
    for name in (maker, "get_inputs" if maker == "Model" else WORKLOADS):
        if name not in names:
            raise UserError(f"{file.name} defines no {name}().", f"{nearest(name, names)}{EXPECTED}")


def check_package_place(out: Path) -> None:
    """Raise UserError for a place that no package can be written to or imported from; one whose proof was cut off is written anew."""
    report = out / "report.json"
    if not (report.is_file() and NOT_PROVEN_YET in report.read_text(errors="replace")):
        check_place(out)
    if not out.name.isidentifier():
        raise UserError(f"{out.name} is no name that Python can import a package by.", "Use letters, digits and _ in the name of --out.")


def _names(tree: ast.Module) -> Iterator[str]:
    """List what a file defines or imports at its top."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif not isinstance(node, ast.Expr):
            yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            yield from (part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.ClassDef))
