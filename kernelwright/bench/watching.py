"""Sees a bench through: progress while it works, its report at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from graphs.run.evaluators import open_shared, spool_folder
from kernelwright.bench.absence import tell_of_absence
from kernelwright.bench.elsewhere import Elsewhere, open_elsewhere
from kernelwright.bench.files import BenchFolder
from kernelwright.bench.header import read_header
from kernelwright.bench.jobs import Job
from kernelwright.bench.merging import gather
from kernelwright.bench.pages import number, write_report
from kernelwright.bench.pulse import Pulse
from kernelwright.bench.report import Report
from kernelwright.bench.row import UNDONE, ResultRow, Status
from kernelwright.bench.running import Bench
from kernelwright.bench.settings import BenchSettings
from kernelwright.screen.words import counted
from tools.cluster import RayPool
from tools.errors import INTERRUPTED, UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.problems.suite import SuiteItem
from tools.spool import Spool


def see_through(
    settings: BenchSettings,
    items: Sequence[SuiteItem],
    folder: Path,
    shard: str,
    command: str,
    *,
    resume: bool,
    in_flight: int,
    stop_after_s: float,
    as_json: bool,
    elsewhere: bool = False,
) -> tuple[bool, str]:
    """Run or continue a shard, write the report on its folder, print the summary; with `elsewhere` runs are tasks on a Ray cluster.

    Returns whether the shard is done, and where every run of it failed a line that says so, else an empty one.
    """
    place, header = BenchFolder(folder, shard), read_header(command)
    place.claim(settings, header, resume=resume)
    runs: Elsewhere | None = None
    pool: EvaluatorPool | None
    if elsewhere:
        runs, pool = open_elsewhere(settings, folder / "scratch" / place.tag)
    else:
        pool = open_shared(settings.run, folder / "scratch" / place.tag, max_autotune=settings.max_autotune)
    if pool is None and settings.max_autotune:
        raise UserError("Workers at a spool do not time max-autotune.", "Leave --max-autotune out, or evaluate on this machine.")
    watcher = Watcher(Console(stderr=True, highlight=False, quiet=as_json))
    bench = Bench(settings, items, place, pool, in_flight=in_flight, elsewhere=runs, code=header.code, listener=watcher)
    watcher.open(bench, place, pool.name if pool else settings.run.evaluator)
    if isinstance(pool, RayPool):
        pool.listener = watcher.say

    async def work() -> bool:
        spool = spool_folder(settings.run.evaluator)
        telling = asyncio.create_task(watcher.tell(Spool(spool) if spool else None))
        try:
            return await bench.run(stop_after_s)
        finally:
            telling.cancel()
            if pool is not None:
                await pool.close()

    try:
        with watcher.progress:
            whole = asyncio.run(work())
    except (KeyboardInterrupt, asyncio.CancelledError):
        watcher.say("stopped. Finished rows are kept, runs in flight go on where they were: repeat the command.")
        raise SystemExit(INTERRUPTED) from None
    if not whole:
        watcher.say("time is up. Repeat the command to go on.")
    rows = list(place.rows().values())
    if rows:
        print_summary(write_report(gather([folder]), folder), as_json=as_json, tables=not failed_all(rows))
    return whole, failed_all(rows)


def failed_all(rows: Sequence[ResultRow]) -> str:
    """Say that every run failed, with the first one's reason, and what to do; empty where one came to something."""
    if not rows or any(row.status not in UNDONE for row in rows):
        return ""
    count = "The only run" if len(rows) == 1 else f"Every one of the {len(rows)} runs"
    return f"{count} failed; {rows[0].problem}: {rows[0].reason}\n  Mend that and repeat the command: it tries them again."


class Watcher:
    """Turns a bench's events into one line a finished run, and a bar with what is in flight."""

    def __init__(self, console: Console) -> None:
        """Print on `console`; the bar is drawn on a terminal only."""
        self._console = console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal or console.quiet)
        self._bar = self.progress.add_task("bench")
        self._began = time.monotonic()
        self._inside: dict[str, str] = {}
        self._pulse = Pulse(self.say)

    def open(self, bench: Bench, place: BenchFolder, pool: str) -> None:
        """Say what is about to be done."""
        total, left = len(bench.jobs), len(bench.left)
        arms = sorted({job.arm.name for job in bench.jobs})
        self.progress.update(self._bar, total=total, completed=total - left)
        done = f", {total - left} done already" if left < total else ""
        # an arm's name is explained where it is met first
        said = f"{len(arms)} arms: search/memory/agents" if len(arms) > 1 else f"search/memory/agents: {', '.join(arms)}"
        shard = "" if place.is_whole else f" in shard {place.tag}"
        self.say(f"{counted(total, 'run')}{shard} ({said}){done}; evaluator {pool}; results in {place.folder}")

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(f"[dim]{time.monotonic() - self._began:7.1f}s[/] {escape(text)}", soft_wrap=True)
        self._pulse.told()

    async def tell(self, spool: Spool | None) -> None:
        """Say in a line what was answered whenever nothing else has been said for a while, and that nobody works at a spool."""
        absence = (tell_of_absence(spool, self.say),) if spool else ()
        await asyncio.gather(self._pulse.watch(lambda: len(self._inside)), *absence)

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event."""
        job: Job = event["job"]
        if event["event"] == "row":
            self._inside.pop(job.key, None)
            self.progress.advance(self._bar, 0 if event["again"] else 1)
            self.say(f"{line_of(event['row'])}{' (once more, alone)' if event['again'] else ''}")
        else:
            self._pulse.note(_doing(event))
            done = self._inside.get(job.key, "")
            self._inside[job.key] = f"{job.item.name} {_doing(event)}".strip() or done
        self.progress.update(self._bar, description="; ".join(text[:44] for text in self._inside.values()) or "bench")


def line_of(row: ResultRow) -> str:
    """One finished run in a line."""
    who = f"{row.problem:<40} {row.arm} s{row.seed}"
    if row.status is Status.KERNEL:
        figures = ", ".join(f"{value:.2f}x {name}" for name, (value, _, _) in row.speedups.items())
        return f"{who}  kernel: {figures} ({row.tier}); {row.spent.evaluations} evaluations, {row.spent.gpu_s:.0f} GPU s"
    return f"{who}  {row.status}: {row.reason[:160]}"


def _doing(event: dict[str, Any]) -> str:
    return "reading" if event["event"] == "started" else str(event["inner"]["event"])


def print_summary(report: Report, *, as_json: bool, tables: bool = True) -> None:
    """Print what a report says in short, or all of it as JSON; without `tables`, where nothing was timed, only where the report is."""
    if as_json:
        print(report.model_dump_json(indent=1))
        return
    from rich.table import Column, Table

    console = Console(highlight=False)
    for section in report.sections if tables else ():
        names = ("problems", "n", "right", "kernels", *(f"× {name}" for name in section.against), "evals", "GPU s")
        for arm in section.arms:
            title = f"{arm.arm}: geometric means, {section.basis}"
            table = Table(*(Column(name, no_wrap=True) for name in names), title=title, title_justify="left", box=None)
            for group in arm.groups:
                counts = (str(count) for count in (group.rows, group.right, group.delivered))
                means = (number(one.geomean, 2) for one in group.means)
                table.add_row(group.title, *counts, *means, number(group.evaluations), number(group.gpu_s, 0))
            console.print(table)
    for path in report.files:
        console.print(f"report:  {path}", soft_wrap=True)
