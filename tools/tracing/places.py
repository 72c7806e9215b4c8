"""Where work lies that is kept outside of the home folder, such as a bench's results: noted in the home, so that it is found again."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from tools.errors import UserError


def note_place(home: Path, kind: str, folder: Path) -> str:
    """Note that `folder` holds work of a `kind`; return the name under which it is found. UserError where the home cannot be written."""
    folder = folder.absolute()
    name = f"{folder.name}-{sha256(str(folder).encode()).hexdigest()[:4]}"
    try:
        (home / kind).mkdir(parents=True, exist_ok=True)
        (home / kind / f"{name}.json").write_text(json.dumps({"folder": str(folder)}))
    except OSError as error:
        raise UserError(f"{home / kind} cannot be written ({error.strerror}).", "Mend its permissions, or give another --home.") from error
    return name


def places(home: Path, kind: str) -> dict[str, Path]:
    """Folders of a kind by their names, the latest noted first; those that are no longer there are left out."""
    notes = sorted((home / kind).glob("*.json"), key=lambda path: -path.stat().st_mtime)
    found = {path.stem: _folder(path) for path in notes}
    return {name: folder for name, folder in found.items() if folder.is_dir()}


def _folder(note: Path) -> Path:
    try:
        return Path(json.loads(note.read_text())["folder"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{note} is damaged.", "Remove it, and repeat the command that wrote it.") from error
