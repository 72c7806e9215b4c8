"""Who carries a tool's call out: the run, which has the evaluator and the memory."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tools.records import Plan


class Bench(Protocol):
    """Looks at a source on behalf of whoever writes it."""

    async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
        """Carry out one call of a tool of `tools.py` and tell in words what came of it; asked again, the same is told.

        `given` is the source to look at, the name to look up, or empty, as the tool takes it.
        """


@runtime_checkable
class Equipped(Protocol):
    """A writer that has tools."""

    bench: Bench
    """Who carries out their calls."""


class NoBench:
    """Has no tools to offer: outside of a run."""

    async def use(self, tool: str, given: str, plan: Plan, purpose: str) -> str:
        """Say so."""
        return f"{tool} is not here: there is no run."
