"""A span before it is anybody's: what happened when, inside of what, with which attributes; and ids that a resumed run gives again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.tracing import RunStore
from tools.tracing.secrets import without_secrets

Value = str | int | float | bool | list[str]


@dataclass(frozen=True)
class SpanFacts:
    """One span that has ended."""

    name: str
    id: int
    """64 bits."""
    parent: int
    """Id of the span it lies in; 0 for the run's own."""
    started: float
    """Seconds since the epoch."""
    ended: float
    attributes: Mapping[str, Value]
    error: str = ""
    """What it failed with; empty where it did not."""
    events: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Attributes by name, at its end."""
    asks_server: bool = False
    """Whether it is a request to another service."""


def trace_id(store: RunStore) -> int:
    """The 128 bits by which a run's spans are joined, however often it is resumed or sent."""
    return _number(16, store.meta("run"), store.meta("created"))


def span_id(store: RunStore, kind: str, name: str | int) -> int:
    """The 64 bits of one part of a run."""
    return _number(8, store.meta("run"), store.meta("created"), kind, str(name))


def cleaned(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    """Leave out what is not known, and secrets."""
    return {name: without_secrets(value) if isinstance(value, str) else value for name, value in attributes.items() if value is not None}


def _number(width: int, *parts: str) -> int:
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    # no id may be zero
    return int.from_bytes(digest[:width], "big") or 1
