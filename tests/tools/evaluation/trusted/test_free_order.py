"""Equal elements may stand in any order: what a candidate made of another one is right, and what is wrong in every order is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from tests.tools.evaluation.trusted.judged import Outputs, judged_on, passes
from tools.evaluation.trusted import oracle
from tools.evaluation.trusted.ties import Ordering
from tools.evaluation.wire.jobs.oracle import OracleAnswer
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
NEAREST = """
import torch


def nearest(points, others, features):
    distance = (points[:, None] - others[None]).abs().sum(-1)
    near, index = distance.topk(3, dim=-1, largest=False)
    weight = 1.0 / (near + 1.0)
    return (features[index] * (weight / weight.sum(-1, keepdim=True))[..., None]).sum(1)


def example_inputs():
    return torch.rand(20, 3), torch.rand(9, 3), torch.randn(9, 16)
"""
ORDERED = """
import torch


def ordered(keys, payload):
    return payload.gather(-1, keys.argsort(dim=-1))


def example_inputs():
    return torch.rand(6, 4000), torch.rand(6, 4000)
"""
WORDS = """
import torch

ROWS = 300


def words(hidden, w, v):
    inner = hidden + torch.nn.functional.silu(hidden @ w)
    return (inner @ v).float().log_softmax(-1).topk(4, dim=-1)


def example_inputs():
    return tuple(torch.randn(shape).half() * scale for shape, scale in (((ROWS, 64), 1), ((64, 64), 0.1), ((64, 20 * ROWS), 0.1)))
"""
CHOSEN = "experts"
MASK = "torch.zeros_like(logits, dtype=torch.int32).scatter(-1, experts, 1)"
COUNTS = "experts.int(), torch.bincount(experts.flatten(), minlength=12)"
OFFSETS = "experts + 12 * torch.arange(6, device=logits.device)[:, None]"
SUM = "experts.sum(-1)"
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
    return judged_on(monkeypatch, load_problem(file), [tied()], *runs)


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


def clouds(ties: str) -> list[torch.Tensor]:
    """Points, others of which some have the same distance of every point, and their features; zeros tie however inputs are rounded."""
    generator = torch.Generator().manual_seed(1)
    points, others, features = (
        torch.rand(20, 3, generator=generator),
        torch.rand(9, 3, generator=generator),
        torch.randn(9, 16, generator=generator),
    )
    if ties == "few":
        others[[2, 4, 7, 8]] = 0.0
        points[::2] *= 0.1
    if ties == "many":
        others[2:] = 0.0
        features *= torch.rand(9, 16, generator=generator) < 0.3
    return [points, others, features]


def neighbours(given: Sequence[torch.Tensor], *, last: bool = True, beyond: int = 0) -> torch.Tensor:
    """Mix the features of three neighbours, the last of equal ones first, leaving out the nearest `beyond`."""
    points, others, features = (given[0], *(one.flip(0) if last else one for one in given[1:]))
    near, index = (points[:, None] - others[None]).abs().sum(-1).sort(dim=-1, stable=True)
    weight = 1.0 / (near[:, beyond : beyond + 3] + 1.0)
    mixed: torch.Tensor = (features[index[:, beyond : beyond + 3]] * (weight / weight.sum(-1, keepdim=True))[..., None]).sum(1)
    return mixed


@pytest.fixture
def judge_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., OracleAnswer]:
    """The oracle, given clouds and what a candidate made of them."""
    file = tmp_path / "nearest.py"
    file.write_text(NEAREST)
    problem: Problem = load_problem(file)
    return lambda given, value, as_made=True: judged_on(
        monkeypatch, problem, given, [value], [value], distribution=oracle.AS_MADE if as_made else "sparse"
    )


@pytest.mark.parametrize("ties", ["few", "many"])
def test_floats_that_follow_from_another_order_are_right(judge_nearest: Callable[..., OracleAnswer], ties: str) -> None:
    """Which of the neighbours at one distance is taken is nobody's choice, and no output shows it; a note says what was left out."""
    given = clouds(ties)
    assert not torch.allclose(neighbours(given), neighbours(given, last=False))
    answer = judge_nearest(given, neighbours(given), ties == "few")
    assert passes(answer)
    assert answer.calls[0].left_out[0] > 0
    assert any("depend on how equal elements are put in order: not judged" in note for note in answer.notes)


