"""Has the oracle judge outputs that no candidate had to make."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import torch

from tools.evaluation.trusted import oracle
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.jobs.oracle import OracleAnswer, OracleJob
from tools.records import Problem

Outputs = Sequence[torch.Tensor]


def judged_on(
    monkeypatch: pytest.MonkeyPatch, problem: Problem, given: Sequence[torch.Tensor], *runs: Outputs, distribution: str = oracle.AS_MADE
) -> OracleAnswer:
    """Have the oracle judge what a candidate's runs gave for these inputs."""
    store = SimpleNamespace(
        parameter_tensors=list,
        input_tensors=lambda _: list(given),
        output_tensors=lambda _, run: list(runs[run]),
        forget=lambda _: None,
        close=lambda: None,
    )
    monkeypatch.setattr(oracle, "tensors_of", lambda *_: store)
    call = CallSpec(seed=0, distribution=distribution, group=distribution, slots=len(runs))
    call_plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=(call,))
    answers: list[bytes] = []
    job = OracleJob(call_plans=(call_plan,), skip=((False,),), device="cpu").model_dump_json().encode()
    oracle.judge(SimpleNamespace(job=job, answer=answers.append))  # type: ignore[arg-type]
    return OracleAnswer.model_validate_json(answers[0])


def passes(answer: OracleAnswer) -> bool:
    """Whether the call is right."""
    return all(error.passed for call in answer.calls for error in call.outputs)
