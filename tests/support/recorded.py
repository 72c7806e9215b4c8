"""Runs that are kept as text under `tests/recorded/`, as folders that can be opened."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "recorded"


def restored(name: str, folder: Path) -> Path:
    """Make the folder of a recorded run, its checkpoints too where they are kept; return it."""
    (folder / "candidates").mkdir(parents=True)
    for file, text in json.loads((RECORDED / name / "candidates.json").read_text()).items():
        (folder / "candidates" / file).write_text(text)
    for database in ("run", "checkpoints"):
        if (script := RECORDED / name / f"{database}.sql").is_file():
            with closing(sqlite3.connect(folder / f"{database}.db")) as file:
                file.executescript(script.read_text())
    return folder
