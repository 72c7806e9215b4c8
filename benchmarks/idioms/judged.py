"""Judges and times every idiom of `data/idioms/` beside eager PyTorch, and writes one JSON file.

python -m benchmarks.idioms.judged --out idioms.json [--target h200] [--only NAME …]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.evaluation.protocol import EvaluatorPool
from tools.evaluation.several import open_local
from tools.hardware import load_sheet
from tools.idioms.idiom import Idiom, all_idioms
from tools.problems import load_problem, small_variants
from tools.records import EvaluationRequest, HardwareSheet
from tools.reports.evaluation import report

COMPILE_S = 15.0
"""How long torch.compile of a reference is waited for: it joins where it comes."""


def main() -> None:
    """Judge, time and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--only", nargs="*", default=())
    given = parser.parse_args()
    chosen = [one for one in all_idioms() if not given.only or one.name in given.only]
    asyncio.run(_judged(chosen, load_sheet(given.target), given.out))


async def _judged(idioms: list[Idiom], sheet: HardwareSheet, out: Path) -> None:
    """Judge them side by side; the file is written anew after each, so that what is cut short leaves what it found."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        pool = open_local(Path(scratch), title=sheet.title, compile_s=COMPILE_S)
        for row in asyncio.as_completed([_row(pool, idiom, sheet) for idiom in idioms]):
            rows.append(await row)
            _write(out, rows)
        await pool.close()


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    out.write_text(json.dumps(rows, indent=1))
    last = rows[-1]
    time_us, speedup = last["time_us"] or 0.0, last["speedup"] or 0.0
    print(f"{last['name']:26} {last['verdict']:14} {time_us:10.1f} µs {speedup:6.2f}x {last['seconds']:6.1f} s", flush=True)


async def _row(pool: EvaluatorPool, idiom: Idiom, sheet: HardwareSheet) -> dict[str, Any]:
    began = time.monotonic()
    problem = await asyncio.to_thread(load_problem, idiom.folder / "reference.py")
    source = (idiom.folder / "kernel.py").read_text(encoding="utf-8")
    found = await pool.evaluate(
        EvaluationRequest(problem=problem, variants=small_variants(problem), candidate=idiom.name, source=source, target=sheet)
    )
    baselines = {name: one.median_us for name, one in found.timing.baselines.items()} if found.timing else {}
    return {
        "name": idiom.name,
        "verdict": found.verdict.value,
        "tier": found.tier.value if found.tier else None,
        "time_us": found.time_us,
        "speedup": found.speedup,
        "baselines_us": baselines,
        "unsealed": found.timing.unsealed if found.timing else "",
        "device": found.timing.device if found.timing else sheet.title,
        "versions": found.versions,
        "report": report(problem, found, sheet, source),
        "seconds": time.monotonic() - began,
    }


if __name__ == "__main__":
    main()
