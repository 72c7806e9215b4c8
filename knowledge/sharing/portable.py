"""The portable form of a knowledge base: JSON lines, a header and then one strategy a line with its evidence."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path

from pydantic import Field, ValidationError

from knowledge.learning.learn import strategy_event
from knowledge.log.entry import Entry, Evidence, Rewrite
from knowledge.log.event_log import EventKind, EventLog
from knowledge.log.fold import Fold
from knowledge.log.migrate import upgraded_line
from knowledge.records import SCHEMA, Strategy
from tools.errors import MachineError, UserError
from tools.records import Record

FORMAT = "kernelwright-knowledge"


class Header(Record):
    """First line of an export."""

    format: str
    version: int
    entries: int


class Line(Record):
    """One strategy of an export."""

    strategy: Strategy
    """As first written, without trials."""
    evidence: tuple[Evidence, ...] = ()
    retired: str | None = None
    seed: str | None = None
    """Name of the seed it is."""
    revision: int = Field(default=0, ge=0)
    rewrites: tuple[Rewrite, ...] = ()
    """How its words and prediction changed since, oldest first."""


class Imported(Record):
    """What an import did."""

    added: int
    """Strategies that were new."""
    credited: int
    """Trials that were new."""
    known: int
    """Strategies that were here already, left as they are."""
    conflicts: tuple[str, ...]
    """Ids that are here with another source, gain or parameters; ours were kept."""


def export(fold: Fold, path: Path) -> int:
    """Write every entry, replacing nothing: an existing file raises UserError. Return the number of entries."""
    lines = [Header(format=FORMAT, version=SCHEMA, entries=len(fold.entries)).model_dump_json()]
    lines += [_line(entry).model_dump_json() for entry in fold.entries.values()]
    if path.is_dir():
        raise UserError(f"{path} is a folder.", "Name a file in it.")
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # a link, unlike a rename, refuses to replace what is there
        os.link(fresh, path)
    except FileExistsError as error:
        raise UserError(f"{path} exists already.", "Name another file, or remove it first.") from error
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}."
        raise MachineError(what, "Name a file in a folder that you may write, with room.") from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
    return len(fold.entries)


def import_(log: EventLog, fold: Fold, path: Path) -> Imported:
    """Read an export whole, and only if every line is valid add what is new in one transaction."""
    lines = read_export(path)
    added = credited = 0
    conflicts = []
    with log.writing() as writer:
        fold.follow(log)
        for line in lines:
            strategy = line.strategy
            known = fold.entries.get(strategy.id)
            if known is None:
                body = _body(line, fold)
                added += writer.add(EventKind.STRATEGY, f"imported:{strategy.id}", strategy.id, body)
                for number, rewrite in enumerate(line.rewrites):
                    key = f"rewrite:{strategy.id}:imported:{number}"
                    writer.add(EventKind.REWRITE, key, strategy.id, rewrite.model_dump(mode="json"))
                if line.retired is not None:
                    writer.add(EventKind.RETIRE, f"retire:{strategy.id}:imported", strategy.id, {"reason": line.retired})
            elif known.written != strategy:
                conflicts.append(strategy.id)
            for evidence in line.evidence:
                key = f"trial:{evidence.key}:{strategy.id}"
                credited += writer.add(EventKind.TRIAL, key, strategy.id, evidence.model_dump(mode="json"))
    fold.follow(log)
    return Imported(added=added, credited=credited, known=len(lines) - added, conflicts=tuple(conflicts))


def read_export(path: Path) -> list[Line]:
    """Read and validate every line; the first bad one raises UserError with its number."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} cannot be read: {why}.", "Name a file that `kernelwright knowledge export` wrote.") from error
    rows = text.splitlines()
    header = _header(path, rows[0] if rows else "")
    if len(rows) - 1 != header.entries:
        raise UserError(f"{path} holds {len(rows) - 1} of its {header.entries} entries.", "Export it again: the file is cut or was edited.")
    return [_entry(path, number, row, header.version) for number, row in enumerate(rows[1:], start=2)]


def _header(path: Path, row: str) -> Header:
    try:
        header = Header.model_validate_json(row)
    except ValidationError as error:
        what = f"{path} is no export of a knowledge base: its first line is no header."
        raise UserError(what, "Name a file that `kernelwright knowledge export` wrote.") from error
    if header.format != FORMAT or not 1 <= header.version <= SCHEMA:
        what = f"{path} is of form {header.format} {header.version}; this release reads {FORMAT} 1 to {SCHEMA}."
        raise UserError(what, "Export it again with a release that writes this version.")
    return header


def _entry(path: Path, number: int, row: str, version: int) -> Line:
    try:
        line = _read(row, version)
    except json.JSONDecodeError as error:
        raise UserError(f"Line {number} of {path} is not JSON: {error}.", "Export it again; nothing was imported.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        what = f"Line {number} of {path} is not valid: {where}: {first['msg']}."
        raise UserError(what, "Correct it or export again; nothing was imported.") from error
    if not line.strategy.title.strip() or not line.strategy.lesson.strip():
        raise UserError(f"Line {number} of {path} has no title or no lesson.", "Write both, or take the line out; nothing was imported.")
    if line.strategy.trials:
        raise UserError(f"Line {number} of {path} holds trials inside its strategy.", "Put them under `evidence`; nothing was imported.")
    if line.strategy.schema_version != SCHEMA:
        what = f"Line {number} of {path} is of schema {line.strategy.schema_version}; this release reads {SCHEMA}."
        raise UserError(what, "Export it again with a release that writes this version; nothing was imported.")
    return line


def _read(row: str, version: int) -> Line:
    raw = json.loads(row)
    return Line.model_validate_json(json.dumps(upgraded_line(version, raw) if isinstance(raw, dict) else raw))


def _body(line: Line, fold: Fold) -> dict[str, object]:
    """A seed that this store does not have stays one; another wording of a seed that it has comes in beside it."""
    if line.seed and line.seed not in fold.by_seed:
        return strategy_event(line.strategy, "seed", seed=line.seed, revision=line.revision)
    return strategy_event(line.strategy, "imported")


def _line(entry: Entry) -> Line:
    return Line(
        # sources stay at home
        strategy=entry.written.model_copy(update={"excerpt": ""}),
        evidence=tuple(entry.evidence),
        retired=entry.retired,
        seed=entry.seed,
        revision=entry.revision,
        rewrites=tuple(rewrite.model_copy(update={"seq": 0}) for rewrite in entry.rewrites),
    )
