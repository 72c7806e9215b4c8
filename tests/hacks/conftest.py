"""One pool for all hostile kernels: what one of them does must not matter to the next."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants
from tools.records import Evaluation

REFERENCE = '''
import torch

rows = 512
columns = 1024
SMALL_SIZES = [{"rows": 5, "columns": 67}, {"rows": 4, "columns": 32}]


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


class Court:
    """Judges sources against the one problem of this suite."""

    def __init__(self, folder: Path) -> None:
        """Open the problem and a pool of the interpreter."""
        file = folder / "scale_relu.py"
        file.write_text(REFERENCE)
        self._problem = load_problem(file)
        self._variants = small_variants(self._problem)
        self.pool = LocalPool(folder / "scratch", None, parallel=2)

    def judge(self, source: str, timeout_s: float = 20.0) -> Evaluation:
        """Evaluate one source."""
        request = EvaluationRequest(
            problem=self._problem,
            variants=self._variants,
            candidate="hack",
            source=source,
            target=load_sheet("h200"),
            timeout_s=timeout_s,
        )
        return asyncio.run(self.pool.evaluate(request))


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """A court whose launcher has a key in its environment."""
    os.environ["KERNELWRIGHT_TEST_API_KEY"] = "sk-secret"
    made = Court(tmp_path_factory.mktemp("hacks"))
    yield made
    asyncio.run(made.pool.close())
    del os.environ["KERNELWRIGHT_TEST_API_KEY"]
