"""The files of a bench: `settings.json`, and for each shard its header and its rows, each row written at once as it comes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from kernelwright.bench.header import Header
from kernelwright.bench.row import ROW_VERSION, ResultRow
from kernelwright.bench.settings import BenchSettings
from tools.errors import MachineError, UserError
from tools.problems.suite import parse_shard


class BenchFolder:
    """The folder of a bench; several shards may work in the same one or in folders of their own."""

    def __init__(self, folder: Path, shard: str = "") -> None:
        """Name it; nothing is made before `claim`."""
        index, count = parse_shard(shard)
        self.folder = folder
        self.tag = f"{index}of{count}"
        self.is_whole = count == 1
        self.rows_file = folder / f"results-{self.tag}.jsonl"

    @property
    def home(self) -> Path:
        """Home of the runs: `kernelwright trace RUN --home` reads them."""
        return self.folder / "home"

    def knowledge(self, arm: str, seed: int) -> Path:
        """Folder of the memory of one arm and seed in this shard."""
        return self.folder / "knowledge" / f"{arm.replace('/', '-').replace(':', '-')}-s{seed}-{self.tag}"

    def claim(self, settings: BenchSettings, header: Header, *, resume: bool) -> None:
        """Make the folder, or go on in it where its settings are these; anything else raises UserError."""
        known = self.folder / "settings.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if known.is_file():
                self._agree(settings, known)
                if self.rows_file.is_file() and not resume:
                    mend = "Leave --no-resume out to go on with it, or give another --out."
                    raise UserError(f"{self.rows_file} holds results already.", mend)
            else:
                _replace(known, settings.model_dump_json(indent=1))
            _replace(self.folder / f"header-{self.tag}.json", header.model_dump_json(indent=1))
        except OSError as error:
            raise UserError(
                f"{self.folder} cannot be written ({error.strerror}).", "Give another --out, or mend its permissions."
            ) from error

    def append(self, row: ResultRow) -> None:
        """Write one row in one piece and wait for the disk; what a kill cut off before is closed with a line end."""
        line = row.model_dump_json().encode() + b"\n"
        try:
            with self.rows_file.open("ab+") as file:
                if file.tell() and not _ends_line(self.rows_file):
                    line = b"\n" + line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise MachineError(f"{self.rows_file} cannot be written ({error.strerror}).", "Mend that and repeat the command.") from error

    def rows(self) -> dict[str, ResultRow]:
        """Rows of this shard by key; of several with one key the last counts."""
        return {row.key: row for row in read_rows([self.rows_file])}

    def _agree(self, settings: BenchSettings, known: Path) -> None:
        before = read_settings(known)
        if different := settings.differences(before):
            what = f"{self.folder} holds a bench with other settings: {'; '.join(different[:4])}."
            raise UserError(what, "Repeat the command it was begun with, or give another --out.")


def read_settings(path: Path) -> BenchSettings:
    """Read the settings of a bench; UserError where there are none."""
    try:
        return BenchSettings.model_validate_json(path.read_text())
    except (OSError, ValidationError) as error:
        raise UserError(f"{path} holds no settings of a bench.", "Name a folder that `kernelwright bench` wrote.") from error


def read_rows(files: Iterable[Path]) -> list[ResultRow]:
    """Read every whole row; the last line of a file may be cut off by a kill, any other damage raises UserError."""
    rows = []
    for path in files:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
        for number, line in enumerate(lines, 1):
            if line.strip() and (row := _row(line, path, number)) is not None:
                rows.append(row)
    return rows


def _row(line: bytes, path: Path, number: int) -> ResultRow | None:
    try:
        row = ResultRow.model_validate_json(line)
    except ValidationError as error:
        # a line without its closing brace is one that a kill cut off: its run is found again in its folder
        if not line.rstrip().endswith(b"}"):
            return None
        raise UserError(f"{path}, line {number}, is no result of a bench.", "Remove that line; its problem is then done again.") from error
    if row.version != ROW_VERSION:
        what = f"{path}, line {number}, is of version {row.version}; this kernelwright reads version {ROW_VERSION}."
        raise UserError(what, "Use the version that wrote it.")
    return row


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _replace(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)
