"""Runs all that only a GPU can show, spread over the GPUs of this machine, and keeps every log: before a release, say.

Usage: python -m benchmarks.release OUT_FOLDER [--seconds N] [--only PART …] [--liger DIR --fla DIR --triton DIR] [--kernelbench DIR]

Each part has a GPU, cores and a home of its own, and a time limit. What ended well is not run again by the same command: a folder can be
gone on with. OUT_FOLDER/summary.md says how each part ended; exit status 1 where one failed or did not run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.hardware.devices import visible_devices

GPU_TESTS = "tests/tools/evaluation/gpu/test_gpu"
OPERATORS = (
    "cross_entropy max_pool2d row_mean attention softmax",
    "matmul_bias_gelu cumsum hard_swish_clamp_scale layer_norm log_sum_exp",
    "mean_squared_error rms_norm_residual gelu_bias conv_block swiglu",
)


@dataclass(frozen=True)
class Part:
    """One command."""

    name: str
    command: str
    limit_s: float
    """It is killed after this long."""
    least_s: float
    """It is not begun where less time is left."""


@dataclass(frozen=True)
class Result:
    """How a part ended."""

    name: str
    gpu: int
    status: int | None
    """Exit status; None where it was killed at its limit."""
    seconds: float
    last: str
    """Its last line."""


def parts(options: argparse.Namespace) -> list[Part]:
    """List what there is to run, what most depends on first."""
    tests = "-m pytest -q -rA -m gpu -p no:cacheprovider --durations=0"
    made = [
        Part("gpu", f"{tests} {GPU_TESTS}.py", 240, 60),
        Part(
            "health",
            f"{tests} {GPU_TESTS}_health.py tests/tools/codegen/module/test_cuda_graph.py tests/tools/profiling/test_nvml.py",
            90,
            30,
        ),
        Part("cuda", f"{tests} {GPU_TESTS}_cuda.py", 300, 120),
        Part("sealed", f"{tests} {GPU_TESTS}_sealed.py", 300, 90),
        Part("counters", f"{tests} {GPU_TESTS}_counters.py", 120, 40),
        Part("hostile", f"{tests} tests/hacks -k '(on_a_gpu and not honest) or timing_is_idle'", 500, 120),
        Part("twins", f"{tests} tests/hacks -k 'on_a_gpu and honest'", 400, 120),
        Part("hidden", f"{tests} tests/hacks/test_hidden_work.py", 400, 180),
        *(
            Part(
                f"operators{number}", f"-m benchmarks.kernels.operators {{out}} {names} --budget 12 --batch 4 --embedder hashing", 580, 200
            )
            for number, names in enumerate(OPERATORS)
        ),
        Part("repeatability", "-m benchmarks.evaluator.repeatability --out {out}.json --markdown {out}.md", 300, 150),
        Part(
            "corpus", f"-m benchmarks.evaluator.honest_corpus --gpu --each 6 --parallel 4 --out {{out}}.jsonl{_foreign(options)}", 580, 200
        ),
        Part("rate", "-m benchmarks.evaluator.rate", 120, 60),
        Part("spool", "-m benchmarks.evaluator.spool_load {out}", 240, 120),
        Part("products", "-m benchmarks.kernels.matmul_ways --out {out}.md --seconds 560", 580, 200),
        Part("searches", "-m benchmarks.search.runs {out} --seconds 560", 580, 300),
        Part("soak", "-m benchmarks.evaluator.soak --gpu --candidates 200 --out {out}.jsonl --markdown {out}.md", 580, 300),
        Part("matrix", "-m benchmarks.evaluator.hack_matrix {out} --gpu --quick --parallel 1", 580, 300),
    ]
    if options.kernelbench:
        suite = f"-m kernelwright bench run {shlex.quote(str(options.kernelbench))} --problems 1%3 --evaluations 6"
        made.append(Part("bench", f"{suite} --stop-after 500 --out {{out}}", 580, 200))
    return [part for part in made if not options.only or part.name in options.only]


def _foreign(options: argparse.Namespace) -> str:
    given = ((name, getattr(options, name)) for name in ("liger", "fla", "triton"))
    return "".join(f" --{name} {shlex.quote(str(place))}" for name, place in given if place)


class Release:
    """Runs parts side by side, one a GPU."""

    def __init__(self, out: Path, seconds: float) -> None:
        """Keep everything in `out`, and end after `seconds`; 0 sets no limit."""
        self._out = out
        self._end = time.monotonic() + seconds if seconds else float("inf")
        self._lock = threading.Lock()
        self._file = out / "summary.json"
        known = json.loads(self._file.read_text()) if self._file.exists() else []
        self.results = {row["name"]: Result(**row) for row in known}

    def run(self, wanted: Sequence[Part], gpus: Sequence[int]) -> bool:
        """Run what has not ended well yet; whether all has now."""
        waiting = [part for part in wanted if part.name not in self.results or self.results[part.name].status != 0]
        cores = sorted(os.sched_getaffinity(0))
        each = max(1, len(cores) // len(gpus))
        lanes = [
            threading.Thread(target=self._lane, args=(gpu, set(cores[place * each : (place + 1) * each]), waiting))
            for place, gpu in enumerate(gpus)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        return all(part.name in self.results and self.results[part.name].status == 0 for part in wanted)

    def _lane(self, gpu: int, cores: set[int], waiting: list[Part]) -> None:
        while (part := self._next(waiting)) is not None:
            print(f"{part.name} begins on GPU {gpu}", flush=True)
            result = self._one(part, gpu, cores)
            print(f"{part.name}: {_ending(result)} after {result.seconds:.0f} s: {result.last}", flush=True)
            with self._lock:
                self.results[part.name] = result
                self._file.write_text(json.dumps([asdict(one) for one in self.results.values()], indent=1) + "\n")
                (self._out / "summary.md").write_text(table(list(self.results.values())))

    def _next(self, waiting: list[Part]) -> Part | None:
        with self._lock:
            for place, part in enumerate(waiting):
                if self._end - time.monotonic() >= part.least_s:
                    return waiting.pop(place)
        return None

    def _one(self, part: Part, gpu: int, cores: set[int]) -> Result:
        began = time.monotonic()
        home, log = self._out / "homes" / part.name, self._out / f"{part.name}.log"
        home.mkdir(parents=True, exist_ok=True)
        # NVML counts in this order, and CUDA by itself does not
        seen = {"CUDA_VISIBLE_DEVICES": str(gpu), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        environment = os.environ | seen | {"HOME": str(home), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, *shlex.split(part.command.format(out=shlex.quote(str(self._out / part.name))))]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            os.sched_setaffinity(process.pid, cores)
            status: int | None = None
            try:
                status = process.wait(min(part.limit_s, self._end - began))
            except subprocess.TimeoutExpired:
                # pytest and the benchmarks write down what they have at an interrupt
                _end(process)
        lines = log.read_text(errors="replace").strip().splitlines()
        return Result(part.name, gpu, status, round(time.monotonic() - began, 1), lines[-1][:200] if lines else "")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience_s in ((signal.SIGINT, 10.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def _ending(result: Result) -> str:
    return "cut off" if result.status is None else "well" if result.status == 0 else f"exit status {result.status}"


def table(results: Sequence[Result]) -> str:
    """List how each part ended."""
    rows = [f"| {one.name} | {one.gpu} | {_ending(one)} | {one.seconds:g} | {one.last.replace('|', '/')} |" for one in results]
    return "\n".join(["| part | GPU | ended | seconds | last line |", "|---|---|---|---|---|", *rows]) + "\n"


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=0, help="end after this long, to be gone on with; 0 sets no limit")
    parser.add_argument("--only", nargs="*", default=[], help="parts, by name")
    parser.add_argument("--kernelbench", type=Path)
    for name in ("liger", "fla", "triton"):
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    gpus = list(visible_devices())
    if not gpus:
        parser.error("this machine has no NVIDIA GPU")
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    raise SystemExit(0 if Release(out, options.seconds).run(parts(options), gpus) else 1)


if __name__ == "__main__":
    main()
