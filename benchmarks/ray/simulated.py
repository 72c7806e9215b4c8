"""64 evaluators on one machine that only wait as long as evaluations took on an H200: what Ray and this pool cost at that size.

Usage: python -m benchmarks.ray.simulated OUT_FILE [--evaluators 64] [--candidates 2000] [--times wall|gpu] [--scale 0.25]

The times are of evaluations recorded in docs/results/kernelbench: wall seconds of a run for each, or GPU seconds. `efficiency` is the
share of the evaluators' time that these fill from when all are there until the last one is handed out; `occupied` is the same by the
evaluators' own clocks, which a busy machine lets wait longer than they were told to. `whole` is the share until the last answer,
`whole_at_best` that of handing out the same order at no cost. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.support.ray_nodes import SECONDS, STATION, Nodes
from tests.support.spool_worker import small_problem
from tools.cluster import RayPool, open_ray
from tools.hardware import load_sheet
from tools.records import EvaluationRequest

RECORDED = Path(__file__).parents[2] / "docs" / "results" / "kernelbench"
_HEAD = ("gcs_server", "raylet", "monitor.py", "dashboard.py")


def recorded_seconds(kind: str) -> list[float]:
    """Seconds of every evaluation of the recorded runs, in their order: `gpu` that it held the GPU, `wall` of its run for each."""
    found: list[float] = []
    for row in (json.loads(line) for file in sorted(RECORDED.glob("level*.jsonl")) for line in file.read_text().splitlines()):
        steps = row["curve"]
        sums = [0.0, *(step["gpu_s"] for step in steps)]
        held = [after - before for before, after in itertools.pairwise(sums)]
        found += held if kind == "gpu" else [row["seconds"] / len(steps)] * len(steps) if steps else []
    return [seconds for seconds in found if seconds > 0]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--evaluators", type=int, default=64)
    parser.add_argument("--candidates", type=int, default=2000)
    parser.add_argument("--times", choices=("wall", "gpu"), default="wall")
    parser.add_argument("--scale", type=float, default=0.25, help="shorter times are answered more often: harder for whoever hands out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        nodes = Nodes(Path(folder) / "pool.log", **{SECONDS: "0"})
        try:
            # processors that are not there: evaluators wait, and compute nothing
            nodes.add(cpus=options.evaluators)
            found = asyncio.run(_simulated(options.evaluators, options.candidates, options.times, options.scale))
        finally:
            nodes.close()
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


async def _simulated(evaluators: int, candidates: int, kind: str, scale: float) -> dict[str, Any]:
    import ray

    pool = open_ray("", "interpreter", "", opener=STATION)
    began = time.monotonic()
    await asyncio.gather(*(_until_all(pool, number, evaluators) for number in range(2 * evaluators)))
    started = time.monotonic() - began
    times = [scale * one for one in itertools.islice(itertools.cycle(recorded_seconds(kind)), candidates)]
    cpu, load, began = _head_cpu(), os.getloadavg()[0], time.monotonic()
    answers = await asyncio.gather(*(_answered(pool, f"# seconds: {s:.3f}\n# candidate {n}") for n, s in enumerate(times)))
    wall, used = time.monotonic() - began, _head_cpu() - cpu
    await pool.close()
    busy = sum(times)
    return {
        "times": f"{kind} seconds x {scale:g}",
        "evaluators": evaluators,
        "candidates": len({one for one, _, _ in answers}),
        "recorded_mean_s": round(statistics.mean(times), 3),
        "recorded_longest_s": round(max(times), 3),
        "start_s": round(started, 1),
        "wall_s": round(wall, 2),
        "efficiency": round(_filled([(ended - began - s, s) for (_, _, ended), s in zip(answers, times, strict=True)], evaluators), 4),
        "occupied": round(_filled([(ended - began - took, took) for _, took, ended in answers], evaluators), 4),
        "whole": round(busy / (evaluators * wall), 4),
        "whole_at_best": round(busy / (evaluators * _makespan(times, evaluators)), 4),
        "answers_a_second": round(len(answers) / wall, 1),
        "head_cores": round(used / wall, 3),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load:.0f} at the beginning, {os.getloadavg()[0]:.0f} at the end",
        "versions": {"python": platform.python_version(), "ray": ray.__version__},
    }


async def _until_all(pool: RayPool, number: int, evaluators: int) -> None:
    turn = 0
    while f"{evaluators} evaluators" not in pool.name:
        await pool.evaluate(_request(f"# seconds: 0.5\n# start {number} {turn}"))
        turn += 1


async def _answered(pool: RayPool, source: str) -> tuple[str, float, float]:
    """The candidate that was judged, how long its evaluator was at it, and when its answer was there."""
    found = await pool.evaluate(_request(source))
    return found.candidate, found.seconds, time.monotonic()


def _filled(spans: list[tuple[float, float]], evaluators: int) -> float:
    """Share of the evaluators' time that spans (begin, length) fill until the last one begins."""
    last = max(begin for begin, _ in spans)
    return sum(min(length, last - begin) for begin, length in spans) / (evaluators * last)


def _request(source: str) -> EvaluationRequest:
    return EvaluationRequest(problem=small_problem(), candidate=source, source=source, target=load_sheet("h200"))


def _makespan(times: list[float], evaluators: int) -> float:
    """Wall time of the same order where handing out costs nothing."""
    free = [0.0] * evaluators
    for seconds in times:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def _head_cpu() -> float:
    """Processor seconds so far of this process, which is the agents' side, and of Ray's services on the head."""
    return sum(sum(one.cpu_times()[:2]) for one in [psutil.Process(), *_services()])


def _services() -> Iterator[psutil.Process]:
    """Ray's own processes that this one started, both nodes' where two stand on one machine."""
    for one in psutil.process_iter(["cmdline"]):
        words = " ".join(one.info["cmdline"] or ())
        if any(name in words for name in _HEAD) and f"session_{_session()}" in words:
            yield one


def _session() -> str:
    import ray

    return str(ray.nodes()[0]["RayletSocketName"]).partition("session_")[2].partition("/")[0]


if __name__ == "__main__":
    main()
