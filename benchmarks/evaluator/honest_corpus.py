"""Judges a corpus of honest kernels with every defence on: none may be accused.

Usage: python -m benchmarks.evaluator.honest_corpus [NAME …] [--gpu] [--only PART …] [--each N] [--parallel N] [--out FILE.jsonl]
         [--liger DIR] [--fla DIR] [--triton DIR]

Parts are by-hand, generated, liger, fla and triton; all by default. --liger and --fla name folders that hold the packages
`liger_kernel` and `fla` (below the Python environment, so that sandboxes show them); --triton the folder of Triton's tutorials. Nothing
of theirs is kept. Each finished row is in FILE at once, and the same command goes on from there; interrupted, it prints the table of
what is there. Exit status 1 where a kernel was accused, 130 where it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from tests.honest.corpus import Honest, by_hand, foreign, generated, tutorials
from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.problems import small_variants
from tools.records import Verdict, content_hash

PARTS = ("by-hand", "generated", "liger", "fla", "triton")
ACCUSED = ("CHEATED", "IMPOSSIBLE_TIME", "TIMING_INCONSISTENT", "UNSTABLE")
"""Verdicts that say something of the author; `WRONG` on an honest kernel is to be looked at, and is listed too."""


def main() -> None:
    """Judge what is not yet known and print a table of all."""
    parser, interrupted = command_line(), False
    options = parser.parse_args()
    for name in options.only:
        if name in ("liger", "fla", "triton") and not getattr(options, name):
            parser.error(f"--only {name} needs --{name} DIR")
    try:
        kept = KeptRows(options.out)
    except UserError as error:
        parser.error(str(error))
    try:
        corpus = list(_corpus(options))
        asyncio.run(_judge(options, unknown(corpus, kept.rows, gpu=options.gpu), kept))
    except KeyboardInterrupt:
        interrupted = True
        print("Interrupted: the same command goes on from here." if options.out else "Interrupted.", flush=True)
    finally:
        rows = latest(kept.rows)
        print(table(rows), flush=True)
    raise SystemExit(130 if interrupted else int(any(row["verdict"] in ACCUSED for row in rows)))


def command_line() -> argparse.ArgumentParser:
    """Say what may be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[], metavar="PART", help="only these parts")
    parser.add_argument("--each", type=int, default=8, help="generated kernels for each sample operator")
    parser.add_argument("--parallel", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--liger", type=Path)
    parser.add_argument("--fla", type=Path)
    parser.add_argument("--triton", type=Path)
    parser.add_argument("--out", type=Path, help="a file of JSON lines")
    parser.add_argument("names", nargs="*", help="only these sample operators for generated kernels")
    return parser


def _corpus(options: argparse.Namespace) -> Iterator[Honest]:
    wanted = options.only or PARTS
    if "by-hand" in wanted:
        yield from by_hand(gpu=options.gpu)
    if "generated" in wanted:
        yield from generated(options.each, tuple(options.names))
    for library, place in (("liger", options.liger), ("fla", options.fla)):
        if place and library in wanted:
            yield from foreign(library, place)
    if options.triton and "triton" in wanted:
        yield from tutorials(options.triton)


def key_of(kernel: Honest, *, gpu: bool) -> str:
    """Name what was judged: a kernel whose text, problem or place has changed is another one."""
    return content_hash(kernel.name, kernel.problem, kernel.source, "gpu" if gpu else "no gpu")


def unknown(corpus: Sequence[Honest], rows: Sequence[Row], *, gpu: bool) -> list[Honest]:
    """List what is still to be judged: what has no row, and what the machine failed at."""
    known = {row["key"] for row in rows if row["verdict"] != Verdict.INFRASTRUCTURE}
    return [kernel for kernel in corpus if key_of(kernel, gpu=gpu) not in known]


def latest(rows: Sequence[Row]) -> list[Row]:
    """Keep the last row of each kernel."""
    return list({row["name"]: row for row in rows}.values())


async def _judge(options: argparse.Namespace, corpus: list[Honest], kept: KeptRows) -> None:
    if not corpus:
        return
    sheet = (detect_sheet() if options.gpu else None) or load_sheet("h200")
    done = 0
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        pool = LocalPool(folder / "scratch", first_device() if options.gpu else None, parallel=options.parallel)

        async def one(kernel: Honest) -> None:
            nonlocal done
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
            row: Row = {"name": kernel.name, "origin": kernel.origin, "verdict": found.verdict, "rule": found.rule}
            row |= {
                "notes": found.notes[:3],
                "provenance": found.provenance,
                "seconds": round(found.seconds, 1),
                "key": key_of(kernel, gpu=options.gpu),
            }
            kept.add(row)
            done += 1
            print(f"{done}/{len(corpus)} {kernel.name}: {found.verdict} {found.rule or ''} ({found.seconds:.1f} s)", flush=True)

        queue = iter(corpus)

        async def worker() -> None:
            for kernel in queue:
                await one(kernel)

        try:
            await asyncio.gather(*(worker() for _ in range(options.parallel)))
        finally:
            # before the folder goes: evaluations in flight still write in it
            await pool.close()


def table(rows: Sequence[Row]) -> str:
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
