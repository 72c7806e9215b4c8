"""The same operators optimised beside 0, 4 and 8 busy processes: verdicts must not differ, and nothing may take minutes on idle cores.

Usage: python -m benchmarks.evaluator.under_load [--loads 0,4,8] [--operators 3] [--budget 16] [--out FILE.jsonl]

`--operators 12` takes four sample operators in each of float32, float16 and bfloat16. Each is a run of its own without a GPU, without
memory and in a new home. Work that others have running counts as load: before each run as many busy processes are started as are
missing. Rows have every candidate's verdicts by stage, what was delivered, exit status, seconds by the clock and of the processor, and
the load averages before and after. What FILE has is not run again. Exit status 1 where an operator's verdicts or delivery differ
between loads, or a run without load took over two minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from benchmarks.evaluator.processor import counted
from benchmarks.kept_rows import KeptRows, Row
from tools.records import Evaluation
from tools.tracing import RunStore

OPERATORS = (
    ("softmax", "exact"), ("swiglu", "fp16"), ("row_mean", "bf16"),
    ("layer_norm", "exact"), ("rms_norm_residual", "fp16"), ("gelu_bias", "bf16"),
    ("matmul_bias_gelu", "exact"), ("cross_entropy", "fp16"), ("log_sum_exp", "bf16"),
    ("attention", "exact"), ("matmul_bias_gelu", "fp16"), ("hard_swish_clamp_scale", "bf16"),
)  # fmt: skip
"""Sample operators and their policies, so ordered that the first few have every format."""
SLOWEST_S = 120.0
"""What a default run may take on two idle cores by the clock, and beside other work of a processor's time."""
LOOKS = 20
SPIN = "while True:\n    pass"


def main() -> None:
    """Run all, print a line each, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", default="0,4,8")
    parser.add_argument("--operators", type=int, default=3)
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kept = KeptRows(options.out)
    done = {_key(row) for row in kept.rows}
    for load, (name, policy) in product(map(int, options.loads.split(",")), OPERATORS[: options.operators]):
        if (name, policy, load) in done:
            continue
        others = runnable()
        with busy(max(0, load - others)) as started:
            kept.add(one_run(name, policy, options.budget) | {"load": load, "others": others, "started": started})
        print(line(kept.rows[-1]), flush=True)
    wrong = complaints(kept.rows)
    print("\n".join(wrong) or f"The same verdicts and deliveries in all {len(kept.rows)} runs.")
    sys.exit(bool(wrong))


def _key(row: Row) -> tuple[str, str, int]:
    return row["operator"], row["policy"], row["load"]


def runnable() -> int:
    """How many processes of this machine compute or would, this one not counted: the median of looks over two seconds."""
    found = []
    for _ in range(LOOKS):
        time.sleep(2.0 / LOOKS)
        found.append(int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1)
    return round(statistics.median(found))


@contextmanager
def busy(count: int) -> Iterator[int]:
    """Have `count` processes compute while the block runs."""
    spinning = [subprocess.Popen([sys.executable, "-S", "-c", SPIN]) for _ in range(count)]
    try:
        yield count
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def one_run(name: str, policy: str, budget: int) -> Row:
    """Optimise an operator by the command line, and read how every candidate ended."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kernelwright-load-") as home:
        command = [sys.executable, "-m", "kernelwright", "optimize", f"data/operators/{name}.py", "--policy", policy, "--home", home]
        command += ["--devices", "interpreter", "--no-memory", "--json", "--budget", str(budget)]
        ended, seconds, processor_s = counted(command)
        folder = next((path.parent for path in Path(home, "runs").glob("*/run.db")), None)
        verdicts = _verdicts(folder) if folder else {}
    facts = json.loads(ended.stdout) if ended.stdout else {}
    return {
        "operator": name,
        "policy": policy,
        "status": ended.returncode,
        "seconds": round(seconds, 1),
        "processor_s": processor_s and round(processor_s, 1),
        "beside": [round(before, 1), round(os.getloadavg()[0], 1)],
        "delivered": facts.get("delivered"),
        "reason": facts.get("reason") or (ended.stderr.strip().splitlines() or [""])[0],
        "verdicts": verdicts,
    }


def _verdicts(folder: Path) -> dict[str, list[str]]:
    store = RunStore(folder)
    found: dict[str, list[str]] = {}
    for one in store.all("evaluation", Evaluation).values():
        found.setdefault(one.candidate, []).append(one.verdict.value)
    store.close()
    return found


def line(row: Row) -> str:
    """One run in a line."""
    counts = {verdict: sum(one.count(verdict) for one in row["verdicts"].values()) for verdict in ("PASS", "TIMED_OUT", "INFRASTRUCTURE")}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    where = f"load {row['load']}: {row['operator']} ({row['policy']})"
    took = f"{row['seconds']:.0f} s, {row['processor_s'] or math.nan:.0f} s of a processor"
    beside = " and then ".join(f"{load:.1f}" for load in row["beside"])
    return f"{where}: status {row['status']}, {took}, load average {beside} ({listed or 'nothing judged'}): {row['reason'][:120]}"


def complaints(rows: list[Row]) -> list[str]:
    """Say what differs between loads, and what took too long without one."""
    first: dict[tuple[str, str], Row] = {}
    found = []
    for row in rows:
        name = f"{row['operator']} ({row['policy']})"
        known = first.setdefault((row["operator"], row["policy"]), row)
        found += [f"{name}: {key} differs at load {row['load']}." for key in ("verdicts", "delivered", "status") if row[key] != known[key]]
        if not row["load"] and (took := _took(row)) > SLOWEST_S:
            found.append(f"{name}: {took:.0f} s.")
    return found


def _took(row: Row) -> float:
    """Seconds that a run took: beside others' work the clock says little of it."""
    return float(row["seconds"] if row["processor_s"] is None or not row["others"] else row["processor_s"])


if __name__ == "__main__":
    main()
