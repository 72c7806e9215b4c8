"""Candidates a second on one and on two GPUs of a machine, by the local pool and by evaluators on a Ray cluster of this machine.

Usage: python -m benchmarks.ray.throughput [--candidates N] [--gpus 0,1] [--rounds N] [--limit SECONDS] [--within SECONDS] [--out FILE]

Each round measures local and Ray on the first GPU, then both on all, each in a process of its own. The pool always has more to do than it
takes on. Each GPU judges `--warm` candidates first and then N, by its own clock, so that it does not matter that they end in waves; the
rate is the sum over the GPUs. Every candidate is right and different.
Prints one JSON object after each measurement, and writes it to FILE: `ray_of_local` (aim 0.97) and `ray_scaling` from the first GPU to
all (aim 1.9 on two), as soon as they are known. Needs two NVIDIA GPUs, or with `--gpus 0` one. No round begins that would not end
within `--within` seconds. Says on the standard error what it is at; a measurement that takes longer than its limit ends with a line that
says where, and with the stacks of the evaluators.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
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
from tools.records import Evaluation, Verdict

_WARM = 8
"""Candidates that each GPU has judged before the clock starts: as many as it has at once."""
_ASKED = 24
"""Candidates asked for at any time, for each GPU: more than it takes on."""
_GRACE_S = 15.0
"""How long after its limit a measurement may take to end by itself."""
_EVERY = 8
"""Candidates a line while they are judged."""
_LOGS = Path("/tmp/ray/session_latest/logs")
_STACKS_S = 1.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=60, help="for each GPU")
    parser.add_argument("--warm", type=int, default=_WARM, help="for each GPU, before the clock starts")
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each measurement")
    parser.add_argument("--within", type=float, default=0.0, help="seconds for all of them; 0 means no limit")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", choices=("local", "ray"), help="measure this one alone, on the visible GPUs")
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o711)
            print(json.dumps(asyncio.run(_limited(options, Path(folder)))))
        return
    every, began, found = options.gpus.split(","), time.monotonic(), dict[str, list[dict[str, Any]]]()
    for number in range(1, options.rounds + 1):
        for gpus in (every[:1], every)[: len(every)]:
            for kind in ("local", "ray"):
                found.setdefault(f"{kind} on {len(gpus)}", []).append(_apart(kind, gpus, options))
                _tell(found, len(every), options.out)
        took = (time.monotonic() - began) / number
        if options.within and time.monotonic() - began + took > options.within:
            break


def _tell(found: dict[str, list[dict[str, Any]]], most: int, out: Path | None) -> None:
    """Print what is known so far, and write it where it was asked for."""
    rates = {name: statistics.mean(one["rate"] for one in values) for name, values in found.items()}

    def ratio(above: str, below: str) -> float | None:
        return rates[above] / rates[below] if {above, below} <= rates.keys() else None

    ratios = {
        "ray_of_local": {str(n): ratio(f"ray on {n}", f"local on {n}") for n in dict.fromkeys((1, most))},
        "local_scaling": ratio(f"local on {most}", "local on 1"),
        "ray_scaling": ratio(f"ray on {most}", "ray on 1"),
    }
    said = json.dumps({"device": next(iter(visible_devices().values())), "candidates_a_second": rates, **ratios, "measured": found})
    print(said, flush=True)
    if out is not None:
        out.write_text(said + "\n")


def _apart(kind: str, gpus: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a process that sees these GPUs alone."""
    given = ["--one", kind, "--candidates", str(options.candidates), "--warm", str(options.warm), "--limit", str(options.limit)]
    sees = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    name, began = f"{kind} on {len(gpus)}", time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.ray.throughput", *given],
            check=False,
            env=sees,
            stdout=subprocess.PIPE,
            text=True,
            timeout=options.limit + 2 * _GRACE_S,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"{name}: not measured, its process did not end {2 * _GRACE_S:.0f} s after its limit of {options.limit:.0f} s")
    if done.returncode:
        sys.exit(f"{name}: not measured, see above")
    came: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    _say(f"{name}: {came['rate']:.3f} candidates a second; {time.monotonic() - began:.0f} s in all")
    return came


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


