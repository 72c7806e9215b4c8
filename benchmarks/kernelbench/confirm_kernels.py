"""Judges kernels that a bench has delivered once more, each by the whole evaluator, as a confirmation unless told otherwise.

Usage: python -m benchmarks.kernelbench.confirm_kernels SUITE BENCH_FOLDER … --out ROWS.jsonl [--shard I/N] [--parallel N] [--stop-after S]
                                            [--timeout S] [--device N] [--stage search]

For benches whose kernels the lab judged: SUITE is the KernelBench clone they ran on, a BENCH_FOLDER what `kernelwright bench run --out`
left; of one problem in several folders the last counts. Problems are taken by number, all levels in turn, so that a run that is cut short
is a sample. Each finished row is in ROWS at once, and the same command goes on. A search's evaluation takes less time: fewer calls, and
nothing is sealed. Without a GPU the interpreter judges and nothing is timed.
Exit status 1 where a kernel did not pass, 3 where time was up, 130 where it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import math
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kept_rows import KeptRows, Row, policy_of
from benchmarks.kernelbench.sealed_share import NOT_SEALED
from tools.errors import KernelwrightError, UserError
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.other_flags import other_baselines
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.policies import load_policy, named_policies, policy_names
from tools.problems import load_problem, small_variants
from tools.problems.suite import open_suite, parse_shard
from tools.records import Verdict, content_hash


class Delivered(NamedTuple):
    """One kernel and what the bench said of it."""

    problem: str
    """Its name in the suite, as in `level1/23_Softmax`."""
    number: int
    source: str
    us: float
    speedups: dict[str, float]
    """By baseline."""

    @property
    def key(self) -> str:
        """Name what is judged."""
        return content_hash(self.problem, self.source)


def main() -> None:
    """Judge what has no row yet and print a table of all."""
    options = command_line().parse_args()
    try:
        kept, kernels = KeptRows(options.out), delivered(options.folders)
        (place, parts), files = parse_shard(options.shard), {item.name: item.file for item in open_suite(options.suite).items}
        mine = kernels[place - 1 :: parts]
        if missing := [kernel.problem for kernel in mine if kernel.problem not in files]:
            raise UserError(f"{options.suite} has no {missing[0]}.", "Name the suite that the bench ran on.")
    except UserError as error:
        command_line().error(str(error))
    enough = {"confirm", options.stage}
    known = {
        row["key"]
        for row in kept.rows
        if row["verdict"] != Verdict.INFRASTRUCTURE and row.get("stage", "confirm") in enough and policy_of(row) == options.policy
    }
    status = 130
    try:
        late = asyncio.run(_judge(options, files, [kernel for kernel in mine if kernel.key not in known], kept))
        status = 3 if late else int(any(row["verdict"] != Verdict.PASS for row in latest(kept.rows)))
    except KeyboardInterrupt:
        print("Interrupted: the same command goes on from here.", flush=True)
    finally:
        print(table(latest(kept.rows)), flush=True)
    raise SystemExit(status)


def command_line() -> argparse.ArgumentParser:
    """Say what may be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", metavar="BENCH_FOLDER")
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--shard", default="1/1", help="as in 2/4: every fourth kernel from the second on")
    parser.add_argument("--parallel", type=int, default=3, help="in flight: one is built while another is timed")
    parser.add_argument("--stop-after", type=float, default=math.inf, help="begin no more after so many seconds")
    parser.add_argument("--stage", choices=["confirm", "search"], default="confirm", help="how thoroughly, as in a run")
    parser.add_argument("--policy", choices=policy_names(), default="default", help="as for `kernelwright evaluate`")
    parser.add_argument("--baselines", default="", help="policies under whose flags the reference is timed too, as for `evaluate`")
    parser.add_argument("--timeout", type=float, default=240.0)
    parser.add_argument("--device", type=int, default=None, help="nvidia-smi's number; by default the first that is visible")
    return parser


def delivered(folders: Iterable[Path]) -> list[Delivered]:
    """Read the kernels of bench folders, by number; raises UserError where a folder is none."""
    found: dict[str, Delivered] = {}
    for folder in folders:
        files = sorted(folder.glob("results-*.jsonl"))
        if not files:
            raise UserError(f"{folder} holds no results of a bench.", "Name the --out of `kernelwright bench run`.")
        for row in (json.loads(line) for file in files for line in file.read_text().splitlines()):
            kernel = folder / "home" / "runs" / str(row.get("run")) / "result" / "kernel.py"
            if row.get("status") == "kernel" and kernel.exists():
                gains = {name: float(gain[0]) for name, gain in row["speedups"].items()}
                found[row["problem"]] = Delivered(row["problem"], row["number"], kernel.read_text(), row["candidate_us"], gains)
    return sorted(found.values(), key=lambda one: (one.number, one.problem))


