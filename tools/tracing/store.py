"""The store of one run: its records, the spans of its nodes, its model calls, its sources."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from tools.errors import UserError
from tools.records import ROOT, Candidate, Evaluation, Record, Spent
from tools.tracing.database import Database
from tools.tracing.outlines import Outline
from tools.tracing.secrets import without_used

R = TypeVar("R", bound=Record)
INHERITED = "inherited"
"""Fact about a run: key of the evaluation that it was given by another run, and has not paid for."""
AS_GIVEN = ("problem", "candidate")
"""Kinds of records whose text ids are made of: it is kept to the letter."""


class Row(NamedTuple):
    """One record as it lies in the file."""

    kind: str
    id: str
    subject: str
    """What it is about."""
    created: float
    """Seconds since the epoch."""
    json: str


class Span(Record):
    """One execution of one node."""

    id: int
    node: str
    subject: str
    """Plan id, candidate id or round it was about."""
    started: float
    """Seconds since the epoch."""
    ended: float | None
    """None where the process died in it."""
    input: str
    """JSON."""
    output: str | None
    """JSON of the node's update."""
    error: str | None


class RunStore:
    """Everything a run did, in `run.db` and `candidates/` of its folder."""

    def __init__(self, folder: Path) -> None:
        """Open the run in `folder`; UserError where there is none."""
        if not (folder / "run.db").is_file():
            raise UserError(f"There is no run in {folder}.", "List the runs with `kernelwright runs`.")
        self.folder = folder
        self._db = Database(folder / "run.db")
        self._session: int | None = None
        self.outline = Outline(self._db)

    @classmethod
    def create(cls, folder: Path, meta: Mapping[str, str]) -> RunStore:
        """Make the folder of a new run and write down what it is about."""
        try:
            (folder / "candidates").mkdir(parents=True)
            (folder / "run.db").touch()
        except OSError as error:
            raise UserError(
                f"The run folder {folder} cannot be made ({error.strerror}).", "Choose another place with --home, or mend its permissions."
            ) from error
        store = cls(folder)
        for name, value in meta.items():
            store.set_meta(name, value)
        return store

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def meta(self, name: str) -> str:
        """Value of a fact about the whole run; empty where it was never set."""
        rows = self._db.query("SELECT value FROM meta WHERE name = ?", name)
        return str(rows[0]["value"]) if rows else ""

    def all_meta(self) -> dict[str, str]:
        """Every fact about the whole run."""
        return {row["name"]: str(row["value"]) for row in self._db.query("SELECT name, value FROM meta ORDER BY name")}

    def set_meta(self, name: str, value: str) -> None:
        """Write a fact about the whole run."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", name, value)

    def put(self, kind: str, name: str, record: Record, subject: str = "") -> None:
        """Keep `record` under (`kind`, `name`); writing it again replaces it. A weakened evaluation raises UserError."""
        if isinstance(record, Evaluation):
            record.demand_whole()
        text = record.model_dump_json()
        self.put_row(Row(kind, name, subject, time.time(), text if kind in AS_GIVEN else without_used(text)))

    def put_row(self, row: Row) -> None:
        """Keep a record as another store had it."""
        self._db.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", *row)

    def rows(self, since: float = 0.0) -> list[Row]:
        """Every record that was written at `since` or later, oldest first; of a candidate its source is not among it."""
        written = "SELECT kind, id, subject, created, json FROM records WHERE created >= ? ORDER BY created, id"
        return [Row(*row) for row in self._db.query(written, since)]

    def get(self, kind: str, name: str, type_: type[R]) -> R | None:
        """Read the record kept under (`kind`, `name`)."""
        rows = self._db.query("SELECT json FROM records WHERE kind = ? AND id = ?", kind, name)
        return self._load(type_, rows[0]["json"]) if rows else None

    def written(self, kind: str, name: str) -> float:
        """When a record was written, seconds since the epoch; 0 where there is none."""
        rows = self._db.query("SELECT created FROM records WHERE kind = ? AND id = ?", kind, name)
        return float(rows[0]["created"]) if rows else 0.0

    def all(self, kind: str, type_: type[R], subject: str | None = None) -> dict[str, R]:
        """Read every record of a kind by name, oldest first; only those about `subject` where one is given."""
        if subject is None:
            rows = self._db.query("SELECT id, json FROM records WHERE kind = ? ORDER BY created, id", kind)
        else:
            # left to itself SQLite may take an index that has the order, and look through every evaluation for the few of one candidate
            of_subject = "SELECT id, json FROM records INDEXED BY records_by_subject WHERE kind = ? AND subject = ? ORDER BY created, id"
            rows = self._db.query(of_subject, kind, subject)
        return {row["id"]: self._load(type_, row["json"]) for row in rows}

    def names(self, kind: str) -> list[str]:
        """Names of the records of a kind, oldest first; none of them is read."""
        return [str(row["id"]) for row in self._db.query("SELECT id FROM records WHERE kind = ? ORDER BY created, id", kind)]

    def marks(self) -> tuple[float, ...]:
        """Figures that change with whatever is written, so that what was read of a run need not be read again."""
        counted = "SELECT count(*), coalesce(max(created), 0) FROM"
        ended = "SELECT count(*), coalesce(max(ended), 0) FROM spans"
        return tuple(value for text in (f"{counted} records", f"{counted} calls", ended) for value in self._db.query(text)[0])

    def _load(self, type_: type[R], text: str) -> R:
        try:
            if type_ is not Candidate:
                return type_.model_validate_json(text)
            fields = json.loads(text)
            return type_.model_validate(fields | {"source": self.source(fields.pop("id"))})
        except ValidationError as error:
            raise unreadable(f"{self.folder / 'run.db'} holds a {type_.__name__}", error) from error

    def put_candidate(self, candidate: Candidate) -> None:
        """Keep a candidate: its source as `candidates/<id>.py`, its difference from the parent as `<id>.diff`."""
        self.put_source(candidate.id, candidate.source, candidate.parent)
        text = json.dumps(candidate.model_dump(mode="json", exclude={"source"}) | {"id": candidate.id})
        row = ("candidate", candidate.id, candidate.parent, time.time(), text)
        self._db.execute("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?)", *row)

    def put_source(self, name: str, source: str, parent: str) -> None:
        """Write a candidate's source and its difference from its parent's into files."""
        folder = self.folder / "candidates"
        (folder / f"{name}.py").write_text(source)
        (folder / f"{name}.diff").write_text(_diff(self.source(parent), source, parent, name))

    def candidate(self, name: str) -> Candidate | None:
        """Read a candidate; None for ROOT."""
        return None if name == ROOT else self.get("candidate", name, Candidate)

    def source(self, name: str) -> str:
        """Source text of a candidate; for ROOT the reference as the user wrote it."""
        path = self.folder / "candidates" / f"{name}.py"
        return path.read_text() if path.is_file() else ""

    def diff(self, name: str) -> str:
        """Unified difference of a candidate from its parent."""
        path = self.folder / "candidates" / f"{name}.diff"
        return path.read_text() if path.is_file() else ""

    def put_root(self, source: str) -> None:
        """Keep the reference's source as the parent of every first candidate."""
        (self.folder / "candidates" / f"{ROOT}.py").write_text(source)

    def get_call(self, key: str) -> str | None:
        """Read a finished model call by its key."""
        rows = self._db.query("SELECT json FROM calls WHERE key = ?", key)
        return str(rows[0]["json"]) if rows else None

    def put_call(self, key: str, record_json: str) -> None:
        """Keep a finished model call."""
        self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", key, time.time(), without_used(record_json))

    def call_rows(self, since: float = 0.0) -> list[Row]:
        """Every model call that was finished at `since` or later, oldest first, in the form of records of kind `call`."""
        found = self._db.query("SELECT key, created, json FROM calls WHERE created >= ? ORDER BY created", since)
        return [Row("call", row["key"], "", row["created"], row["json"]) for row in found]

    def put_call_row(self, row: Row) -> None:
        """Keep a finished model call as another store had it."""
        self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", row.id, row.created, row.json)

    def called(self, key: str) -> float:
        """When a model call was finished, seconds since the epoch; 0 where there is none."""
        rows = self._db.query("SELECT created FROM calls WHERE key = ?", key)
        return float(rows[0]["created"]) if rows else 0.0

    def calls(self) -> list[dict[str, Any]]:
        """Every finished model call, oldest first."""
        return [{"key": row["key"], **json.loads(row["json"])} for row in self._db.query("SELECT key, json FROM calls ORDER BY created")]

    @contextmanager
    def span(self, node: str, subject: str, given: str) -> Iterator[list[str]]:
        """Record one execution of a node; append the JSON of its output to the list this yields."""
        started = time.time()
        row = self._db.execute("INSERT INTO spans (node, subject, started, input) VALUES (?, ?, ?, ?)", node, subject, started, given)
        output: list[str] = []
        error = None
        try:
            yield output
        except BaseException as raised:
            error = without_used(f"{type(raised).__name__}: {raised}")
            raise
        finally:
            update = without_used(output[0]) if output else None
            self._db.execute("UPDATE spans SET ended = ?, output = ?, error = ? WHERE id = ?", time.time(), update, error, row)
            self._seen()

    def spans(self, since: float = 0.0) -> list[Span]:
        """Executions of nodes that ended at `since` or later, or have not ended, in order of start."""
        found = self._db.query("SELECT * FROM spans WHERE ended >= ? OR ended IS NULL ORDER BY id", since)
        return [Span(**dict(row)) for row in found]

    def put_span(self, span: Span) -> None:
        """Keep an execution of a node as another store had it."""
        self._db.execute("INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *(value for _, value in span))

    def open_session(self) -> None:
        """Start counting wall time: from here to the last sign of life."""
        now = time.time()
        self._session = self._db.execute("INSERT INTO sessions (started, last_seen) VALUES (?, ?)", now, now)

    def close_session(self) -> None:
        """Count no wall time from here on, until the next session is opened."""
        self._seen()
        self._session = None

    def sessions(self) -> list[tuple[float, float]]:
        """When each session began and showed its last sign of life, seconds since the epoch."""
        return [(row["started"], row["last_seen"]) for row in self._db.query("SELECT started, last_seen FROM sessions ORDER BY id")]

    def put_session(self, started: float, last_seen: float) -> None:
        """Keep a session as another store had it."""
        self._db.execute("INSERT INTO sessions (started, last_seen) VALUES (?, ?)", started, last_seen)

    def _seen(self) -> None:
        if self._session is not None:
            self._db.execute("UPDATE sessions SET last_seen = ? WHERE id = ?", time.time(), self._session)

    def spent(self) -> Spent:
        """Add up what the run has used, from what it recorded: right after any number of resumes. What a fork was given is not its own."""
        self._seen()
        evaluations = self._db.query(
            "SELECT COUNT(*) AS evaluations, COALESCE(SUM(gpu_s), 0.0) AS gpu_s FROM records INDEXED BY evaluations_in_outline"
            " WHERE kind = 'evaluation' AND id <> COALESCE((SELECT value FROM meta WHERE name = ?), '')",
            INHERITED,
        )[0]
        calls = self._db.query(
            "SELECT COALESCE(SUM(tokens), 0) AS tokens, COALESCE(SUM(usd), 0.0) AS money_usd FROM calls INDEXED BY calls_by_cost"
        )[0]
        wall = self._db.query("SELECT COALESCE(SUM(last_seen - started), 0.0) AS wall_s FROM sessions")[0]
        return Spent(**dict(evaluations), **dict(calls), **dict(wall))


def unreadable(what: str, error: ValidationError) -> UserError:
    """Say in a line which field of a record is not as this version knows it."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return UserError(
        f"{what} that this version cannot read ({place}: {first['msg']}).", "It is damaged, or of a newer version: read it with that one."
    )


def _diff(before: str, after: str, old: str, new: str) -> str:
    return "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), f"{old}.py", f"{new}.py"))
