"""How fast torch.compile's kernels are as files of their own, beside torch.compile itself.

`python -m benchmarks.kernels.compiled_parents FILE…` needs a GPU. For each operator the file is made, then judged and timed by the whole
evaluator in one session with eager and torch.compile. A row says the verdict, the tier, the three times in microseconds, and
torch.compile's time over the file's; 1 is what is expected.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphs.run.assembly import resolve_target
from tools.errors import UserError
from tools.evaluation.protocol import EvaluatorPool
from tools.evaluation.several import open_local
from tools.hardware.devices import ALL
from tools.inductor import RefusedError, candidate_text
from tools.records import DEFAULT_POLICY, EvaluationRequest, HardwareSheet
from tools.references.reading import read_problem
from tools.references.writing import written_apart

WRITING = 6
"""Operators that Inductor writes for at once."""


async def _row(file: Path, pool: EvaluatorPool, sheet: HardwareSheet, out: Path | None, turn: asyncio.Semaphore) -> dict[str, Any]:
    began = time.monotonic()
    row: dict[str, Any] = {"operator": file.stem}
    async with turn:
        try:
            read = await asyncio.to_thread(read_problem, file, DEFAULT_POLICY)
            written = await asyncio.to_thread(written_apart, read.problem, read.variants, sheet)
            source = candidate_text(read.problem, written)
        except (UserError, RefusedError) as error:
            return row | {"verdict": "REFUSED", "notes": [str(error)]}
    row["written_s"] = round(time.monotonic() - began, 1)
    if out is not None:
        (out / file.name).write_text(source)
    request = EvaluationRequest(
        problem=read.problem, variants=read.variants, candidate=file.stem, source=source, target=sheet, stage="search", timeout_s=60.0
    )
    found = await pool.evaluate(request)
    row |= {"verdict": found.verdict.value, "notes": list(found.notes[:6])}
    if found.timing is not None:
        own = found.timing.candidate.median_us
        compiled, eager = (
            found.timing.baselines[name].median_us if name in found.timing.baselines else None for name in ("compile", "eager")
        )
        row |= {"tier": found.timing.tier.value, "us": own, "compile_us": compiled, "eager_us": eager, "sealed_us": found.timing.sealed_us}
        row["ratio"] = round(compiled / own, 3) if compiled else None
    if found.log and found.timing is None:
        row["log"] = found.log[-1500:]
    return row


async def _rows(files: Sequence[Path], sheet: HardwareSheet, out: Path | None) -> list[dict[str, Any]]:
    turn = asyncio.Semaphore(WRITING)
    with tempfile.TemporaryDirectory() as scratch:
        pool = open_local(Path(scratch), ALL, sheet.title)
        try:
            return list(await asyncio.gather(*(_printed(_row(file, pool, sheet, out, turn)) for file in files)))
        finally:
            await pool.close()


async def _printed(making: Any) -> dict[str, Any]:
    row: dict[str, Any] = await making
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    """Print a row for each operator as it is done, then a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=None, help="folder for the files that are made")
    given = parser.parse_args()
    rows = asyncio.run(_rows(given.files, resolve_target(""), given.out))
    for row in sorted(rows, key=lambda one: one.get("ratio") or 0.0):
        times = " ".join(f"{row[name]:10.1f}" if row.get(name) else f"{'–':>10}" for name in ("eager_us", "compile_us", "us"))
        print(f"{row['operator']:24} {row['verdict']:16} {row.get('tier', '–'):11} {times} {row.get('ratio') or '–'}")


if __name__ == "__main__":
    main()
