"""Candidates a second on one and on two GPUs of a machine, by the local pool and by evaluators on a Ray cluster of this machine.

Usage: python -m benchmarks.ray.throughput [--candidates N] [--gpus 0,1] [--limit SECONDS]

Each of the four is measured in a process of its own, twice, in turn. Every candidate is right and different. Prints one JSON object with
`ray_of_local` (aim 0.97) and `ray_scaling` from the first GPU to all (aim 1.9 on two). Needs two NVIDIA GPUs, or with `--gpus 0` one.
Says on the standard error what it is at; a measurement that takes longer than its limit ends with a line that says where.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.evaluator.rate import CANDIDATE, REFERENCE
from tools.cluster import open_ray
from tools.evaluation import EvaluationRequest
from tools.evaluation.protocol import EvaluatorPool
from tools.evaluation.several import open_local
from tools.hardware import detect_sheet
from tools.hardware.devices import visible_devices
from tools.problems import load_problem, small_variants
from tools.records import Verdict

_WARM = 6
"""Candidates for each GPU before the clock starts: every evaluator is placed and warm then."""
_ROUNDS = 2
_GRACE_S = 30.0
"""How long after its limit a measurement may take to end by itself."""
_EVERY = 4
"""Lines while candidates are judged, about."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=60, help="for each GPU")
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each measurement")
    parser.add_argument("--one", choices=("local", "ray"), help="measure this one alone, on the visible GPUs")
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o711)
            print(json.dumps(asyncio.run(_limited(options.one, options.candidates, options.limit, Path(folder)))))
        return
    every = options.gpus.split(",")
    found: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for gpus in (every[:1], every)[: len(every)]:
            for kind in ("local", "ray"):
                found.setdefault(f"{kind} on {len(gpus)}", []).append(_apart(kind, gpus, options.candidates, options.limit))
    rates = {name: statistics.mean(values) for name, values in found.items()}
    most = len(every)
    ratios = {
        "ray_of_local": {str(n): rates[f"ray on {n}"] / rates[f"local on {n}"] for n in dict.fromkeys((1, most))},
        "local_scaling": rates[f"local on {most}"] / rates["local on 1"],
        "ray_scaling": rates[f"ray on {most}"] / rates["ray on 1"],
    }
    print(json.dumps({"device": next(iter(visible_devices().values())), "candidates_a_second": found, **ratios}, indent=1))


def _apart(kind: str, gpus: list[str], candidates: int, limit_s: float) -> float:
    """Measure in a process that sees these GPUs alone."""
    given = ["--one", kind, "--candidates", str(candidates), "--limit", str(limit_s)]
    sees = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    name = f"{kind} on {len(gpus)}"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.ray.throughput", *given],
            check=False,
            env=sees,
            stdout=subprocess.PIPE,
            text=True,
            timeout=limit_s + 2 * _GRACE_S,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"{name}: not measured, its process did not end {2 * _GRACE_S:.0f} s after its limit of {limit_s:.0f} s")
    if done.returncode:
        sys.exit(f"{name}: not measured, see above")
    rate = float(json.loads(done.stdout.splitlines()[-1])["rate"])
    _say(f"{name}: {rate:.2f} candidates a second")
    return rate


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


async def _limited(kind: str, candidates: int, limit_s: float, folder: Path) -> dict[str, Any]:
    """Measure within the limit; a process that cannot even end in time shows where each of its threads is."""
    faulthandler.dump_traceback_later(limit_s + _GRACE_S, exit=True)
    try:
        async with asyncio.timeout(limit_s):
            return await _measured(kind, candidates, folder)
    except TimeoutError:
        where = " Ray's logs are in /tmp/ray/session_latest/logs." if kind == "ray" else ""
        sys.exit(f"{kind}: the measurement took longer than {limit_s:.0f} s (--limit); the line above says what it was at.{where}")
    finally:
        faulthandler.cancel_dump_traceback_later()


async def _measured(kind: str, candidates: int, folder: Path) -> dict[str, Any]:
    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    file = folder / "softmax.py"
    file.write_text(REFERENCE.format(rows=1024, columns=1024))
    problem = load_problem(file)
    sizes, gpus = small_variants(problem), len(visible_devices())
    _say(f"{kind}: opens a pool for {gpus} GPUs ({sheet.title})")
    pool = _opened(kind, folder / "scratch", sheet.title)

    async def judged(number: int) -> None:
        source = CANDIDATE.format(number=number, warps=4)
        request = EvaluationRequest(problem=problem, variants=sizes, candidate=str(number), source=source, target=sheet)
        found = await pool.evaluate(request)
        assert found.verdict is Verdict.PASS, found.notes

    try:
        await _all(f"{kind}: warming up, {pool.name}", judged, range(_WARM * gpus))
        began = time.monotonic()
        await _all(f"{kind}: measuring, {pool.name}", judged, range(1000, 1000 + candidates * gpus))
        return {"rate": candidates * gpus / (time.monotonic() - began)}
    finally:
        await pool.close()


def _opened(kind: str, scratch: Path, title: str) -> EvaluatorPool:
    if kind == "local":
        return open_local(scratch, "all", title)
    pool = open_ray("", "all", title)
    pool.listener = lambda line: _say(f"ray: {line}")
    return pool


async def _all(name: str, judged: Callable[[int], Awaitable[None]], numbers: range) -> None:
    """Judge these side by side, and say how far it is."""
    _say(f"{name}: {len(numbers)} candidates")
    tasks = [asyncio.ensure_future(judged(number)) for number in numbers]
    try:
        for done, one in enumerate(asyncio.as_completed(tasks), 1):
            await one
            if done % max(1, len(numbers) // _EVERY) == 0:
                _say(f"{name.partition(',')[0]}: {done} of {len(numbers)}")
    finally:
        # before the pool is closed, so that none asks a closed one
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    main()
