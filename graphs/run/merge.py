"""The one reducer of our states: associative and idempotent, so that a repeated step changes nothing."""

from __future__ import annotations


def merge(left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    """Join two dicts by key; the right one wins."""
    return {**left, **right}
