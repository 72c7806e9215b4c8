"""What is told of an evaluation: its verdict, its time with the tier, and how much faster it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelwright.viewers.facts import Value
from tools.records import Evaluation
from tools.tracing.work import Work


def evaluation_attributes(evaluation: Evaluation) -> dict[str, Value | None]:
    """Its outcome; no figure where it has none."""
    return {
        "kernelwright.candidate": evaluation.candidate,
        "kernelwright.verdict": evaluation.verdict.value,
        "kernelwright.tier": str(evaluation.tier) if evaluation.tier else None,
        "kernelwright.time_us": evaluation.time_us,
        "kernelwright.speedup": evaluation.speedup,
        "kernelwright.gpu_seconds": evaluation.gpu_seconds,
    }


def evaluation_events(evaluation: Evaluation) -> dict[str, Mapping[str, Value]]:
    """The result in the words of the conventions."""
    result: dict[str, Value] = {"gen_ai.evaluation.name": "speedup", "gen_ai.evaluation.score.label": evaluation.verdict.value}
    if evaluation.speedup is not None:
        result["gen_ai.evaluation.score.value"] = evaluation.speedup
    return {"gen_ai.evaluation.result": result}


def started_at(works: Iterable[Work], written: float) -> float:
    """When an evaluation began that was written down at `written`; that moment where runs of older versions did not take it down."""
    return max((work.started for work in works if work.started <= written), default=written)
