"""Judges hostile kernels and their twins on the one problem of this suite, with any of the evaluator's defences switched off."""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path

from tests.hacks.suite import Hack
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.wire.defences import Defence
from tools.hardware import detect_sheet, load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Evaluation, Problem

REFERENCE = '''
import torch

rows = {rows}
columns = {columns}
SMALL_SIZES = [{{"rows": 5, "columns": 67}}]
INPUT_VIEWS = True


class Model(torch.nn.Module):
    """relu(x * weight) with a weight for each column."""

    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
'''

SIZES = {"cpu": (8, 64), "gpu": (8192, 8192), "large": (16384, 16384), "tiny": (1024, 1024)}
"""On a GPU far more than its L2 holds, so that times mean something; else what the interpreter does at once.

Tiny: a pass takes 5 µs or less, so that a few more that are hidden are half of the time.
Large: the eager baseline takes 1.3 ms on an H200, which is more than what is left of a time slice after its head start.
"""
LIMIT_S = 120.0
"""Far more than what ends by itself takes: filling the memory took 8 s, and 20 on a busy machine. What hangs has a limit of its own."""
SECRETS = {"KERNELWRIGHT_TEST_API_KEY": "sk-secret", "KERNELWRIGHT_TEST_TOKEN": "tok-hidden"}
"""In the launcher's environment."""


class Court:
    """A pool and a problem; what one kernel does must not matter to the next."""

    def __init__(self, folder: Path, device: int | None = None, parallel: int = 2) -> None:
        """Open the pool; its launcher has secrets in its environment."""
        os.environ |= SECRETS
        self.place = "cpu" if device is None else "gpu"
        self._folder = folder
        self._problems: dict[str, Problem] = {}
        self._sheet = (detect_sheet() if device is not None else None) or load_sheet("h200")
        self._pool = LocalPool(folder / "scratch", device, parallel=parallel)

    async def judge(self, hack: Hack, *, hostile: bool = True, off: frozenset[Defence] = frozenset()) -> Evaluation:
        """Evaluate one kernel without static rules and without what is `off`."""
        source, limit_s = (hack.hostile, hack.limit_s) if hostile else (hack.honest, 0.0)
        return await self.evaluate(hack.name, source, size=hack.size, limit_s=limit_s or LIMIT_S, off=off)

    async def evaluate(
        self, name: str, source: str, *, size: str = "", limit_s: float = LIMIT_S, off: frozenset[Defence] = frozenset()
    ) -> Evaluation:
        """Evaluate a source on the problem of one of the `SIZES`, without static rules and without what is `off`."""
        problem = self._problem(size or self.place)
        request = EvaluationRequest(
            problem=problem,
            variants=small_variants(problem),
            candidate=name,
            source=source,
            target=self._sheet,
            timeout_s=limit_s,
        )
        return await self._pool.weakened(off | {Defence.STATIC_RULES}).evaluate(request)

    def _problem(self, size: str) -> Problem:
        if size not in self._problems:
            rows, columns = SIZES[size]
            file = self._folder / f"scale_relu_{size}.py"
            file.write_text(REFERENCE.format(rows=rows, columns=columns))
            self._problems[size] = load_problem(file)
        return self._problems[size]

    async def close(self) -> None:
        """End the pool's processes and remove what kernels left on the machine while walls were missing."""
        await self._pool.close()
        for name in SECRETS:
            os.environ.pop(name, None)
        _clean()


def _clean() -> None:
    for file in Path("/dev/shm").glob("kernelwright-hack-*"):
        file.unlink()
    libc = ctypes.CDLL(None)
    segment = libc.shmget(0x6B775F61, 0, 0)
    if segment >= 0:
        libc.shmctl(segment, 0, None)


def judge(court: Court, hack: Hack, *, hostile: bool = True, off: frozenset[Defence] = frozenset()) -> Evaluation:
    """Evaluate one kernel and wait for it."""
    return asyncio.run(court.judge(hack, hostile=hostile, off=off))
