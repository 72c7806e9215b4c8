"""Optimises every sample operator with the built-in agents and writes what was found, one JSON line each, and a Markdown table.

Usage: python -m benchmarks.operators OUT_FOLDER [--budget N] [--batch N] [--embedder NAME] [NAME …]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OPERATORS = Path(__file__).parents[1] / "data" / "operators"


def main() -> None:
    """Run the operators one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", default="16")
    parser.add_argument("--batch", default="2", help="plans in flight in one round")
    parser.add_argument("--embedder", default="default")
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
        print(_row(rows[-1]), flush=True)
        # as they come: what a time limit cuts off must not take the rest with it
        (options.out / "operators.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (options.out / "operators.md").write_text(_table(rows))


def _optimize(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own; a failure is a row too."""
    home = options.home or options.out / "home"
    command = [sys.executable, "-m", "kernelwright", "optimize", str(path), "--json", "--home", str(home), "--budget", options.budget]
    command += ["--batch", options.batch]
    began = time.monotonic()
    done = subprocess.run([*command, "--embedder", options.embedder], capture_output=True, text=True, check=False)
    facts = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr[-2000:]}
    return {"operator": path.stem, "seconds": round(time.monotonic() - began, 1), **facts}


def _row(row: dict[str, Any]) -> str:
    if "error" in row:
        reason = (row["error"].strip().splitlines() or [""])[-1]
        return f"| {row['operator']} | failed | | | | | | {row['seconds']} | {reason} |"
    evaluation = row["evaluation"] or {}
    timing = evaluation.get("timing")
    errors = evaluation["correctness"]["outputs"][0] if evaluation else None
    error = f"{errors['relative_l2']:.1e} (reference {errors['reference_relative_l2']:.1e})" if errors else ""
    cells = [row["operator"], "kernel" if row["kernel"] else "keep the reference"]
    if timing:
        best = min(timing["speedups"].values(), key=lambda s: s[0])
        compiled = timing["baselines"].get("compile")
        cells += [f"{timing['candidate']['median_us']:.1f}", f"{timing['baselines']['eager']['median_us']:.1f}"]
        cells += [f"{compiled['median_us']:.1f}" if compiled else "–", f"{best[0]:.2f}x [{best[1]:.2f}, {best[2]:.2f}]"]
    elif evaluation:
        estimate = evaluation["estimate"]
        cells += [f"{estimate['candidate_us']:.1f} est.", f"{estimate['eager_us']:.1f} est.", "–", f"{row['speedup']:.2f}x est."]
    else:
        cells += ["", "", "", ""]
    return "| " + " | ".join([*cells, error, str(row["seconds"]), row["reason"].replace("|", "/")]) + " |"


def _table(rows: list[dict[str, Any]]) -> str:
    head = "| operator | delivered | kernel µs | eager µs | compile µs | against the better | relative L2 error | run s | reason |\n"
    return head + "|---" * 9 + "|\n" + "\n".join(map(_row, rows)) + "\n"


if __name__ == "__main__":
    main()
