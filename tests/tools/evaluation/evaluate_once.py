"""Evaluates the request on its input in a pool of its own and prints the verdict; with the argument `hang`, a candidate that never ends."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tools.evaluation import EvaluationRequest, LocalPool

FORWARD = "        out = torch.empty_like(x)"


async def main(request: EvaluationRequest) -> None:
    """Evaluate and print."""
    with tempfile.TemporaryDirectory() as folder:
        pool = LocalPool(Path(folder) / "pool", None, parallel=1)
        print("started", flush=True)  # noqa: T201 - read by the test
        found = await pool.evaluate(request)
        print(found.verdict, found.notes, found.sandbox, found.log)  # noqa: T201 - read by the test
        await pool.close()


if __name__ == "__main__":
    given = EvaluationRequest.model_validate_json(sys.stdin.read())
    source = given.source.replace(FORWARD, "        while True:\n            pass") if sys.argv[1:] == ["hang"] else given.source
    asyncio.run(main(given.model_copy(update={"source": source, "timeout_s": 300.0})))
