"""Progress on a terminal: a table of candidates that grows, and below it the best so far, what is left, and what is being done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from graphs.run.context import Services
from kernelwright.screen.board import Row
from kernelwright.screen.lines import Lines, best_in_words
from kernelwright.screen.telling import WARNING
from kernelwright.screen.words import time_in_words

STYLES = {True: "green", False: "red", None: WARNING}
WAITED_S = 2.0
"""A call of the model that takes longer is shown with its seconds."""


class LiveTable(Lines):
    """Draws the round at hand anew while it changes; the rows of a round that is over stay above as they are."""

    def __init__(self, services: Services, console: Console) -> None:
        """Draw for `services`' run on `console`, a terminal."""
        super().__init__(services, console)
        self._spinner = Spinner("dots")
        self._asking = ""
        self._headed = False
        self._live = Live(console=console, get_renderable=self.shown, refresh_per_second=4, transient=True)

    def start(self) -> None:
        """Begin to draw."""
        self._live.start()

    def close(self) -> None:
        """Take away what is drawn; what was printed stays."""
        self._live.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event in, and draw."""
        super().__call__(event)
        self._live.refresh()

    def mention(self, now: float) -> None:
        """Show the call that has been in flight longest."""
        calls = [(now - call.began, call) for call in self.services.team.in_flight()]
        waited, call = max(calls, key=lambda one: one[0], default=(0.0, None))
        slow = call is not None and waited >= WAITED_S
        limit = f"{waited:.0f} s of at most {call.limit_s:.0f} s" if call else ""
        self._asking = f"asking {call.model}{' again' * call.again} as {call.role}, {limit}" if call and slow else ""

    def end_round(self, rows: Sequence[Row]) -> None:
        """Print the rows of a round for good, the first time below their heading; they are drawn no more."""
        first, self._headed, self.board.rows = not self._headed, True, []
        if first:
            self.console.print()
        self.console.print(rows_table(rows, heading=first))

    def shown(self) -> RenderableType:
        """Draw the round at hand and what is said below it."""
        board = self.board
        best = Text.assemble(("best so far  ", "bold"), best_in_words(board.best))
        doing = f"{self._asking or board.doing} · {time.monotonic() - board.since:.0f} s"
        self._spinner.update(text=Text(doing))
        rows: list[RenderableType] = [rows_table(board.rows, heading=not self._headed)] if board.rows else []
        return Group(*([] if self._headed else [Text()]), *rows, Text(), best, self._budget(), self._spinner)

    def _budget(self) -> RenderableType:
        """A bar of what is spent, and what is left in words."""
        share, left = self.board.share(), ", ".join(self.board.left())
        if share is None:
            return Text("no limit is set; stop with Ctrl-C", style="dim")
        line = Table.grid(padding=(0, 2))
        line.add_row(ProgressBar(total=1.0, completed=share, width=30), f"{left} left")
        return line

    def _on_confirming(self, event: dict[str, Any]) -> None:
        """The line below the table says it."""


def rows_table(rows: Sequence[Row], heading: bool) -> Table:
    """Make a table of candidates, each with the reason below it where it is not right."""
    table = Table(box=None, show_header=heading, expand=True, header_style="bold", pad_edge=False)
    table.add_column("round", justify="right", width=5)
    table.add_column("candidate", ratio=1, overflow="fold")
    table.add_column("verdict", width=18)
    table.add_column("time", justify="right", width=15, no_wrap=True)
    table.add_column("gain", justify="right", width=7, no_wrap=True)
    for row in rows:
        taken = time_in_words(row.time_us, row.tier) if row.time_us and row.tier else ""
        gain = Text(f"{row.gain:.2f}x" if row.gain else "", style="bold green" if row.best else "")
        verdict = Text(row.verdict, style=STYLES[row.good] if row.done or row.good is not None else "dim")
        table.add_row(str(row.round), Text(row.what), verdict, taken, gain)
        if row.why:
            table.add_row("", Text(row.why, style=WARNING), "", "", "")
    return table
