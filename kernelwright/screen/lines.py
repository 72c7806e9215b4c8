"""Progress where nobody watches a terminal: one line a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from graphs.run.context import Services
from kernelwright.screen.board import Board, Row
from kernelwright.screen.facts import call_facts
from kernelwright.screen.telling import WARNING, Teller
from kernelwright.screen.trace_views import calls_ended
from kernelwright.screen.words import counted, time_in_words


class Lines(Teller):
    """Says when a round is over how its candidates ended, the best so far, and what is left."""

    def __init__(self, services: Services, console: Console) -> None:
        """Print for `services`' run on `console`."""
        super().__init__(services, console)
        self.board = Board(services)
        self._failed = 0

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event in, and end the round that it ends."""
        self.board(event)
        super().__call__(event)
        if event["event"] == "reviewed" and self.board.over:
            self.end_round(self.board.rows)
            self.warn()

    def end_round(self, rows: Sequence[Row]) -> None:
        """Print the line of a round."""
        said = [counted(len(rows), "candidate") + ": " + ended_in_words(rows), f"best so far {best_in_words(self.board.best)}"]
        left = ", ".join(self.board.left())
        self.say(f"round {self.board.round}", "; ".join([*said, *([f"{left} left"] if left else [])]))

    def at_work(self, now: float) -> str:
        """Say what is being done, and since when."""
        return f"{self.board.doing}, {now - self.board.since:.0f} s"

    def warn(self) -> None:
        """Say that calls of the model failed, where there are more than there were."""
        calls = call_facts(self.services.store) if self.services.team.models else {"failed": 0}
        if calls["failed"] > self._failed:
            self._failed = calls["failed"]
            self.say("model", calls_ended(calls), WARNING)

    def _on_confirming(self, event: dict[str, Any]) -> None:
        self.say("confirm", self.board.doing)


def ended_in_words(rows: Sequence[Row]) -> str:
    """Count how candidates ended, and why those did that are not right: `1 right, 1 wrong (output0: …)`."""
    counts = Counter(row.verdict.partition(",")[0] for row in rows)
    whys = {verdict: next((row.why for row in rows if row.why and row.verdict.startswith(verdict)), "") for verdict in counts}
    return ", ".join(f"{count} {verdict}" + (f" ({whys[verdict]})" if whys[verdict] else "") for verdict, count in counts.items())


def best_in_words(best: Row | None) -> str:
    """Say how fast the best is, whether that was measured, and what it does."""
    if best is None or best.time_us is None or best.tier is None:
        return "none yet"
    return f"{best.gain:.2f}x, {time_in_words(best.time_us, best.tier)}: {best.what}"
