"""Puts the shards of a bench together, and refuses to mix what cannot stand in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernelwright.bench.files import read_rows, read_settings
from kernelwright.bench.header import Header
from kernelwright.bench.row import ResultRow, Status
from kernelwright.bench.settings import BenchSettings
from tools.errors import UserError


@dataclass(frozen=True)
class Gathered:
    """Rows of one or more shards, with what they ran on."""

    settings: BenchSettings
    """Of the first folder; all agree in them unless the notes say otherwise."""
    headers: tuple[Header, ...]
    rows: tuple[ResultRow, ...]
    """One a problem, arm and seed, in the order of level, number, arm and seed."""
    notes: tuple[str, ...] = ()
    """What was mixed or done twice, one sentence each."""


def gather(folders: Sequence[Path], *, mixed: bool = False) -> Gathered:
    """Read folders of `kernelwright bench`; other settings, hardware or versions raise UserError, or a note with `mixed`."""
    notes: list[str] = []
    settings: BenchSettings | None = None
    headers: list[Header] = []
    found: dict[str, ResultRow] = {}
    for folder in folders:
        own = read_settings(folder / "settings.json")
        different = settings.differences(own) if settings else []
        _allow(different, f"{folder} has other settings than {folders[0]}", notes, mixed=mixed)
        settings = settings or own
        headers += _headers(folder, headers, notes, mixed=mixed)
        for row in read_rows(sorted(folder.glob("results-*.jsonl"))):
            renamed = row.model_copy(update={"arm": f"{row.arm} ({folder.name})"}) if different else row
            _add(found, renamed, notes, folder)
    if settings is None or not found:
        raise UserError(f"There are no results in {', '.join(map(str, folders))}.", "Name folders that `kernelwright bench` wrote.")
    if len({row.code for row in found.values()}) > 1:
        notes.append("kernelwright's own code changed between the first and the last of these rows: each row names its code.")
    rows = sorted(found.values(), key=lambda row: (row.level, row.number, row.problem, row.arm, row.seed))
    return Gathered(settings, tuple(headers), tuple(rows), tuple(dict.fromkeys(notes)))


def _headers(folder: Path, before: Sequence[Header], notes: list[str], *, mixed: bool) -> list[Header]:
    read: list[Header] = []
    for path in sorted(folder.glob("header-*.json")):
        try:
            header = Header.model_validate_json(path.read_text())
        except (OSError, ValidationError) as error:
            raise UserError(f"{path} cannot be read.", "Name a folder that `kernelwright bench` wrote.") from error
        first = (*before, *read, header)[0]
        _allow(first.incompatible(header), f"{path} was not run as the first shard was", notes, mixed=mixed)
        read.append(header)
    return read


def _allow(different: Sequence[str], what: str, notes: list[str], *, mixed: bool) -> None:
    if not different:
        return
    said = f"{what}: {'; '.join(different[:4])}."
    if not mixed:
        raise UserError(said, "Report on them apart, or say --mixed to put them together all the same.")
    notes.append(said)


def _add(found: dict[str, ResultRow], row: ResultRow, notes: list[str], folder: Path) -> None:
    """Keep one row a key: a later one of the same bench counts, but a failure of the machine never hides a result."""
    known = found.get(row.key)
    if known is None or known.status is Status.FAILED:
        found[row.key] = row
    elif row.status is not Status.FAILED:
        notes.append(f"{row.key} was done more than once; the one that {folder} has last counts.")
        found[row.key] = row
