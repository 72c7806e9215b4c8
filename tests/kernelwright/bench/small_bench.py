"""A bench of three small operators, judged by a pool that gives every candidate a time drawn from its text: for tests of the bench itself.

Usage: python -m tests.kernelwright.bench.small_bench SUITE OUT SHARD DELAY [SEARCHES]; a process that a test can kill.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from agents import TeamSettings
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from kernelwright.bench.files import BenchFolder
from kernelwright.bench.loading import Loaded, ProblemLoader, load_now
from kernelwright.bench.running import Bench
from kernelwright.bench.settings import BenchSettings
from tests.kernelwright.bench.rows import HEADER
from tests.support.loop import TextPool
from tools.evaluation.protocol import EvaluatorPool
from tools.problems.suite import open_suite, shard
from tools.records import Budget, Evaluation, EvaluationRequest, PrecisionPolicy, content_hash

OPERATORS = {
    "scaled": "x * 2 + 1",
    "rows": "torch.softmax(x, dim=-1)",
    "summed": "(x * x).sum(dim=-1)",
}

TEXT = "import torch\n\nN, M = 64, 128\n\ndef {name}(x):\n    return {body}\n\ndef example_inputs():\n    return [torch.randn(N, M)]\n"


def write_suite(folder: Path) -> Path:
    """Write the three operators."""
    folder.mkdir()
    for name, body in OPERATORS.items():
        (folder / f"{name}.py").write_text(TEXT.format(name=name, body=body))
    return folder


class HereLoader:
    """Reads in this process, which has torch already: a process of its own takes seconds to start."""

    async def load(self, file: Path, policy: PrecisionPolicy) -> Loaded:
        """Read one file."""
        return load_now(file, policy)

    def close(self) -> None:
        """Nothing was started."""


class DrawnPool(TextPool):
    """Passes every candidate; its estimated time, from 10 to 89 µs, follows from its text alone."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Draw the time."""
        time_us = 10 + int(content_hash(request.source), 16) % 80
        judged = request.model_copy(update={"source": f"# time: {time_us}\n{request.source}"})
        return await super().evaluate(judged)


def small_settings(suite: Path, searches: tuple[str, ...] = ("greedy",), seeds: int = 1) -> BenchSettings:
    """Two evaluations a run, one after the other, since a row tells in which order they ended; built-in agents, no memory."""
    run = RunSettings(target="h200", budget=Budget(evaluations=2), search_settings=SearchSettings(batch=1))
    return BenchSettings(suite=str(suite), kind="folder", run=run, searches=searches, agents={"builtin": TeamSettings()}, seeds=seeds)


def small_bench(
    suite: Path,
    out: Path,
    part: str = "",
    delay: float = 0.0,
    settings: BenchSettings | None = None,
    loader: ProblemLoader | None = None,
    pool: EvaluatorPool | None = None,
    **more: Any,
) -> Bench:
    """Claim the folder and plan the work."""
    settings = settings or small_settings(suite)
    place = BenchFolder(out, part)
    place.claim(settings, HEADER, resume=True)
    items = shard(open_suite(suite).items, part)
    pool = pool or DrawnPool(out / "evaluations.log", delay)
    return Bench(settings, items, place, pool, **{"in_flight": 1, **more}, loader=loader or HereLoader())


if __name__ == "__main__":
    asyncio.run(small_bench(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])).run())
