"""Evaluates one candidate in a pool of its own and prints the verdict; with the argument `hang`, one that never ends."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.tools.evaluation.conftest import DOUBLE, KERNEL
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants


async def main(*, hang: bool) -> None:
    """Evaluate and print."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "double.py"
        file.write_text(DOUBLE)
        problem = load_problem(file)
        source = KERNEL.replace("        out = torch.empty_like(x)", "        while True:\n            pass") if hang else KERNEL
        pool = LocalPool(Path(folder) / "pool", None, parallel=1)
        request = EvaluationRequest(
            problem=problem, variants=small_variants(problem), candidate="c", source=source, target=load_sheet("h200"), timeout_s=300
        )
        print("started", flush=True)  # noqa: T201 - read by the test
        found = await pool.evaluate(request)
        print(found.verdict, found.notes, found.sandbox, found.log)  # noqa: T201 - read by the test
        await pool.close()


if __name__ == "__main__":
    asyncio.run(main(hang=sys.argv[1:] == ["hang"]))
