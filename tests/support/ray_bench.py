"""A small bench on a cluster of this machine while nodes of it are killed: every row must come, and nothing finished be done again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.bench.elsewhere import Elsewhere
from kernelwright.bench.row import ResultRow
from kernelwright.bench.running import Bench
from kernelwright.bench.settings import BenchSettings
from tests.kernelwright.bench.small_bench import TEXT, small_bench, small_settings
from tests.support.ray_nodes import STATION, Nodes
from tools.cluster import open_ray
from tools.cluster.dispatching import Wanted, open_dispatcher
from tools.hardware import load_sheet


@dataclass(frozen=True)
class Survived:
    """What a bench came to."""

    rows: list[ResultRow]
    """Every row that was written, in order."""
    ended: Counter[str]
    """How often each evaluation was finished by an evaluator, by its key."""
    begun: Counter[str]
    kills: int
    whole: bool

    @property
    def doubled(self) -> int:
        """Rows beyond one a run."""
        return len(self.rows) - len({row.key for row in self.rows})

    @property
    def repeated(self) -> int:
        """Finished evaluations that were asked again."""
        return sum(count - 1 for count in self.ended.values())

    @property
    def lost_in_flight(self) -> int:
        """Evaluations begun and not finished: what the kills cost."""
        return self.begun.total() - self.ended.total()


def write_problems(folder: Path, count: int) -> Path:
    """Write so many operators, none of which has a candidate in common with another."""
    folder.mkdir()
    for number in range(count):
        (folder / f"scaled{number}.py").write_text(TEXT.format(name=f"scaled{number}", body=f"x * {number + 2} + 1"))
    return folder


async def killed_bench(
    nodes: Nodes, suite: Path, out: Path, kills: int, *, elsewhere: bool, seed: int = 0, gap_s: tuple[float, float] = (1.0, 4.0)
) -> Survived:
    """Run a bench while a node that works is killed at a random moment, and a new one started, so many times."""
    settings = small_settings(suite)
    settings = settings.model_copy(update={"run": settings.run.model_copy(update={"evaluator": "ray", "devices": "interpreter"})})
    already = len(nodes.lines())
    bench, close = _bench(settings, suite, out, elsewhere=elsewhere)
    work = asyncio.create_task(bench.run())
    draw, done = random.Random(seed), 0
    while done < kills and not work.done():
        await asyncio.wait({work}, timeout=draw.uniform(*gap_s))
        if work.done():
            break
        await asyncio.to_thread(nodes.kill, draw.choice(nodes.workers))
        nodes.add(cpus=2)
        done += 1
    whole = await work
    await close()
    lines = nodes.lines()[already:]
    begun, ended = (Counter(line.split()[1] for line in lines if line.startswith(word)) for word in ("start ", "end "))
    rows = [ResultRow.model_validate_json(line) for line in (out / "results-1of1.jsonl").read_text().splitlines()]
    return Survived(rows, ended, begun, done, whole)


def _bench(settings: BenchSettings, suite: Path, out: Path, *, elsewhere: bool) -> tuple[Bench, Any]:
    title = load_sheet(settings.run.target).title
    if not elsewhere:
        pool = open_ray("", "interpreter", title, opener=STATION)
        return small_bench(suite, out, settings=settings, pool=pool, in_flight=4), pool.close
    wanted = Wanted(address="", devices="interpreter", title=title, max_autotune=False, compile_s=60.0, opener=STATION)
    asked = open_dispatcher(wanted, out / "answers.sqlite3")
    return small_bench(suite, out, settings=settings, pool=asked, in_flight=4, elsewhere=Elsewhere(settings, asked)), asked.close
