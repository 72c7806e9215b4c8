"""Several runs over one spool while its worker is killed and started again: nothing may be lost, and nothing asked or answered twice.

Usage: python -m benchmarks.evaluator.spool_load OUT_FOLDER [--devices all|interpreter|0,1] [--kill-after S] [--budget N]
                                                   [--target NAME] [NAME …]

The worker uses all GPUs of this machine; the runs' agents see none. After S seconds the worker and all below it are killed with
SIGKILL, and another one is started. Prints one JSON object; exit status 1 where a run failed, a job is left, or something of the first
worker still lives.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

OPERATORS = Path(__file__).parents[2] / "data" / "operators"
NAMES = ("softmax", "gelu_bias", "swiglu", "layer_norm", "rms_norm_residual", "log_sum_exp")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--devices", default="all")
    parser.add_argument("--kill-after", type=float, default=30)
    parser.add_argument("--budget", default="6")
    parser.add_argument("--target", default="h200")
    options = parser.parse_intermixed_args()
    options.names = options.names or NAMES
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    found = _load(options, out)
    (out / "spool_load.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    raise SystemExit(0 if found["sound"] else 1)


def _load(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    began, spool = time.monotonic(), out / "spool"
    worker = _worker(options, spool, out / "worker1.log")
    runs = {name: _run(options, name, out) for name in options.names}
    try:
        time.sleep(options.kill_after)
        family = [process.pid for process in (psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True))]
        before = _answers(spool)
        for pid in family:
            _kill(pid)
        worker.wait()
        survivors = _alive(family)
        worker = _worker(options, spool, out / "worker2.log")
        ended = {name: _ended(run, out / f"{name}.json", began) for name, run in runs.items()}
    finally:
        for process in (*runs.values(), worker):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
    after = _answers(spool)
    left = sorted(path.name for folder in ("jobs", "claims") for path in (spool / folder).glob("*.json"))
    keys = [answer["key"] for answer in after.values()]
    sound = all(run["status"] == 0 for run in ended.values()) and not left and not survivors and len(keys) == len(set(keys))
    return {
        "runs": ended,
        "answers_before_the_kill": len(before),
        "answers": len(after),
        "answered_twice": len(keys) - len(set(keys)),
        "answers_changed_by_the_second_worker": sum(after.get(name) != answer for name, answer in before.items()),
        "left_in_the_spool": left,
        "processes_killed": len(family),
        "survivors": survivors,
        "sound": sound and all(after.get(name) == answer for name, answer in before.items()),
    }


def _worker(options: argparse.Namespace, spool: Path, log: Path) -> subprocess.Popen[bytes]:
    command = ["worker", "--spool", str(spool), "--devices", options.devices, "--target", options.target]
    with log.open("wb") as file:
        return subprocess.Popen([sys.executable, "-m", "kernelwright", *command], stdout=file, stderr=subprocess.STDOUT)


def _run(options: argparse.Namespace, name: str, out: Path) -> subprocess.Popen[bytes]:
    command = ["optimize", str(OPERATORS / f"{name}.py"), "--target", options.target, "--evaluator", f"spool:{out / 'spool'}"]
    command += ["--budget", options.budget, "--no-memory", "--home", str(out / "homes" / name), "--json"]
    blind = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    with (out / f"{name}.json").open("wb") as answer, (out / f"{name}.log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "kernelwright", *command], stdout=answer, stderr=log, env=blind)


def _ended(run: subprocess.Popen[bytes], answer: Path, began: float) -> dict[str, Any]:
    status = run.wait()
    facts = json.loads(answer.read_text()) if status == 0 else {}
    return {
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "evaluations": facts.get("evaluations"),
        "reason": facts.get("reason", ""),
    }


def _answers(spool: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in (spool / "answers").glob("*.json")}


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _alive(pids: list[int]) -> list[int]:
    """List those that are still there a few seconds later."""
    for _ in range(50):
        there = [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
        if not there:
            break
        time.sleep(0.1)
    return there


if __name__ == "__main__":
    main()
