"""Examines the problems of a suite as a bench does before it optimises them, and nothing else: what could pass without doing the work.

Usage: python -m benchmarks.kernelbench.admitted SUITE --out ROWS.jsonl [--levels 1,2,3] [--parallel N] [--stop-after S]

Without a GPU problems are examined at small sizes, and as written where that is cheap. Each row is in ROWS at once, and the same command
goes on. Problem files are read in this process: point it only at suites you trust. Exit status 3 where time was up.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from tools.errors import KernelwrightError
from tools.evaluation import LocalPool
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.problems.suite import SuiteItem, open_suite


def main() -> None:
    """Examine what has no row yet, and print what is marked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="seconds")
    options = parser.parse_args()
    kept = KeptRows(options.out)
    done = {row["problem"] for row in kept.rows}
    levels = [f"level{level}/" for level in options.levels.split(",")]
    found = open_suite(options.suite).items
    items = [item for level in levels for item in found if item.name.startswith(level) and item.name not in done]
    late = asyncio.run(_examine(items, kept, options.parallel, time.monotonic() + options.stop_after))
    for row in kept.rows:
        print(f"{row['problem']}: {'; '.join(row['marks'] or row['notes'] or ['nothing is marked'])}")
    sys.exit(3 if late else 0)


async def _examine(items: list[SuiteItem], kept: KeptRows, parallel: int, end: float) -> bool:
    """Keep a row of each; True where time was up first."""
    queue, sheet = iter(items), load_sheet("h200")
    late = False
    with tempfile.TemporaryDirectory() as scratch:
        pool = LocalPool(Path(scratch), parallel=parallel)

        async def worker() -> None:
            nonlocal late
            for item in queue:
                if time.monotonic() > end:
                    late = True
                    return
                began = time.monotonic()
                try:
                    admission = (await pool.baselines(load_problem(item.file), sheet)).admission
                    row: Row = {"examined": admission.examined, "marks": admission.reasons, "notes": admission.notes}
                except KernelwrightError as error:
                    row = {"examined": [], "marks": [], "notes": [error.what]}
                kept.add({"problem": item.name, **row, "seconds": round(time.monotonic() - began, 1)})

        try:
            await asyncio.gather(*(worker() for _ in range(parallel)))
        finally:
            await pool.close()
    return late


if __name__ == "__main__":
    main()
