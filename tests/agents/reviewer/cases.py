"""Review cases: a child beside its parent, with chosen times and spreads."""

from __future__ import annotations

from typing import Any

from agents.reviewer.protocol import ReviewCase
from tools.records import (
    ABI,
    ROOT,
    Action,
    ActionKind,
    Baselines,
    Bottleneck,
    Candidate,
    Correctness,
    Estimate,
    Evaluation,
    OperatorFamily,
    OutputError,
    Plan,
    Problem,
    ProblemForm,
    Profile,
    Sample,
    TensorSpec,
    Tier,
    Timing,
    Verdict,
    Work,
)

ROWS = TensorSpec(name="x", shape=(4096, 1024), dtype="float32")
SOFTMAX = Problem(
    name="softmax",
    form=ProblemForm.FUNCTION,
    entry="f",
    source="def f(x): ...",
    abi=ABI(arguments=(ROWS,), outputs=(ROWS.model_copy(update={"name": "output0"}),)),
    work=Work(
        operators=("aten.softmax.int",), families=(OperatorFamily.SOFTMAX,), matmul_flops=0, pointwise_flops=1, eager_bytes=2 * ROWS.nbytes
    ),
)
TILING = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": 1024})


def error(relative_l2: float = 1e-7) -> OutputError:
    """Errors of one output, of which 4e-7 is allowed."""
    return OutputError(
        output="output0",
        relative_l2=relative_l2,
        worst_row=relative_l2,
        reference_relative_l2=1e-7,
        reference_worst_row=1e-7,
        limit_relative_l2=4e-7,
        limit_worst_row=4e-7,
    )


def sample(median_us: float) -> Sample:
    """Fifty times around a median."""
    return Sample(median_us=median_us, low_us=0.99 * median_us, high_us=1.01 * median_us, count=50)


def timing(candidate_us: float, eager_us: float = 100.0, compile_us: float = 80.0, spread: float = 0.005, **changed: Any) -> Timing:
    """A timing beside eager and torch.compile, each speed-up with this relative half width of its interval."""
    baselines = {"eager": eager_us, "compile": compile_us}
    fields: dict[str, Any] = {
        "tier": Tier.IN_PROCESS,
        "candidate": sample(candidate_us),
        "baselines": {name: sample(us) for name, us in baselines.items()},
        "speedups": {
            name: (us / candidate_us, us / candidate_us * (1 - spread), us / candidate_us * (1 + spread)) for name, us in baselines.items()
        },
        "device": "NVIDIA H200",
        "throttled": False,
    }
    return Timing(**{**fields, **changed})


def estimate(candidate_us: float, eager_us: float = 100.0, **changed: str) -> Estimate:
    """An estimate for an H200."""
    named = {"target": "h200", "model": "model 1", **changed}
    return Estimate(candidate_us=candidate_us, eager_us=eager_us, floor_us=1.0, **named)


def passed(figure: Timing | Estimate | None, candidate: str = "child", **fields: Any) -> Evaluation:
    """A passing evaluation with this figure."""
    checked = Correctness(
        outputs=(error(),), calls=3, sizes=("as written",), executor="gpu" if isinstance(figure, Timing) else "interpreter"
    )
    named = {"timing" if isinstance(figure, Timing) else "estimate": figure}
    return Evaluation(candidate=candidate, verdict=Verdict.PASS, correctness=checked, **named, **fields)


def failed(verdict: Verdict, **fields: Any) -> Evaluation:
    """An evaluation that did not pass."""
    return Evaluation(candidate="child", verdict=verdict, **fields)


def measured_baselines(eager_us: float = 100.0, compile_us: float = 80.0) -> Baselines:
    """Baselines that were timed."""
    return Baselines(tier=Tier.IN_PROCESS, samples={"eager": sample(eager_us), "compile": sample(compile_us)}, device="NVIDIA H200")


def estimated_baselines() -> Baselines:
    """Baselines of a machine without a GPU."""
    return Baselines(tier=Tier.ESTIMATED, estimate=estimate(100.0), device="h200")


def case(evaluation: Evaluation, parent: Evaluation | None, baselines: Baselines | None = None, **changed: Any) -> ReviewCase:
    """A child made by tiling; its parent is the reference where `parent` is None."""
    above = ROOT if parent is None else "parent"
    fields: dict[str, Any] = {
        "problem": SOFTMAX,
        "plan": Plan(parent=above, action=TILING, rationale="", planner="builtin"),
        "candidate": Candidate(problem=SOFTMAX.id, parent=above, action=TILING, source="child text", coder="builtin"),
        "evaluation": evaluation,
        "profile": None,
        "parent_source": "" if parent is None else "parent text",
        "parent_evaluation": parent,
        "baselines": baselines or measured_baselines(),
        "parent_profile": Profile(candidate=above, target="h200", figures=(), bottleneck=Bottleneck.EXCESS_TRAFFIC, evidence="."),
    }
    return ReviewCase(**{**fields, **changed})