async def _limited(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure within the limit; a process that cannot even end in time shows where each of its threads is."""
    faulthandler.dump_traceback_later(options.limit + _GRACE_S, exit=True)
    # just before the questions are withdrawn
    stacks = asyncio.get_running_loop().call_later(options.limit, _show_stacks) if options.one == "ray" else None
    try:
        async with asyncio.timeout(options.limit):
            return await _measured(options, folder)
    except TimeoutError:
        sys.exit(f"{options.one}: the measurement took longer than {options.limit:.0f} s (--limit); the last line says what it was at.")
    finally:
        if stacks is not None:
            stacks.cancel()
        faulthandler.cancel_dump_traceback_later()


async def _measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    sheet = detect_sheet()
    assert sheet is not None, "this machine has no NVIDIA GPU"
    file = folder / "softmax.py"
    file.write_text(REFERENCE.format(rows=1024, columns=1024))
    problem = load_problem(file)
    sizes, gpus = small_variants(problem), len(visible_devices())
    _say(f"{options.one}: opens a pool for {gpus} GPUs ({sheet.title})")
    pool = _opened(options.one, folder / "scratch", sheet.title)

    async def judged(number: int) -> Evaluation:
        source = CANDIDATE.format(number=number, warps=4)
        request = EvaluationRequest(problem=problem, variants=sizes, candidate=str(number), source=source, target=sheet)
        found = await pool.evaluate(request)
        assert found.verdict is Verdict.PASS, found.notes
        return found

    try:
        ends = await _ends(options.one, judged, gpus, options.warm, options.candidates)
    finally:
        await pool.close()
    rates = {place: _rate([end for end, _ in each], options.warm) for place, each in ends.items()}
    return {
        "rate": sum(rates.values()),
        "rates": rates,
        "phases_s": _mean_phases([found for each in ends.values() for _, found in each[options.warm :]]),
        "ends_s": {place: [round(end - each[0][0], 3) for end, _ in each] for place, each in ends.items()},
    }


def _rate(ends: list[float], warm: int) -> float:
    """Candidates a second of one GPU after it was warm."""
    return (len(ends) - warm) / (ends[-1] - ends[warm - 1])


def _mean_phases(found: list[Evaluation]) -> dict[str, float]:
    """What of an evaluation's time was spent where, in the mean; `all` is all of it, where it was judged."""
    names = dict.fromkeys(name for one in found for name in one.phase_seconds)
    means = {name: statistics.mean(one.phase_seconds.get(name, 0.0) for one in found) for name in names}
    return {name: round(mean, 3) for name, mean in {**means, "all": statistics.mean(one.seconds for one in found)}.items()}


def _opened(kind: str, scratch: Path, title: str) -> EvaluatorPool:
    if kind == "local":
        return open_local(scratch, "all", title)
    pool = open_ray("", "all", title)
    pool.listener = lambda line: _say(f"ray: {line}")
    return pool


async def _ends(
    name: str, judged: Callable[[int], Awaitable[Evaluation]], gpus: int, warm: int, count: int
) -> dict[str, list[tuple[float, Evaluation]]]:
    """When each GPU's candidates were judged, until each has `count` after those that warm it up: its first so many."""
    numbers, ends = itertools.count(1), defaultdict[str, list[tuple[float, Evaluation]]](list)
    enough = asyncio.Event()

    async def ask() -> None:
        while not enough.is_set():
            found = await judged(next(numbers))
            ends[found.place].append((time.monotonic(), found))
            if sum(map(len, ends.values())) % _EVERY == 0:
                _say(f"{name}: {'; '.join(f'{place or name}: {len(each)}' for place, each in ends.items())} of {warm + count} each")
            if len(ends) == gpus and all(len(each) >= warm + count for each in ends.values()):
                enough.set()

    tasks = [asyncio.create_task(ask()) for _ in range(_ASKED * gpus)]
    try:
        done, _ = await asyncio.wait({*tasks, over := asyncio.create_task(enough.wait())}, return_when=asyncio.FIRST_COMPLETED)
        for one in done - {over}:
            one.result()
        return {place: each[: warm + count] for place, each in ends.items()}
    finally:
        # before the pool is closed, so that none asks a closed one
        for task in (*tasks, over):
            task.cancel()
        await asyncio.gather(*tasks, over, return_exceptions=True)


def _show_stacks() -> None:
    """Have each evaluator of this machine's clusters write where its threads are, and show the ends of their logs."""
    import psutil

    for process in psutil.process_iter(["cmdline"]):
        if " ".join(process.info["cmdline"] or ()).startswith("ray::Kernelwright"):
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGUSR1)
    time.sleep(_STACKS_S)
    for log in sorted(_LOGS.glob("worker-*.err")):
        if said := log.read_text(errors="replace").strip():
            print(f"== {log}\n{said[-6000:]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
