"""Judges many candidates of which a fifth hang, crash, leak, fork or fill the disk, and looks at what is left of the machine.

Usage: python -m benchmarks.evaluator.soak [--candidates N] [--gpu] [--parallel N] [--timeout S] [--out FILE.jsonl] [--markdown FILE.md]

Each finished row is in FILE.jsonl at once, and the same command goes on from there; interrupted, it writes the page of what is there. Exit
status 1 where a verdict was not the expected one or something was left behind, 130 where it was interrupted. Static rules are off: the
walls alone must hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from pathlib import Path

from benchmarks.evaluator.leftovers import State, look, look_settled
from benchmarks.evaluator.soak_candidates import Job, crashing, honest, plan, problem_text
from benchmarks.evaluator.soak_report import page, summary
from benchmarks.kept_rows import KeptRows, Row
from tools.errors import UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.wire.defences import Defence
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.profiling.nvml import device_title
from tools.records import content_hash


def main() -> None:
    """Judge what is not yet known, print a summary of all, and say by the exit status whether all was well."""
    parser, interrupted = command_line(), False
    options = parser.parse_args()
    try:
        kept = KeptRows(options.out)
    except UserError as error:
        parser.error(str(error))
    jobs = {_key(job, options): job for job in plan(options.candidates, options.seed, gpu=options.gpu)}
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(Soak(options, Path(folder), jobs, kept).run())
    except KeyboardInterrupt:
        interrupted = True
        print("Interrupted: the same command goes on from here." if options.out else "Interrupted.", flush=True)
    finally:
        found = summary(kept.rows, set(jobs), _settings(options))
        print(json.dumps(found, indent=2), flush=True)
        if options.markdown:
            options.markdown.write_text(page(found))
    raise SystemExit(130 if interrupted else 0 if found["sound"] else 1)


def command_line() -> argparse.ArgumentParser:
    """Say what may be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--parallel", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--timeout", type=float, default=0.0, help="seconds; 0 chooses 4 without a GPU and 10 with one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file of JSON lines")
    parser.add_argument("--markdown", type=Path)
    return parser


def _limit_s(options: argparse.Namespace) -> float:
    return float(options.timeout or (10.0 if options.gpu else 4.0))


def _key(job: Job, options: argparse.Namespace) -> str:
    """Name what was judged: under another time limit or in another place it is another thing."""
    return content_hash(job.source, f"{_limit_s(options):g}", "gpu" if options.gpu else "no gpu")


def _settings(options: argparse.Namespace) -> dict[str, object]:
    machine = device_title(first_device() or 0) if options.gpu else f"{len(os.sched_getaffinity(0))} cores, no GPU"
    return {"parallel": options.parallel, "time_limit_s": _limit_s(options), "machine": machine}


class Soak:
    """One sitting: the candidates that have no row yet, between two looks at the machine."""

    def __init__(self, options: argparse.Namespace, folder: Path, jobs: dict[str, Job], kept: KeptRows) -> None:
        """Work in `folder` with the `jobs` that are not among what is `kept`."""
        self._options, self._folder, self._kept = options, folder, kept
        known = {row["key"] for row in kept.rows if "key" in row}
        self._jobs = [job for key, job in jobs.items() if key not in known]
        self._begun, self._done = time.monotonic(), 0

    async def run(self) -> None:
        """Judge them; whichever way it ends, every process has ended before the folder goes."""
        if not self._jobs:
            return
        file = self._folder / "double.py"
        file.write_text(problem_text(gpu=self._options.gpu))
        self._problem = load_problem(file)
        self._variants = small_variants(self._problem)
        self._sheet = (detect_sheet() if self._options.gpu else None) or load_sheet("h200")
        pool = LocalPool(self._folder / "scratch", first_device() if self._options.gpu else None, parallel=self._options.parallel)
        self._view = pool.weakened(frozenset([Defence.STATIC_RULES]))
        try:
            await self._between_two_looks()
        finally:
            await pool.close()

    async def _between_two_looks(self) -> None:
        before: State | None = None
        after: State | None = None
        try:
            # the first start the processes and fill the memory that stay: what they hold is no leak; then as the end will be looked at
            await self._all([crashing(-50), *honest(-100, self._options.parallel * 2)], beside=True)
            await self._all(honest(-200, 1), beside=True)
            before = look(self._folder, gpu=self._options.gpu)
            await self._all(self._jobs)
            await self._all(honest(-300, 1), beside=True)
            after = await look_settled(self._folder, before, gpu=self._options.gpu)
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            spent = {"seconds": round(time.monotonic() - self._begun, 1), "judged": self._done, "peak_supervisor_mib": peak}
            self._kept.add({"sitting": spent, "before": before, "after": after})

    async def _all(self, jobs: list[Job], *, beside: bool = False) -> None:
        """Judge several at a time; `beside` marks those that every sitting has beside the planned ones."""
        queue = iter(jobs)

        async def worker() -> None:
            for job in queue:
                await self._one(job, beside)

        await asyncio.gather(*(worker() for _ in range(self._options.parallel * 2)))

    async def _one(self, job: Job, beside: bool) -> None:
        request = EvaluationRequest(
            problem=self._problem,
            variants=self._variants,
            candidate=f"c{self._done}",
            source=job.source,
            target=self._sheet,
            timeout_s=_limit_s(self._options) if job.ends_by_the_clock else 60.0,
        )
        found = await self._view.evaluate(request)
        row: Row = {"key": _key(job, self._options), "kind": job.kind, "verdict": found.verdict, "expected": found.verdict in job.expected}
        row |= {"beside": True} if beside else {}
        row |= {} if row["expected"] else {"notes": found.notes[:2], "log": found.log[-300:]}
        self._kept.add(row)
        self._done += 1
        if self._done % 25 == 0:
            print(f"{self._done} of {len(self._jobs)} in {time.monotonic() - self._begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
