"""Candidates a second on one and on two GPUs of a machine, by the local pool and by evaluators on a Ray cluster of this machine.

Usage: python -m benchmarks.ray.throughput [--candidates N] [--gpus 0,1]

Each of the four is measured in a process of its own, twice, in turn. Every candidate is right and different. Prints one JSON object with
`ray_of_local` (aim 0.97) and `ray_scaling` from the first GPU to all (aim 1.9 on two). Needs two NVIDIA GPUs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=60, help="for each GPU")
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--one", choices=("local", "ray"), help="measure this one alone, on the visible GPUs")
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o711)
            print(json.dumps(asyncio.run(_measured(options.one, options.candidates, Path(folder)))))
        return
    every = options.gpus.split(",")
    found: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for gpus in (every[:1], every):
            for kind in ("local", "ray"):
                found.setdefault(f"{kind} on {len(gpus)}", []).append(_apart(kind, gpus, options.candidates))
    rates = {name: statistics.mean(values) for name, values in found.items()}
    most = len(every)
    ratios = {
        "ray_of_local": {str(n): rates[f"ray on {n}"] / rates[f"local on {n}"] for n in dict.fromkeys((1, most))},
        "local_scaling": rates[f"local on {most}"] / rates["local on 1"],
        "ray_scaling": rates[f"ray on {most}"] / rates["ray on 1"],
    }
    print(json.dumps({"device": next(iter(visible_devices().values())), "candidates_a_second": found, **ratios}, indent=1))


def _apart(kind: str, gpus: list[str], candidates: int) -> float:
    """Measure in a process that sees these GPUs alone."""
    command = [sys.executable, "-m", "benchmarks.ray.throughput", "--one", kind, "--candidates", str(candidates)]
    sees = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    done = subprocess.run(command, env=sees, check=True, stdout=subprocess.PIPE, text=True)
    rate = float(json.loads(done.stdout.splitlines()[-1])["rate"])
    print(f"{kind} on {len(gpus)}: {rate:.2f} candidates a second", file=sys.stderr, flush=True)
    return rate


async def _measured(kind: str, candidates: int, folder: Path) -> dict[str, Any]:
    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    file = folder / "softmax.py"
    file.write_text(REFERENCE.format(rows=1024, columns=1024))
    problem = load_problem(file)
    sizes, gpus = small_variants(problem), len(visible_devices())
    pool: EvaluatorPool = open_ray("", "all", sheet.title) if kind == "ray" else open_local(folder / "scratch", "all", sheet.title)

    async def judged(number: int) -> None:
        source = CANDIDATE.format(number=number, warps=4)
        request = EvaluationRequest(problem=problem, variants=sizes, candidate=str(number), source=source, target=sheet)
        found = await pool.evaluate(request)
        assert found.verdict is Verdict.PASS, found.notes

    try:
        await asyncio.gather(*map(judged, range(_WARM * gpus)))
        began = time.monotonic()
        await asyncio.gather(*map(judged, range(1000, 1000 + candidates * gpus)))
        return {"rate": candidates * gpus / (time.monotonic() - began)}
    finally:
        await pool.close()


if __name__ == "__main__":
    main()
