"""What calls come to, by whatever they are grouped by."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import TeamSettings
from agents.models.bills import Bill
from graphs.optimize.costs import SEARCH, costs
from kernelwright.screen.costs import cost_facts, show_costs
from tests.agents.conftest import Serve
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.loop import small_services
from tests.support.scenarios import block_team
from tests.support.scripted_rules import Rule
from tools.records import Candidate, Evaluation, Plan, Verdict

PRICES = '{"provider": "me", "source": "x", "as_of": "2026-11-20", "models": {"scripted": {"input": 2, "cached_input": 1, "output": 10}}}'


async def test_a_run_adds_up_by_role_plan_and_candidate(tmp_path: Path, serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """Every grouping adds up to what the run spent; a failed call is listed and costs nothing."""
    (tmp_path / "prices.json").write_text(PRICES)
    server = serve(Rule(role="reviewer", status=500, uses=1), *block_team())
    team = TeamSettings(model=model_settings(server, retries=0), team="full", roles=EVERY, prices=str(tmp_path / "prices.json"))
    played = await play(tmp_path / "run", team)
    found, spent = costs(played.store), played.store.spent()
    assert found.run.input_tokens + found.run.output_tokens == spent.tokens
    assert found.run.usd == pytest.approx(spent.money_usd) != 0
    for groups in (found.roles, found.models, found.plans, found.candidates):
        assert sum(groups.values(), Bill()).model_dump() == pytest.approx(found.run.model_dump())
    assert set(found.plans) == {*played.store.all("plan", Plan), SEARCH}
    assert set(found.candidates) == {*played.store.all("candidate", Candidate), SEARCH}
    facts = cost_facts(played.store)
    assert [one["role"] for one in facts["failed"]] == ["reviewer"]
    show_costs(facts)
    assert "reasoning" in capsys.readouterr().out


async def test_an_unknown_price_is_said(tmp_path: Path, serve: Serve) -> None:
    """Where the price is not known there are tokens, and no sum that looks like money."""
    played = await play(tmp_path / "run", TeamSettings(model=model_settings(serve(*block_team())), team="full", roles=EVERY))
    found = costs(played.store)
    assert found.run.unpriced == found.run.calls > 0
    assert found.run.usd == 0


async def test_a_run_without_a_model_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no model was called there are no tables of zeros."""
    show_costs(cost_facts(small_services(tmp_path / "run").store))
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "no model calls"
    assert "reasoning" not in said


async def test_the_seconds_of_evaluations_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was waited for is named, a phase's parts stand behind it, and what has no name is the rest."""
    store = small_services(tmp_path / "run").store
    phases = {"place": 1.0, "build": 2.0, "queue": 3.0, "check": 4.0, "check: calls": 3.5, "time": 0.5}
    judged = Evaluation(candidate="a", verdict=Verdict.WRONG, seconds=11.0, gpu_seconds=4.5, phase_seconds=phases)
    store.put("evaluation", "key", judged, subject="a")
    show_costs(cost_facts(store))
    said = " ".join(capsys.readouterr().out.split())
    assert "1 evaluations: 11.0 s (1.0 s waiting for a place among those judged at once, 3.0 s waiting for turns on the device," in said
    assert "build 2.0 s, check 4.0 s (calls 3.5), time 0.5 s, other 0.5 s), 4 s of a GPU" in said
