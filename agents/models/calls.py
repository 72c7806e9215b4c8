"""The record of a finished call, and the store that makes a resumed run pay for none twice."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agents.models.messages import Finish, Message, Usage
from tools.records import Record


class CallRecord(Record):
    """One request and its reply. `usage` and `cost_usd` are what a run adds up."""

    role: str
    """`planner`, `coder`, `repairer`, `profiler`, `reviewer`."""
    purpose: str
    """What it was asked for, e.g. a plan id and an attempt."""
    model: str
    messages: tuple[Message, ...]
    """As sent."""
    schema_name: str | None = None
    """Of the structured output that was asked for."""
    parameters: dict[str, float | int] = Field(default_factory=dict)
    """Temperature, seed and output limit as sent."""
    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    retries: int = 0
    notes: tuple[str, ...] = ()


class CallStore(Protocol):
    """Keeps finished calls by key; the store of a run implements it."""

    def get_call(self, key: str) -> str | None:
        """Read the JSON kept under `key`."""

    def put_call(self, key: str, record_json: str) -> None:
        """Keep the JSON of a finished call."""


class MemoryCalls:
    """Keeps calls for the life of the process: for library users and short scripts."""

    def __init__(self) -> None:
        """Start empty."""
        self._calls: dict[str, str] = {}

    def get_call(self, key: str) -> str | None:
        """Read the JSON kept under `key`."""
        return self._calls.get(key)

    def put_call(self, key: str, record_json: str) -> None:
        """Keep the JSON of a finished call."""
        self._calls[key] = record_json

    def __len__(self) -> int:
        """Count the calls."""
        return len(self._calls)
