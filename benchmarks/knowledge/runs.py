"""Real runs of the graph with real memory on recorded times: whether predictions come true with experience, and what memory is worth.

Graph, built-in planner, coder, reviewer and the knowledge base are the product's own; `benchmarks.knowledge.recorded_times` stands for the
evaluator and holds the coder to steps whose times were recorded. First `python -m benchmarks.knowledge.recorded_times WORK`, once; then
  python -m benchmarks.knowledge.runs calibrate WORK OUT [--runs 200]
  python -m benchmarks.knowledge.runs worth WORK OUT [--orders 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from benchmarks.knowledge.recorded_times import TARGET, Recorded, RecordedCoder, RecordedPool, load_recorded
from graphs.optimize.execute import execute
from graphs.run.assembly import Shared, assemble, start_run
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from kernelwright.bench.borrowed import Borrowed
from kernelwright.bench.reading import facts_of
from kernelwright.bench.row import ResultRow
from kernelwright.bench.statistics import interval
from kernelwright.cli.knowledge.worth import page
from kernelwright.worth.calibration_plot import draw, draw_trend, in_words, trend_in_words
from kernelwright.worth.records import WorthReport
from kernelwright.worth.report import report_worth
from knowledge.learning.calibration import by_runs, compare
from knowledge.learning.replay import Experience
from knowledge.protocol import FrozenMemory, Memory, NoMemory
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tools.records import Budget

SEARCHES = ("greedy", "evolution", "tree", "random")
"""Methods that the calibration's runs take in turns, so that repeated problems are not searched alike."""
Others: TypeAlias = Callable[[Recorded, Sequence[Recorded]], list[Recorded]]
"""What may be learnt on before a problem is done."""
BLOCK = 20
"""Runs of one point of the trend."""
SHOWN = 20
"""Runs at each end of the history whose predictions are drawn one by one."""


@dataclass(frozen=True)
class Bench:
    """What all runs have in common."""

    tables: dict[str, Recorded]
    pool: RecordedPool
    home: Path
    budget: int

    async def run(self, table: Recorded, name: str, memory: Memory, *, arm: str, search: str = "greedy", seed: int = 0) -> ResultRow:
        """Do one run and say what came of it."""
        began = time.monotonic()
        settings = RunSettings(
            target=TARGET,
            budget=Budget(evaluations=self.budget),
            search=search,
            search_settings=SearchSettings(seed=seed, patience=0),
            memory=not isinstance(memory, NoMemory),
            counters="never",
        )
        store = start_run(table.problem, settings, self.home, name)
        try:
            services = assemble(store, Shared(pool=Borrowed(self.pool), memory=memory, variants=()))
            services = replace(services, team=replace(services.team, coder=RecordedCoder(self.tables)))
            await execute(services, lambda event: None)
            facts = facts_of(services)
        finally:
            store.close()
        about = {"bench": "recorded", "problem": table.problem.name, "level": 0, "number": 0, "arm": arm, "seed": seed, "basis": "measured"}
        return ResultRow.model_validate({**about, **facts, "seconds": time.monotonic() - began})


def main() -> None:
    """Do what is asked for."""
    given = _arguments()
    tables = load_recorded()
    given.out.mkdir(parents=True, exist_ok=True)
    pool = RecordedPool(tables, given.work / "compiled.jsonl")
    bench = Bench(tables, pool, given.out / "home", given.evaluations)
    asyncio.run(calibrate(bench, given) if given.what == "calibrate" else worth(bench, given))


async def calibrate(bench: Bench, given: argparse.Namespace) -> None:
    """Many runs that share one learning memory; write what they predicted and what came of it."""
    memory = KnowledgeBase(given.out / "knowledge", open_embedder(given.embedder))
    order = random.Random(given.seed)
    left: list[Recorded] = []
    for number in range(given.runs):
        if not left:
            left = order.sample(list(bench.tables.values()), len(bench.tables))
        table, search = left.pop(), SEARCHES[number % len(SEARCHES)]
        row = await bench.run(table, f"run-{number:04d}", memory, arm=search, search=search, seed=number)
        with (given.out / "rows.jsonl").open("a") as file:
            file.write(row.model_dump_json() + "\n")
        if number % 10 == 9:
            print(f"{number + 1} runs, last {row.problem} by {search} in {row.seconds:.1f} s", flush=True)
            _write_calibration(memory, given.out)
    _write_calibration(memory, given.out)
    memory.close()


def _write_calibration(memory: KnowledgeBase, out: Path) -> None:
    seen = memory.experiences()
    fresh = _first_tries(seen)
    lines = [in_words(memory.calibration()), trend_in_words(by_runs(seen, BLOCK))]
    lines += ["", "| runs | all plans with a prediction | of these, actions new to their situation |", "|---|---|---|"]
    new = {stretch.first: stretch.errors for stretch in by_runs(fresh, BLOCK, names=_runs(seen))}
    for stretch in by_runs(seen, BLOCK):
        lines.append(f"| {stretch.first}–{stretch.last} | {_cell(stretch.errors)} | {_cell(new.get(stretch.first, ()))} |")
    (out / "calibration.md").write_text("\n".join(lines) + "\n")
    ends = {*_runs(seen)[:SHOWN], *_runs(seen)[-SHOWN:]}
    shown = [one for one in seen if one.outcome.run in ends]
    (out / "calibration.svg").write_text(draw(shown, compare(shown, [])))
    (out / "trend.svg").write_text(draw_trend(by_runs(seen, BLOCK)))
    new_ones = {one.seq for one in fresh}
    rows = [{"run": one.outcome.run, "predicted": one.outcome.predicted_gain, "gain": one.gain, "new": one.seq in new_ones} for one in seen]
    (out / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _runs(seen: Sequence[Experience]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.outcome.run for one in seen))