async def _judge(options: argparse.Namespace, files: Mapping[str, Path], kernels: Sequence[Delivered], kept: KeptRows) -> bool:
    """Judge them and keep a row of each; True where time was up first."""
    device = options.device if options.device is not None else first_device()
    sheet = (detect_sheet() if device is not None else None) or load_sheet("h200")
    began, queue, late = time.monotonic(), iter(kernels), False
    with tempfile.TemporaryDirectory() as scratch:
        pool = LocalPool(Path(scratch), device, parallel=options.parallel)

        async def worker() -> None:
            nonlocal late
            for kernel in queue:
                if time.monotonic() - began > options.stop_after:
                    late = True
                    return
                row = await _row(pool, options, files[kernel.problem], kernel, sheet)
                kept.add(row)
                print(f"{time.monotonic() - began:7.1f}s {said(row)}", flush=True)

        try:
            await asyncio.gather(*(worker() for _ in range(options.parallel)))
        finally:
            await pool.close()
    return late


async def _row(pool: LocalPool, options: argparse.Namespace, file: Path, kernel: Delivered, sheet: Any) -> Row:
    row: Row = {"problem": kernel.problem, "number": kernel.number, "key": kernel.key, "stage": options.stage, "policy": options.policy}
    row |= {"bench_us": kernel.us, "bench": kernel.speedups}
    try:
        problem = await asyncio.to_thread(load_problem, file, load_policy(options.policy))
        request = EvaluationRequest(
            problem=problem,
            variants=await asyncio.to_thread(small_variants, problem),
            candidate=kernel.key,
            source=kernel.source,
            target=sheet,
            timeout_s=options.timeout,
            stage=options.stage,
        )
        found = await pool.evaluate(request)
        others = await other_baselines(pool, problem, sheet, named_policies(options.baselines) if found.timing else ())
    except KernelwrightError as error:
        return row | {"verdict": Verdict.INFRASTRUCTURE, "notes": [str(error)]}
    row |= {"verdict": found.verdict, "rule": found.rule, "notes": found.notes[:4], "sandbox": found.sandbox}
    row |= {"seconds": round(found.seconds, 1), "gpu_s": found.gpu_seconds, "phases": found.phase_seconds, "versions": found.versions}
    row |= {"unsealed": next((note for note in found.notes if note.startswith(NOT_SEALED)), "")}
    if others:
        row["other_baselines_us"] = {name: {n: s.median_us for n, s in one.samples.items()} for name, one in others.items()}
    if found.timing is not None:
        timing = found.timing
        row |= {"us": timing.candidate.median_us, "tier": timing.tier, "device": timing.device, "speedups": timing.speedups}
        row |= {"baselines_us": {name: sample.median_us for name, sample in timing.baselines.items()}}
        if timing.packing is not None:
            packing = timing.packing
            row |= {"packing_us": packing.time.median_us, "packing_tier": packing.tier, "packed_bytes": packing.nbytes}
    return row


def said(row: Row) -> str:
    """One line about one kernel."""
    if "us" not in row:
        return f"{row['problem']}: {row['verdict']} {row.get('rule') or ''} {' '.join(row['notes'][:1])}"
    gains = ", ".join(f"{gain[0]:.2f}x {name}" for name, gain in row["speedups"].items())
    return f"{row['problem']}: {row['verdict']}, {gains} ({row['tier']}), {row['us']:.0f} µs; the bench said {row['bench_us']:.0f} µs"


def latest(rows: Sequence[Row]) -> list[Row]:
    """Keep the last row of each kernel under each policy."""
    return list({(row["key"], policy_of(row)): row for row in rows}.values())


def table(rows: Sequence[Row]) -> str:
    """Sum up by level, beside what the bench said of the same kernels, and list all that did not pass."""
    lines = ["| level | kernels | verdicts | sealed | against eager | the bench | against the better | the bench |", "|" + "---|" * 8]
    for level in sorted({row["problem"].split("/")[0] for row in rows}):
        mine = [row for row in rows if row["problem"].split("/")[0] == level]
        verdicts = collections.Counter(str(row["verdict"]) for row in mine)
        timed = [row for row in mine if "us" in row]
        ours = [{name: gain[0] for name, gain in row["speedups"].items()} for row in timed]
        theirs = [row["bench"] for row in timed]
        means = [_mean(pick(gains) for gains in side) for pick in (_eager, _better) for side in (ours, theirs)]
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        sealed = sum(row["tier"] == "sealed" for row in timed)
        lines.append(f"| {level} | {len(mine)} | {counted} | {sealed} | " + " | ".join(means) + " |")
    failed = [said(row) for row in rows if row["verdict"] != Verdict.PASS]
    return "\n".join([*lines, "", *(f"* {line}" for line in failed)])


def _eager(gains: dict[str, float]) -> float:
    return gains["eager"]


def _better(gains: dict[str, float]) -> float:
    return min(gains.values())


def _mean(values: Iterable[float]) -> str:
    logs = [math.log(value) for value in values]
    return f"{math.exp(sum(logs) / len(logs)):.2f}x" if logs else "–"


if __name__ == "__main__":
    main()
