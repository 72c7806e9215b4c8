"""A worker process whose pool judges by the comments in a candidate's text, so that tests of the spool cost no evaluation.

Usage: python -m tests.support.spool_worker SPOOL LOG [drain] [gpu=h200] [lease=SECONDS] [session=NAME]
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from pathlib import Path

from tools.errors import MachineError
from tools.profiling.ncu import Counters
from tools.records import (
    ABI,
    Baselines,
    Correctness,
    Estimate,
    Evaluation,
    EvaluationRequest,
    HardwareSheet,
    OperatorFamily,
    OutputError,
    Problem,
    ProblemForm,
    Sample,
    TensorSpec,
    Tier,
    Timing,
    Verdict,
    Work,
)
from tools.spool import Spool, Worker
from tools.spool.identity import myself
from tools.spool.records import Announcement, Identity

SOURCE = """import torch

def exp(x):
    return torch.exp(x)

def example_inputs():
    return [torch.randn(64, 64)]
"""


def small_problem(name: str = "exp") -> Problem:
    """A pointwise problem, made without torch."""
    x = TensorSpec(name="x", shape=(64, 64), dtype="float32")
    work = Work(
        operators=("aten.exp.default",),
        families=(OperatorFamily.POINTWISE,),
        matmul_flops=0,
        pointwise_flops=x.numel,
        eager_bytes=2 * x.nbytes,
    )
    abi = ABI(arguments=(x,), outputs=(x,))
    return Problem(name=name, form=ProblemForm.FUNCTION, entry="exp", source=SOURCE + f"# {name}\n", abi=abi, work=work)


class ScriptedPool:
    """Reads `# seconds:`, `# verdict:`, `# weakened:` and `# broken:` out of a source; with a device its times count as measured."""

    name = "scripted"

    def __init__(self, log: Path, device: str = "") -> None:
        """Append a line to `log` for each evaluation begun and for each ended."""
        self._log = log
        self._device = device

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Do as the text says."""
        self._write(f"begin {request.key}")
        await asyncio.sleep(float(_read(request.source, "seconds") or 0))
        if reason := _read(request.source, "broken"):
            raise MachineError(f"The machine is broken: {reason}.", "Mend it.")
        self._write(f"end {request.key}")
        verdict = Verdict(_read(request.source, "verdict") or "PASS")
        if verdict is not Verdict.PASS:
            off = _read(request.source, "weakened")
            return Evaluation(candidate=request.candidate, verdict=verdict, weakened=(off,) if off else ())
        fine = OutputError(
            output="output0",
            relative_l2=1e-7,
            worst_row=1e-7,
            reference_relative_l2=1e-7,
            reference_worst_row=1e-7,
            limit_relative_l2=4e-7,
            limit_worst_row=4e-7,
        )
        checked = Correctness(outputs=(fine,), calls=1, sizes=("as written",), executor="gpu" if self._device else "interpreter")
        times = {"timing": self._timing()} if self._device else {"estimate": _estimate(50.0)}
        return Evaluation.model_validate(
            {"candidate": request.candidate, "verdict": verdict, "correctness": checked, "seconds": 0.1, **times}
        )

    async def baselines(self, problem: Problem, target: HardwareSheet) -> Baselines:
        """Eager takes 100 µs."""
        self._write(f"baselines {problem.name}")
        if self._device:
            return Baselines(tier=Tier.IN_PROCESS, samples={"eager": _sample(100.0)}, device=self._device)
        return Baselines(tier=Tier.ESTIMATED, estimate=_estimate(100.0), device=target.title)

    async def counters(self, request: EvaluationRequest) -> Counters:
        """Count nothing."""
        return Counters(note="Nothing was counted.")

    async def close(self) -> None:
        """Nothing is open."""

    def _timing(self) -> Timing:
        return Timing(
            tier=Tier.BRACKETED,
            candidate=_sample(50.0),
            baselines={"eager": _sample(100.0)},
            speedups={"eager": (2.0, 1.9, 2.1)},
            device=self._device,
        )

    def _write(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(line + "\n")


def _read(source: str, name: str) -> str:
    found = re.search(rf"# {name}: (\S+)", source)
    return found.group(1) if found else ""


def _sample(us: float) -> Sample:
    return Sample(median_us=us, low_us=us, high_us=us, count=10)


def _estimate(us: float) -> Estimate:
    return Estimate(target="h200", candidate_us=us, eager_us=100.0, floor_us=1.0, model="text 1")


def announcement(gpu: str = "", identity: Identity | None = None) -> Announcement:
    """What a scripted worker says of itself."""
    now = time.time()
    return Announcement(
        worker=identity or myself(),
        executor="gpu" if gpu else "interpreter",
        target=gpu or None,
        devices=(f"Scripted {gpu}",) if gpu else (),
        versions={"torch": "2.7.18"},
        since=now,
        written=now,
    )


async def main(spool: str, log: str, *options: str) -> None:
    """Work until SIGTERM, or until the spool is drained."""
    given = dict(option.split("=") for option in options if "=" in option)
    gpu = given.get("gpu", "")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    # another host's worker: nobody can look whether its process lives
    identity = myself().model_copy(update={"boot": "", "host": "elsewhere"}) if "far" in options else None
    worker = Worker(
        Spool(Path(spool)),
        ScriptedPool(Path(log), f"Scripted {gpu}" if gpu else ""),
        announcement(gpu, identity),
        lease_s=float(given.get("lease", "120")),
    )
    summary = await worker.run(stop, drain="drain" in options)
    print(summary.answered, summary.given_back, os.getpid())  # noqa: T201 - read by tests


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
