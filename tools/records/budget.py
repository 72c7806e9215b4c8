"""Budgets and what was spent: one record each, checked at the graph's router. A limit of 0 means none."""

from __future__ import annotations

from pydantic import Field

from tools.records.base import Record


class Spent(Record):
    """What a run has used so far."""

    evaluations: int = 0
    tokens: int = 0
    money_usd: float = 0.0
    wall_s: float = 0.0
    gpu_s: float = 0.0


class Budget(Record):
    """Limits of a run; reaching any of them ends it well, with the best confirmed candidate delivered."""

    evaluations: int = Field(default=16, ge=0)
    tokens: int = Field(default=0, ge=0)
    money_usd: float = Field(default=0.0, ge=0)
    wall_s: float = Field(default=0.0, ge=0)
    gpu_s: float = Field(default=0.0, ge=0)

    def exhausted(self, spent: Spent) -> str | None:
        """Name the first limit that `spent` has reached, or None."""
        for name in type(self).model_fields:
            limit = getattr(self, name)
            if limit and getattr(spent, name) >= limit:
                return name
        return None
