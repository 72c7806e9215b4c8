"""Equal elements may stand in any order: what a candidate made of another one is right, and what is wrong in every order is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tools.evaluation.trusted import oracle
from tools.evaluation.trusted.ties import Ordering
from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.jobs.oracle import OracleAnswer, OracleJob
from tools.problems import load_problem
from tools.records import Problem

ROUTING = """
import torch


def routing(logits):
    weights, experts = torch.topk(torch.softmax(logits.float(), dim=-1), 3, dim=-1)
    return weights / weights.sum(dim=-1, keepdim=True), RESULT


def example_inputs():
    return (torch.rand(6, 12).argsort(dim=-1).bfloat16(),)
"""
CHOSEN = "experts"
MASK = "torch.zeros_like(logits, dtype=torch.int32).scatter(-1, experts, 1)"
COUNTS = "experts.int(), torch.bincount(experts.flatten(), minlength=12)"
OFFSETS = "experts + 12 * torch.arange(6, device=logits.device)[:, None]"
SUM = "experts.sum(-1)"
Outputs = Sequence[torch.Tensor]
Candidate = Callable[[torch.Tensor], Outputs]


def tied() -> torch.Tensor:
    """Logits of which some rows have equal elements among the first three, or as the third and the fourth."""
    logits = torch.stack([torch.randperm(12, generator=torch.Generator().manual_seed(row)) for row in range(6)]).bfloat16()
    order = logits.argsort(descending=True)
    logits[0, order[0, 1]] = logits[0, order[0, 0]]
    logits[1, order[1, 3]] = logits[1, order[1, 2]]
    logits[2, order[2, 1:5]] = float(logits[2, order[2, 0]])
    return logits


def last_first(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose three, the last of equal ones first."""
    scores = torch.softmax(logits.float(), -1)
    weights, experts = scores.flip(-1).sort(stable=True, descending=True)
    chosen = weights[:, :3]
    return chosen / chosen.sum(-1, keepdim=True), 11 - experts[:, :3]


def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, *runs: Outputs) -> OracleAnswer:
    """Have the oracle judge what a candidate's runs gave for logits that tie."""
    file = tmp_path / "routing.py"
    file.write_text(ROUTING.replace("RESULT", result))
    problem: Problem = load_problem(file)
    store = SimpleNamespace(
        parameter_tensors=list,
        input_tensors=lambda _: [tied()],
        output_tensors=lambda _, run: list(runs[run]),
        forget=lambda _: None,
        close=lambda: None,
    )
    monkeypatch.setattr(oracle, "tensors_of", lambda *_: store)
    call = CallSpec(seed=0, distribution=oracle.AS_MADE, group=oracle.AS_MADE, slots=len(runs))
    call_plan = CallPlan(problem=problem.model_dump_json(), shake=None, calls=(call,))
    answers: list[bytes] = []
    job = OracleJob(call_plans=(call_plan,), skip=((False,),), device="cpu").model_dump_json().encode()
    oracle.judge(SimpleNamespace(job=job, answer=answers.append))  # type: ignore[arg-type]
    return OracleAnswer.model_validate_json(answers[0])


def passes(answer: OracleAnswer) -> bool:
    """Whether the call is right."""
    return all(error.passed for call in answer.calls for error in call.outputs)


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., OracleAnswer]:
    """The oracle, given what the second output is and what runs gave."""
    return lambda result, *runs: judged(tmp_path, monkeypatch, result, *runs)


def test_another_order_of_equal_elements_is_right(judge: Callable[..., OracleAnswer]) -> None:
    """The reference names the first of equal ones here, the candidate the last: its indices are as right."""
    weights, experts = last_first(tied())
    assert not torch.equal(experts, torch.softmax(tied().float(), -1).topk(3).indices)
    answer = judge(CHOSEN, (weights, experts))
    assert passes(answer)
    assert answer.calls[0].left_out == (0.0, 0.0)


