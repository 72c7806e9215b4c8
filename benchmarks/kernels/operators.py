"""Optimises every sample operator with the built-in agents and writes what was found, one JSON line each, and a Markdown table.

Usage: python -m benchmarks.kernels.operators OUT_FOLDER [--budget N] [--batch N] [--embedder NAME] [--counters never] [NAME …]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tools.problems import load_problem

COPY_TBS = 4.3
"""Bytes read and written a second by a device-to-device copy on an H200, TB/s; shares on other devices are of it too."""

OPERATORS = Path(__file__).parents[2] / "data" / "operators"


def main() -> None:
    """Run the operators one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", default="16")
    parser.add_argument("--batch", default="2", help="plans in flight in one round")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--counters", default="auto", help="auto or never; Nsight Compute takes six to eight seconds a candidate")
    parser.add_argument("--home", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=0, help="start no further operator after this long; 0 sets no limit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    rows = []
    for path in sorted(OPERATORS.glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        if options.seconds and time.monotonic() - began > options.seconds:
            break
        rows.append(_optimize(path, options))
        print(f"| {' | '.join(_row(rows[-1]))} |", flush=True)
        # as they come: what a time limit cuts off must not take the rest with it
        (options.out / "operators.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (options.out / "operators.md").write_text(_table(rows))


def _optimize(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own; a failure is a row too."""
    home = str(options.home or options.out / "home")
    began = time.monotonic()
    command = ["optimize", str(path), "--budget", options.budget, "--batch", options.batch, "--embedder", options.embedder]
    command += ["--counters", options.counters]
    facts = _kernelwright([*command, "--home", home])
    row = {"operator": path.stem, "seconds": round(time.monotonic() - began, 1), "megabytes": _megabytes(path), **facts}
    if "error" in facts:
        return row
    trace = _kernelwright(["trace", facts["run"], "--home", home])
    passed = [one for one in trace["candidates"] if one["verdict"] == "PASS" and one["time_us"]]
    return row | {"baselines": trace["baselines"], "best": min(passed, key=lambda one: one["time_us"], default=None)}


def _kernelwright(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "kernelwright", *arguments, "--json"], capture_output=True, text=True, check=False)
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {"error": done.stderr[-2000:]}


def _megabytes(path: Path) -> float:
    """Every input, parameter and output once."""
    return load_problem(path).abi.compulsory_bytes / 1e6


def _row(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return [row["operator"], "failed", *["–"] * 9, str(row["seconds"]), (row["error"].strip().splitlines() or [""])[-1]]
    evaluation, best = row["evaluation"] or {}, row["best"]
    timing = evaluation.get("timing")
    if timing:
        name, speedup = min(timing["speedups"].items(), key=lambda item: item[1][0])
        medians = {name: sample["median_us"] for name, sample in timing["baselines"].items()}
        kernel_us, gain = timing["candidate"]["median_us"], f"{speedup[0]:.3f}x [{speedup[1]:.3f}, {speedup[2]:.3f}] {name}"
    elif best:
        medians = {name: sample["median_us"] for name, sample in row["baselines"]["samples"].items()}
        kernel_us, gain = best["time_us"], f"{best['speedup']:.3f}x" + ("" if medians else " estimated")
    else:
        medians = {name: sample["median_us"] for name, sample in row["baselines"]["samples"].items()}
        kernel_us, gain = None, "–"
    eager_us = medians.get("eager")
    bandwidth = f"{row['megabytes'] * 1e6 / kernel_us / 1e6 / COPY_TBS:.0%}" if kernel_us and medians else "–"
    cells = [
        row["operator"],
        "kernel" if row["kernel"] else "keep the reference",
        _us(kernel_us),
        _us(eager_us),
        _us(medians.get("compile")),
        gain,
    ]
    cells += [f"{eager_us / kernel_us:.2f}x" if eager_us and kernel_us else "–", f"{row['megabytes']:.0f}", bandwidth, _errors(evaluation)]
    return [*cells, str(row["evaluations"]), f"{row['spent']['gpu_s']:.0f}", str(row["seconds"])]


def _us(value: float | None) -> str:
    return f"{value:.1f}" if value is not None else "–"


def _errors(evaluation: dict[str, Any]) -> str:
    if not evaluation:
        return "–"
    first = evaluation["correctness"]["outputs"][0]
    return f"{first['relative_l2']:.1e} ({first['reference_relative_l2']:.1e})"


def _table(rows: list[dict[str, Any]]) -> str:
    names = [
        "operator",
        "delivered",
        "kernel µs",
        "eager µs",
        "compile µs",
        "against the better baseline",
        "against eager",
        "MB",
        "of copy",
    ]
    names += ["error (reference's own)", "evaluations", "GPU s", "run s"]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, ["---"] * len(names), *map(_row, rows))) + "\n"


if __name__ == "__main__":
    main()