def _first_tries(seen: Sequence[Experience]) -> list[Experience]:
    """Outcomes of actions that nobody had tried before in their situation."""
    known: set[str] = set()
    fresh = []
    for one in seen:
        key = f"{one.outcome.situation.summary} {one.outcome.action.id}"
        if key not in known:
            fresh.append(one)
        known.add(key)
    return fresh


def _cell(errors: Sequence[float]) -> str:
    """By what factor predictions are off, with its interval, and how many there are."""
    if not errors:
        return "–"
    import math

    sizes = [abs(error) for error in errors]
    band = interval(sizes)
    said = f" ({math.exp(band[0]):.2f}–{math.exp(band[1]):.2f})" if band else ""
    return f"×{math.exp(sum(sizes) / len(sizes)):.2f}{said}, {len(errors)}"


async def worth(bench: Bench, given: argparse.Namespace) -> None:
    """Every problem without memory, with the seeds, and with what was learnt on others: of its family too, and of other families alone."""
    tables = list(bench.tables.values())
    cold: list[ResultRow] = []
    seeds = FrozenMemory(_base(given, given.out / "seeds"))
    for table in tables:
        for arm, memory in (("greedy/off/builtin", NoMemory()), ("greedy/frozen/builtin", seeds)):
            row = await bench.run(table, f"{table.problem.name}-{arm.split('/')[1]}", memory, arm=arm)
            # greedy search and the built-in agents draw nothing: every seed is the same run
            cold += [row.model_copy(update={"seed": order}) for order in range(given.orders)]
    print(f"cold: {len(tables)} problems", flush=True)
    for title, others in (("within", _within), ("outside", _outside)):
        await _warm(bench, given, title, others, cold)


async def _warm(bench: Bench, given: argparse.Namespace, title: str, others: Others, cold: Sequence[ResultRow]) -> None:
    """Learn on what `others` leaves for each problem, in several orders, do the problem with what was learnt, frozen, and report."""
    tables = list(bench.tables.values())
    learning: list[ResultRow] = []
    warm: list[ResultRow] = []
    groups: dict[tuple[str, ...], list[Recorded]] = {}
    for table in tables:
        chosen = tuple(sorted(one.problem.name for one in others(table, tables)))
        if chosen:
            groups.setdefault(chosen, []).append(table)
    for place, (names, held) in enumerate(groups.items()):
        for order in range(given.orders):
            memory = _base(given, given.out / f"{title}-{place}-{order}")
            chosen_tables = [table for table in tables if table.problem.name in names]
            random.Random(f"{title} {place} {order}").shuffle(chosen_tables)
            for table in chosen_tables:
                run = f"{title}-{place}-{order}-learn-{table.problem.name}"
                learning.append(await bench.run(table, run, memory, arm="greedy/learning/builtin", seed=order))
            await memory.update()
            for table in held:
                run = f"{title}-{place}-{order}-{table.problem.name}"
                warm.append(await bench.run(table, run, FrozenMemory(memory), arm="greedy/frozen/builtin", seed=order))
            memory.close()
        done = {row.problem for row in warm}
        known = learning if title == "within" else []
        report = report_worth([row for row in cold if row.problem in done], warm, known, given.evaluations, bench.home / "runs")
        _write_worth(given.out, title, report)
        print(f"{title}: {place + 1} of {len(groups)} groups", flush=True)


def _within(held: Recorded, tables: Sequence[Recorded]) -> list[Recorded]:
    """The other problems of the held-out one's first family."""
    mine = held.problem.work.families[:1]
    return [table for table in tables if table is not held and table.problem.work.families[:1] == mine]


def _outside(held: Recorded, tables: Sequence[Recorded]) -> list[Recorded]:
    """The problems that share no family with the held-out one."""
    mine = set(held.problem.work.families)
    return [table for table in tables if not mine & set(table.problem.work.families)]


def _base(given: argparse.Namespace, folder: Path) -> KnowledgeBase:
    return KnowledgeBase(folder, open_embedder(given.embedder))


def _write_worth(out: Path, title: str, report: WorthReport) -> None:
    (out / f"worth-{title}.json").write_text(report.model_dump_json(indent=1))
    (out / f"worth-{title}.md").write_text(page(report))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("calibrate", "worth"))
    parser.add_argument("work", type=Path, help="folder of benchmarks.knowledge.recorded_times")
    parser.add_argument("out", type=Path, help="folder of results, new or empty")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=16)
    parser.add_argument("--orders", type=int, default=3, help="orders in which problems are learnt on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--embedder", default="default")
    given = parser.parse_args()
    if given.out.exists() and (not given.out.is_dir() or any(given.out.iterdir())):
        parser.error(f"{given.out} is not empty: what was learnt there would count as learnt now")
    return given


if __name__ == "__main__":
    main()
