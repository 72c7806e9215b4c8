"""What `kernelwright model` shows: the table before the work, a line for each evaluation, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kernelwright.models.records import OperatorOutcome, Outcome
from kernelwright.models.report import chosen_table, chosen_words, left_alone, not_chosen, operator_rows, parted, summary, time_rows
from kernelwright.screen.hanging import print_hanging
from kernelwright.screen.words import VERDICTS, counted
from tools.models.choosing.chosen import Chosen
from tools.records import Evaluation

LABEL = 18
"""Columns of what a line is about."""


class ModelProgress:
    """Turns events of the work into lines on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        """Begin to count seconds."""
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._began = time.monotonic()

    def __call__(self, event: dict[str, Any]) -> None:
        """Print one event."""
        getattr(self, f"_on_{event['event']}")(event)

    def line(self, label: str, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        since = f"{time.monotonic() - self._began:6.1f}s"
        print_hanging(self._console, Text.assemble((since, "dim"), f" {label:<{LABEL}} "), Text(text))

    def _on_capturing(self, event: dict[str, Any]) -> None:
        where = "the CPU" if event["device"] == "cpu" else "the GPU"
        self.line("model", f"running {event['title']} on {where}, to see which modules take how long")

    def _on_choosing(self, event: dict[str, Any]) -> None:
        self.line("model", f"looking for what could be gained in the {event['capture'].modules} modules of {event['capture'].title}")

    def _on_chosen(self, event: dict[str, Any]) -> None:
        capture, rows = event["capture"], event["rows"]
        whole = ", ".join(f"{name} {us:,.0f} µs" for name, us in capture.us.items())
        self.line("model", f"{capture.title}, {capture.modules} modules; {whole} ({capture.clock})")
        if rounding := ", ".join(sorted({group.autocast for group in capture.groups if group.autocast})):
            self.line("autocast", f"modules are called under torch.autocast to {rounding}; operators are made for that")
        for title, share, reason in left_alone(capture):
            self.line("left alone", f"{title}, {share} of the time: {reason}")
        self._console.print(_table(*chosen_table(rows)))
        print_hanging(self._console, Text(), Text(chosen_words(rows, event["target"])))
        for line in parted(capture):
            self.line("shapes", line)
        self.line("not chosen", not_chosen(rows) or "nothing else")

    def _on_operator(self, event: dict[str, Any]) -> None:
        row: Chosen = event["row"]
        self.line(row.group, f"{row.title}, {counted(row.calls, 'call')}; up to {counted(row.budget, 'evaluation')}")

    def _on_inside(self, event: dict[str, Any]) -> None:
        inner, services, row = event["inner"], event["services"], event["row"]
        if inner["event"] == "evaluated":
            found = services.store.get("evaluation", inner["key"], Evaluation)
            assert found is not None
            speed = f", {found.speedup:.2f}x the best baseline ({found.tier})" if found.time_us and found.speedup else ""
            self.line(row.group, f"{found.candidate[:6]} {VERDICTS[found.verdict]}{speed}")

    def _on_outcome(self, event: dict[str, Any]) -> None:
        outcome: OperatorOutcome = event["outcome"]
        self.line(outcome.name, outcome.reason)

    def _on_proving(self, event: dict[str, Any]) -> None:
        self.line("prove", f"the whole model with {', '.join(event['operators'])}")

    def _on_proven(self, event: dict[str, Any]) -> None:
        self.line("proven", f"{summary(event['outcome'])} Next: under torch.compile.")


def print_outcome(outcome: Outcome, out: Path) -> None:
    """Print what came of the work."""
    console = Console(highlight=False)
    console.rule(f"{escape(outcome.capture.title)} on {escape(outcome.target)}")
    print_hanging(console, Text(), Text(summary(outcome)))
    if outcome.operators:
        console.print(_table(("operator", "by itself", "in the package"), [row[:3] for row in operator_rows(outcome)]))
    if outcome.ratios:
        console.print(_table(("whole model", "speed-up", "95 % interval"), time_rows(outcome)))
    proof = outcome.proof
    if proof.what:
        print_hanging(console, Text("proof:   "), Text(f"{proof.what} {proof.mend}"))
    elif not proof.outputs:
        console.print("proof:   the model gives no tensor that could be compared")
    else:
        worst = max(proof.outputs, key=lambda one: one.error - one.limit)
        said = f"{worst.error:.1e} from {proof.oracle} (the original {worst.own:.1e}, limit {worst.limit:.1e})"
        calls = f"{counted(sum(proof.hits.values()), 'call')} by operators, {sum(proof.misses.values())} by the original"
        print_hanging(console, Text("proof:   "), Text(f"worst output {said}; {calls}"))
    for note in proof.notes:
        print_hanging(console, Text("note:    "), Text(note))
    if outcome.package:
        console.print(f"package: {outcome.package}; use: import {out.name}; {out.name}.apply(model)", soft_wrap=True)
    console.print(f"report:  {out / 'report.html'} and report.md", soft_wrap=True)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="left" if place in (0, len(head) - 1) else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
