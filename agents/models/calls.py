"""The record of a call, finished or not, and the store that makes a resumed run pay for none twice."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, TypeVar

from pydantic import Field

from agents.models.messages import Finish, Message, ToolCall, Usage
from tools.records import Record
from tools.tracing import RunStore

R = TypeVar("R", bound=Record)

Hindrance: TypeAlias = Literal["unavailable", "budget"]


class CallRecord(Record):
    """One request and its reply. `usage` and `cost_usd` are what a run adds up."""

    role: str
    """`planner`, `coder`, `repairer`, `profiler`, `reviewer`."""
    purpose: str
    """What it was asked for, e.g. a plan id and an attempt."""
    model: str
    server: str = ""
    """Base URL it was asked at."""
    messages: tuple[Message, ...]
    """As sent."""
    turns: int = 0
    """Messages as they were asked, before anything was worked around; 0 in records of older versions, which sent as many."""
    schema_name: str | None = None
    """Of the structured output that was asked for."""
    parameters: dict[str, float | int] = Field(default_factory=dict)
    """Temperature, seed and output limit as sent."""
    text: str
    odds: dict[str, float] = Field(default_factory=dict)
    """Log-probabilities of the first token and its alternatives, where they were asked for and given."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that the reply calls."""
    finish: Finish = "stop"
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    retries: int = 0
    notes: tuple[str, ...] = ()
    source: Literal["server", "cache"] = "server"
    """`cache`: another run had asked the same; `usage` and `cost_usd` are then zero, as nothing was paid."""
    saved: Usage | None = None
    """What the other run's call had used."""
    saved_usd: float | None = None


class Trouble(Record):
    """A call that led to nothing: kept so that a run can be explained and repeated, never so that it is not tried again."""

    role: str
    purpose: str
    model: str
    turns: int
    """Messages it was asked with."""
    kind: Hindrance
    what: str
    mend: str


class Findings(Record):
    """What a server turned out to lack for a model."""

    model: str
    server: str
    lacks: tuple[str, ...]
    """Names of `agents.models.request.Feature`."""


class CallStore(Protocol):
    """Keeps finished calls by key, and a few records beside them; the store of a run implements it."""

    def get_call(self, key: str) -> str | None:
        """Read the JSON kept under `key`."""

    def put_call(self, key: str, record_json: str) -> None:
        """Keep the JSON of a finished call."""

    def get(self, kind: str, name: str, type_: type[R]) -> R | None:
        """Read the record kept under (`kind`, `name`)."""

    def put(self, kind: str, name: str, record: Record) -> None:
        """Keep `record` under (`kind`, `name`), instead of one that is there."""


class MemoryCalls:
    """Keeps calls for the life of the process: for library users and short scripts."""

    def __init__(self) -> None:
        """Start empty."""
        self._calls: dict[str, str] = {}
        self._records: dict[tuple[str, str], str] = {}

    def get_call(self, key: str) -> str | None:
        """Read the JSON kept under `key`."""
        return self._calls.get(key)

    def put_call(self, key: str, record_json: str) -> None:
        """Keep the JSON of a finished call."""
        self._calls[key] = record_json

    def get(self, kind: str, name: str, type_: type[R]) -> R | None:
        """Read the record kept under (`kind`, `name`)."""
        found = self._records.get((kind, name))
        return None if found is None else type_.model_validate_json(found)

    def put(self, kind: str, name: str, record: Record) -> None:
        """Keep `record` under (`kind`, `name`)."""
        self._records[kind, name] = record.model_dump_json()

    def __len__(self) -> int:
        """Count the calls."""
        return len(self._calls)


def recorded_calls(store: RunStore) -> dict[str, CallRecord]:
    """Every finished call of a run by its key, oldest first."""
    # older versions kept a note on the server among the calls
    read = {fields.pop("key"): fields for fields in store.calls() if "messages" in fields}
    return {key: CallRecord.model_validate(fields) for key, fields in read.items()}