def test_indices_into_the_whole_tensor_name_the_same(judge: Callable[..., OracleAnswer]) -> None:
    """Counted row by row, they show the order as well."""
    weights, experts = last_first(tied())
    assert passes(judge(OFFSETS, (weights, experts + 12 * torch.arange(6)[:, None])))


def test_what_follows_from_the_order_is_held_against_the_same_one(judge: Callable[..., OracleAnswer]) -> None:
    """Counts of the experts that were named are right, counts of others are not."""
    weights, experts = last_first(tied())
    other = torch.softmax(tied().float(), -1).topk(3).indices
    assert passes(judge(COUNTS, (weights, experts.int(), experts.flatten().bincount(minlength=12))))
    assert not passes(judge(COUNTS, (weights, experts.int(), other.flatten().bincount(minlength=12))))


def test_two_runs_may_choose_two_orders(judge: Callable[..., OracleAnswer]) -> None:
    """Each is held against its own, and they do not disagree."""
    first = last_first(tied())
    second = (first[0], torch.softmax(tied().float(), -1).topk(3).indices)
    answer = judge(CHOSEN, first, second)
    assert passes(answer)
    assert answer.calls[0].repeat_agrees


@pytest.mark.parametrize("row", [0, 1, 5])
def test_an_element_named_twice_is_wrong(judge: Callable[..., OracleAnswer], row: int) -> None:
    """Whether another one equals it or not."""
    weights, experts = last_first(tied())
    experts[row, 1 if row == 0 else 2] = experts[row, 0 if row == 0 else 1]
    assert not passes(judge(CHOSEN, (weights, experts)))


@pytest.mark.parametrize("row", range(6))
def test_a_smaller_element_is_wrong(judge: Callable[..., OracleAnswer], row: int) -> None:
    """In rows that tie as in others; the answer shows where."""
    weights, experts = last_first(tied())
    experts[row, 2] = tied()[row].argmin()
    answer = judge(CHOSEN, (weights, experts))
    assert not passes(answer)
    assert [element.index for element in answer.calls[0].wrong[0].first] == [(row, 2)]


def test_where_no_output_shows_the_order_all_else_is_judged(judge: Callable[..., OracleAnswer]) -> None:
    """A mask's elements that depend on it are left out, which a note says; one that does not is wrong as ever."""
    weights, experts = last_first(tied())
    mask = torch.zeros(6, 12, dtype=torch.int32).scatter(-1, experts, 1)
    answer = judge(MASK, (weights, mask))
    assert passes(answer)
    assert answer.calls[0].judged
    assert any("of output1 in a call depend on how equal elements are put in order: not judged" in note for note in answer.notes)
    mask[5, 0] ^= 1
    assert not passes(judge(MASK, (weights, mask)))


def test_many_neighbours_that_are_near_are_not_all_equal() -> None:
    """Each within float32's rounding of the next, the first and the last of a thousand are far apart: only equal ones change places."""
    x = (1 + torch.arange(1000, dtype=torch.float64) * 2.0**-23).float()
    x[500] = x[499]
    ordering = Ordering(x, 0, largest=True, picked=1000, only_indices=False)
    indices = ordering.put(torch.arange(1000).flip(0))[1]
    assert indices.tolist() == list(range(999, -1, -1))
    assert ordering.put(torch.arange(1000))[1].tolist() == [*range(999, 500, -1), 499, 500, *range(498, -1, -1)]


def test_a_few_within_rounding_may_stand_in_any_order() -> None:
    """Another way of computing them in float32 may turn them round."""
    x = torch.tensor([3.0, 1.0, 1.0 + 2.0**-23, 2.0])
    ordering = Ordering(x, 0, largest=True, picked=3, only_indices=False)
    assert ordering.put(torch.tensor([0, 1, 2, 3]))[1].tolist() == [0, 3, 1]
    assert ordering.put(torch.tensor([3, 2, 1, 0]))[1].tolist() == [0, 3, 2]
