"""What switching a defence off does to the plan of an evaluation, the judgement and the sandbox; for tests alone."""

from __future__ import annotations

import math
from typing import TypeVar

from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.channel import Load
from tools.evaluation.wire.defences import Defence, Defences
from tools.evaluation.wire.distributions import AS_MADE
from tools.evaluation.wire.jobs.oracle import CallVerdict, OracleAnswer
from tools.records import OutputError, Problem

T = TypeVar("T")

PUBLIC_SEED = 42
"""The seed that public evaluators use."""
LOOSE = 1e-2
"""The tolerance that public evaluators use."""
LATE_S = 0.2
"""How much later outputs are collected where they are not collected at once."""
FOREVER_S = 3600.0


def sizes(problems: tuple[T, ...], off: Defences) -> tuple[T, ...]:
    """Leave only the problem as written, which comes last."""
    return problems[-1:] if Defence.SMALL_SIZES in off else problems


def call_plan(plan: CallPlan, off: Defences) -> CallPlan:
    """Plan the calls that an evaluator without these defences would make."""
    calls = plan.calls
    if Defence.DISTRIBUTIONS in off or Defence.FRESH_INPUTS in off:
        calls = tuple(call for call in calls if call.distribution == AS_MADE)
    if not off.isdisjoint([Defence.CHANGED_ELEMENTS, Defence.FRESH_INPUTS]):
        calls = tuple(call for call in calls if not call.follows)
    if Defence.FRESH_INPUTS in off:
        calls = tuple(call.model_copy(update={"seed": calls[0].seed}) for call in calls)
    if Defence.SEVERAL_CALLS in off:
        calls = calls[:1]
    if Defence.SECOND_POISON in off or Defence.SEVERAL_CALLS in off:
        calls = tuple(call.model_copy(update={"slots": 1}) for call in calls)
    shake = None if Defence.SHAKEN_PARAMETERS in off else plan.shake
    if Defence.SECRET_SEEDS in off:
        calls = tuple(_seeded(call) for call in calls)
        shake = shake and PUBLIC_SEED
    return plan.model_copy(update={"calls": calls, "shake": shake})


def _seeded(call: CallSpec) -> CallSpec:
    return call.model_copy(update={"seed": PUBLIC_SEED})


def load(given: Load, off: Defences) -> Load:
    """Poison less."""
    if Defence.SECOND_POISON in off:
        given &= ~Load.POISON_B
    if not off.isdisjoint([Defence.COLLECTED_AT_ONCE, Defence.CALLER_STREAM]):
        given |= Load.LATE
    return given | Load.UNPOISONED if Defence.POISON in off else given


def source(text: str, problem: Problem, off: Defences) -> str:
    """Put the reference beside the candidate, as evaluators of one process do."""
    return f"{text}\n\n{problem.source}" if Defence.SEPARATE_REFERENCE in off else text


def deadline(moment: float, off: Defences) -> float:
    """Wait far longer."""
    return moment + FOREVER_S if Defence.DEADLINE in off else moment


def judged(answer: OracleAnswer, off: Defences) -> OracleAnswer:
    """Judge as loosely as asked for."""
    if off.isdisjoint([Defence.TIGHT_LIMITS, Defence.WORST_ROW, Defence.NON_FINITE]):
        return answer
    return answer.model_copy(update={"calls": tuple(_call(call, off) for call in answer.calls)})


def _call(call: CallVerdict, off: Defences) -> CallVerdict:
    outputs = tuple(_error(error, off) for error in call.outputs)
    return call.model_copy(update={"outputs": outputs, "repeat_agrees": call.repeat_agrees or Defence.TIGHT_LIMITS in off})


def _error(error: OutputError, off: Defences) -> OutputError:
    change: dict[str, float] = {}
    if Defence.TIGHT_LIMITS in off:
        change |= {"limit_relative_l2": max(LOOSE, error.limit_relative_l2), "limit_worst_row": max(LOOSE, error.limit_worst_row)}
    if Defence.WORST_ROW in off:
        change["limit_worst_row"] = math.inf
    if Defence.NON_FINITE in off and not math.isfinite(error.relative_l2):
        change |= {"relative_l2": 0.0, "worst_row": 0.0}
    return error.model_copy(update=change)
