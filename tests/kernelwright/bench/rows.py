"""A synthetic set of result lines: made up for tests, measured nowhere, small enough to be worked out by hand."""

from __future__ import annotations

from typing import Any

from agents import TeamSettings
from graphs.run.settings import RunSettings
from kernelwright.bench.header import Header
from kernelwright.bench.merging import Gathered
from kernelwright.bench.row import ResultRow, Status, Step
from kernelwright.bench.settings import BenchSettings
from tools.records import Budget, Spent

HEADER = Header(
    started="2026-01-01 00:00:00",
    command="kernelwright bench synthetic",
    device="Synthetic GPU",
    driver="1",
    host="none",
    versions={"torch": "1", "triton": "1"},
    commit="0",
    code="0",
)

FIRST = "greedy/off/builtin"


def settings(**changes: Any) -> BenchSettings:
    """Settings with a budget of four evaluations."""
    given = {"run": RunSettings(target="h200", budget=Budget(evaluations=4)), "agents": {"builtin": TeamSettings()}, **changes}
    return BenchSettings(suite="synthetic", kind="kernelbench", **given)


def row(problem: str, curve: list[float] | None = None, **changes: Any) -> ResultRow:
    """A row whose reference takes 100 µs eager and 50 µs compiled, on a roofline floor of 10 µs."""
    level, number = problem.removeprefix("level").partition("_")[0].split("/")
    steps = tuple(Step(speedup=value, gpu_s=2.0 * place) for place, value in enumerate(curve or [1.0], 1))
    given: dict[str, Any] = {
        "bench": settings().id,
        "problem": problem,
        "level": int(level),
        "number": int(number),
        "arm": FIRST,
        "seed": 0,
        "status": Status.REFERENCE,
        "reason": "made up",
        "basis": "measured",
        "run": f"run-{problem}",
        "families": ("softmax",),
        "baselines_us": {"eager": 100.0, "compile": 50.0},
        "floor_us": 10.0,
        "curve": steps,
        "spent": Spent(evaluations=len(steps), gpu_s=2.0 * len(steps)),
        "tier": "in-process",
        "device": "Synthetic GPU",
    }
    return ResultRow(**(given | changes))


def kernel(problem: str, us: float, curve: list[float] | None = None, **changes: Any) -> ResultRow:
    """A row that delivers a kernel of `us` microseconds, timed beside both baselines."""
    ratios = {"eager": 100.0 / us, "compile": 50.0 / us}
    speedups = {name: (value, 0.9 * value, 1.1 * value) for name, value in ratios.items()}
    found = curve or [ratios["compile"]]
    given = {"status": Status.KERNEL, "right": True, "speedups": speedups, "best_right": ratios, "candidate_us": us}
    return row(problem, found, **(given | changes))


def gathered(*rows: ResultRow, **changes: Any) -> Gathered:
    """Rows as the shards of a bench would give them."""
    return Gathered(settings(**changes), (HEADER,), rows)
