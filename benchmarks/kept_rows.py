"""The rows of a long benchmark, each kept in a file at once: what is interrupted loses nothing, and the same command goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.errors import UserError

Row = dict[str, Any]


class KeptRows:
    """Rows in a file of JSON lines, or in memory alone where there is none."""

    def __init__(self, file: Path | None) -> None:
        """Read what is there; a last line that was cut off while it was written is dropped.

        Raises UserError where the file holds something else.
        """
        self._file = file
        self.rows: list[Row] = []
        if file is None or not file.exists():
            return
        whole, _, cut_off = file.read_text().rpartition("\n")
        try:
            self.rows = [json.loads(line) for line in whole.splitlines()]
            if not all(isinstance(row, dict) for row in self.rows):
                raise ValueError("a line is no row")
        except ValueError as error:
            raise UserError(f"{file} does not hold rows as JSON lines: {error}.", "Name another file, or remove this one.") from None
        if cut_off:
            file.write_text(f"{whole}\n" if whole else "")

    def add(self, row: Row) -> None:
        """Keep one more row."""
        self.rows.append(row)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(row) + "\n")


def policy_of(row: Row) -> str:
    """Name the policy a row was judged under; rows that name none are from when `exact` was the default."""
    return str(row.get("policy", "exact"))
