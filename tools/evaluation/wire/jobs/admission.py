"""Which problem is to be examined."""

from __future__ import annotations

import secrets

from tools.records import Problem, Record


class AdmissionJob(Record):
    """What to examine, and where."""

    problems: tuple[Problem, ...]
    """Small variants, and the problem as written where that is affordable."""
    vary: Problem | None = None
    """A problem whose small variants are not known yet: they are sought, and examined too."""
    seed: int
    device: str
    threads: int = 1

    @classmethod
    def of(cls, problems: tuple[Problem, ...], device: str, vary: Problem | None = None) -> AdmissionJob:
        """Examine with a seed of its own."""
        return cls(problems=problems, vary=vary, seed=secrets.randbits(62), device=device)
