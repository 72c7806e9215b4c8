"""Answers of a dispatcher: each question once, whoever asks it again, also after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.spool_worker import small_problem
from tools.cluster.dispatching import Answers, key_of
from tools.cluster.records import Failure, Question, Reply
from tools.hardware import load_sheet
from tools.records import Evaluation, EvaluationRequest, Verdict

Asked = Callable[[], Coroutine[Any, Any, Reply]]


def _counted(reply: Reply) -> tuple[list[int], Asked]:
    asked: list[int] = []

    async def ask() -> Reply:
        asked.append(1)
        await asyncio.sleep(0.01)
        return reply

    return asked, ask


def _judged(verdict: Verdict) -> Reply:
    return Reply(evaluation=Evaluation(candidate="c", verdict=verdict))


async def test_a_question_is_asked_once_whoever_repeats_it(tmp_path: Path) -> None:
    """Two at the same time wait for one answer; after a kill it comes from the file."""
    asked, ask = _counted(_judged(Verdict.WRONG))
    first = Answers(tmp_path / "answers.sqlite3")
    both = await asyncio.gather(first.given("k", ask), first.given("k", ask))
    again = await Answers(tmp_path / "answers.sqlite3").given("k", ask)
    assert both == [again, again]
    assert len(asked) == 1


@pytest.mark.parametrize("reply", [_judged(Verdict.INFRASTRUCTURE), Reply(failure=Failure(what="A disk is full.", mend="Empty it."))])
async def test_what_says_nothing_about_a_candidate_is_asked_again(tmp_path: Path, reply: Reply) -> None:
    """A machine that failed may have been mended meanwhile."""
    asked, ask = _counted(reply)
    answers = Answers(tmp_path / "answers.sqlite3")
    await answers.given("k", ask)
    await answers.given("k", ask)
    assert len(asked) == 2


def test_the_key_of_a_question_is_that_of_the_evaluation() -> None:
    """A run that is done again asks under the same keys; counters are read anew."""
    request = EvaluationRequest(problem=small_problem(), candidate="a", source="x", target=load_sheet("h200"))
    same = request.model_copy(update={"candidate": "b"})
    other = request.model_copy(update={"stage": "confirm"})
    assert key_of(Question(evaluation=request)) == key_of(Question(evaluation=same)) != key_of(Question(evaluation=other))
    assert not key_of(Question(counters=request))
    assert key_of(Question(problem=request.problem, target=request.target)).startswith("baselines ")
