"""The Python files beside a model's file that it imports, and those that they import: what a process that cannot read them is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.syntax import parsed

MOST = 500
"""Files that are taken along at most."""


def neighbours(file: Path) -> dict[str, str]:
    """Read the files that `file` leads to in its own folder, by their paths in it; not the file itself."""
    folder = file.absolute().parent
    found: dict[str, str] = {}
    waiting = [file.absolute()]
    while waiting and len(found) < MOST:
        for path in _imported(waiting.pop(), folder):
            name = path.relative_to(folder).as_posix()
            if name not in found and path != file.absolute():
                found[name] = path.read_text(encoding="utf-8", errors="replace")
                waiting.append(path)
    return found


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    """List files of `folder` that a file imports; of a package all that are in it."""
    try:
        tree = parsed(file.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError):
        return
    for name in sorted(set(_names(tree))):
        if (folder / f"{name}.py").is_file():
            yield folder / f"{name}.py"
        elif (folder / name).is_dir():
            yield from sorted((folder / name).rglob("*.py"))


def _names(tree: ast.Module) -> Iterator[str]:
    """List the first words of what is imported anywhere in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
