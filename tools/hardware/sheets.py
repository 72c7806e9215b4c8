"""Reading hardware sheets from the data folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import ValidationError

import tools
from tools.errors import UserError
from tools.nearest import nearest
from tools.records import HardwareSheet


def sheet_folder() -> Path:
    """Folder of the sheets: beside `tools` in a checkout and in the installed package alike."""
    # `tools.__file__` is REPO/tools/__init__.py, or kernelwright/tools/__init__.py in the wheel
    return Path(tools.__file__).resolve().parents[1] / "data" / "hardware"


def sheet_names() -> tuple[str, ...]:
    """List the known devices by their command-line names."""
    return tuple(sorted(path.stem for path in sheet_folder().glob("*.json")))


@cache
def load_sheet(name: str) -> HardwareSheet:
    """Read one sheet; a name without a sheet raises UserError with the known names."""
    if name not in sheet_names():
        raise UserError(
            f"There is no hardware sheet called {name!r}.", f"{nearest(name, sheet_names())}Choose one of: {', '.join(sheet_names())}."
        )
    path = sheet_folder() / f"{name}.json"
    try:
        return HardwareSheet.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(
            f"The hardware sheet {path} cannot be read: {field}: {first['msg']}.", "Correct that field of the sheet."
        ) from error
