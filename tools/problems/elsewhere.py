"""What another process made of problems: making it again would run their references."""

from __future__ import annotations

from tools.records import Problem

MOST = 256
"""Problems that are kept; then it begins anew."""


class Elsewhere:
    """Problems that were made of others, e.g. at other sizes, by the record of the one they were made of."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, tuple[Problem, ...]] = {}

    def keep(self, problem: Problem, made: tuple[Problem, ...]) -> None:
        """Keep what another process made of `problem`."""
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[problem.model_dump_json()] = made

    def of(self, problem: Problem) -> tuple[Problem, ...] | None:
        """Give what was made of `problem`; None where it would have to be made here."""
        return self._known.get(problem.model_dump_json())
