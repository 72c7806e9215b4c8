"""Judges a corpus of honest kernels with every defence on: none may be accused.

Usage: python -m benchmarks.honest_corpus [--gpu] [--each N] [--parallel N] [--liger DIR] [--fla DIR] [--triton DIR] [--out FILE.json]

--liger and --fla name folders that hold the packages `liger_kernel` and `fla` (below the Python environment, so that sandboxes
show them); --triton the folder of Triton's tutorials. Nothing of theirs is kept. Exit status 1 where a kernel was accused.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.honest.corpus import Honest, by_hand, foreign, generated, tutorials
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.problems import small_variants

ACCUSED = ("CHEATED", "IMPOSSIBLE_TIME", "TIMING_INCONSISTENT", "UNSTABLE")
"""Verdicts that say something of the author; `WRONG` on an honest kernel is to be looked at, and is listed too."""


def main() -> None:
    """Judge all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--each", type=int, default=8, help="generated kernels for each sample operator")
    parser.add_argument("--parallel", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--liger", type=Path)
    parser.add_argument("--fla", type=Path)
    parser.add_argument("--triton", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("names", nargs="*", help="only these sample operators for generated kernels")
    options = parser.parse_args()
    rows = asyncio.run(_judge(options, list(_corpus(options))))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    raise SystemExit(1 if any(row["verdict"] in ACCUSED for row in rows) else 0)


def _corpus(options: argparse.Namespace) -> Iterator[Honest]:
    yield from by_hand(gpu=options.gpu)
    yield from generated(options.each, tuple(options.names))
    for library, place in (("liger", options.liger), ("fla", options.fla)):
        if place:
            yield from foreign(library, place)
    if options.triton:
        yield from tutorials(options.triton)


async def _judge(options: argparse.Namespace, corpus: list[Honest]) -> list[dict[str, Any]]:
    sheet = (detect_sheet() if options.gpu else None) or load_sheet("h200")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        pool = LocalPool(folder / "scratch", first_device() if options.gpu else None, parallel=options.parallel)

        async def one(kernel: Honest) -> None:
            problem = await asyncio.to_thread(kernel.load, folder)
            request = EvaluationRequest(
                problem=problem,
                variants=small_variants(problem),
                candidate=kernel.name,
                source=kernel.source,
                target=sheet,
                timeout_s=options.timeout,
            )
            found = await pool.evaluate(request)
            row = {"name": kernel.name, "origin": kernel.origin, "verdict": found.verdict, "rule": found.rule, "notes": found.notes[:3]}
            rows.append(row | {"provenance": found.provenance, "seconds": round(found.seconds, 1)})
            print(f"{len(rows)}/{len(corpus)} {kernel.name}: {found.verdict} {found.rule or ''} ({found.seconds:.1f} s)", flush=True)

        queue = iter(corpus)

        async def worker() -> None:
            for kernel in queue:
                await one(kernel)

        try:
            await asyncio.gather(*(worker() for _ in range(options.parallel)))
        finally:
            await pool.close()
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Count verdicts by origin and list all that did not pass."""
    lines = ["| origin | kernels | verdicts |", "|---|---|---|"]
    for origin in dict.fromkeys(row["origin"] for row in rows):
        verdicts = collections.Counter(str(row["verdict"]) for row in rows if row["origin"] == origin)
        lines.append(f"| {origin} | {sum(verdicts.values())} | {', '.join(f'{n} {v}' for v, n in verdicts.most_common())} |")
    others = [row for row in rows if row["verdict"] != "PASS"]
    lines += ["", f"Accused: {sum(row['verdict'] in ACCUSED for row in rows)} of {len(rows)}.", ""]
    lines += [f"* {row['name']}: {row['verdict']} {row['rule'] or ''} {' '.join(row['notes'])}" for row in others]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