@pytest.mark.parametrize("ties", ["none", "few", "many"])
def test_farther_neighbours_are_wrong_among_equal_ones_too(judge_nearest: Callable[..., OracleAnswer], ties: str) -> None:
    """A kernel that takes the second to the fourth neighbour is wrong in the rows without ties, whatever the others have."""
    given = clouds(ties)
    if ties == "many":
        given[1][:6], given[2][:6] = torch.rand(6, 3), torch.randn(6, 16)
    assert not passes(judge_nearest(given, neighbours(given, beyond=1)))


def test_a_row_far_from_what_any_order_gives_is_wrong(judge_nearest: Callable[..., OracleAnswer]) -> None:
    """That it depends on the order frees it to lie near the span of the orders alone; no number is none of them."""
    given = clouds("many")
    value = neighbours(given)
    for broken in (100.0, float("nan")):
        assert not passes(judge_nearest(given, torch.where(torch.arange(20)[:, None] == 3, broken, value)))


def test_rows_without_ties_are_judged_as_ever(judge_nearest: Callable[..., OracleAnswer]) -> None:
    """Beside rows that are left out, one that depends on no order is wrong by a hundredth."""
    given = clouds("few")
    value = neighbours(given)
    same = (value == neighbours(given, last=False)).all(-1)
    assert 0 < int(same.sum()) < 20
    assert not passes(judge_nearest(given, torch.where(same[:, None], value * 1.01, value)))


def test_a_few_equal_keys_free_no_other_elements_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads in the order of keys, four pairs of which are equal and far apart in their payload: the others' order counts as ever."""
    file = tmp_path / "ordered.py"
    file.write_text(ORDERED)
    problem: Problem = load_problem(file)
    generator = torch.Generator().manual_seed(1)
    keys, payload = torch.rand(6, 4000, generator=generator), torch.rand(6, 4000, generator=generator)
    keys[:, 1:8:2] = keys[:, 0:8:2]
    payload[:, 0:8:2], payload[:, 1:8:2] = 0.0, 1.0
    right = payload.gather(-1, keys.argsort(dim=-1, stable=True))
    turned = payload.flip(-1).gather(-1, keys.flip(-1).argsort(dim=-1, stable=True))
    assert not torch.equal(right, turned)
    assert passes(judged_on(monkeypatch, problem, [keys, payload], [turned], [turned]))
    assert not passes(judged_on(monkeypatch, problem, [keys, payload], [payload], [payload]))


def words(tmp_path: Path, rows: int) -> Problem:
    """Words are chosen by logits in float16."""
    file = tmp_path / "words.py"
    file.write_text(WORDS.replace("300", str(rows)))
    return load_problem(file)


def logits(problem: Problem) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Draw inputs; give logarithms of probabilities that are rounded less often than the reference's, and as a right kernel's may be."""
    torch.manual_seed(3)
    inputs = [torch.randn(spec.shape).half() * scale for spec, scale in zip(problem.abi.inputs, (1, 0.1, 0.1), strict=True)]
    hidden, w, v = (each.double() for each in inputs)
    inner = hidden + torch.nn.functional.silu(hidden @ w)
    return inputs, (inner @ v).half().float().log_softmax(-1)


def test_what_half_precision_cannot_tell_may_stand_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that rounds less often chooses other words than the reference, of which the rounding alone decides."""
    problem = words(tmp_path, 300)
    inputs, scores = logits(problem)
    hidden, w, v = inputs
    reference = ((hidden + torch.nn.functional.silu(hidden @ w)) @ v).float().log_softmax(-1).topk(4)
    values, indices = scores.topk(4)
    assert (indices != reference.indices).any()
    assert passes(judged_on(monkeypatch, problem, inputs, (values, indices)))


@pytest.mark.parametrize("place", [0, 3])
def test_a_word_that_is_clearly_less_likely_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """The next word but one in place of another is further off than rounding takes it: wrong, be its score given or not."""
    problem = words(tmp_path, 12)
    inputs, scores = logits(problem)
    values, indices = scores.topk(6)
    chosen = [*range(4)]
    chosen[place] = place + 2
    gap = (values[:, place] - values[:, place + 2]).max()
    assert gap > 0.05
    row = int((values[:, place] - values[:, place + 2]).argmax())
    named, likely = indices[:, :4].clone(), values[:, :4].clone()
    named[row], likely[row] = indices[row, chosen], values[row, chosen]
    assert not passes(judged_on(monkeypatch, problem, inputs, (likely, named)))
    assert not passes(judged_on(monkeypatch, problem, inputs, (values[:, :4], named)))
