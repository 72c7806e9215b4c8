"""What is said before a run about what its model calls may cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import TeamSettings, team_settings
from agents.models import Usage
from agents.models.calls import CallRecord
from agents.team.forecast import forecast
from kernelwright.screen.forecast import forecast_notes
from tools.records import Budget
from tools.tracing import RunStore

PRICES = '{"provider": "me", "source": "x", "as_of": "2026-11-20", "models": {"m": {"input": 1, "output": 10}}}'


def _team(folder: Path, **fields: object) -> TeamSettings:
    (folder / "prices.json").write_text(PRICES)
    return team_settings("m", "http://127.0.0.1:9/v1", prices=str(folder / "prices.json")).model_copy(update=fields)


def _run(home: Path, name: str, tokens: int, usd: float | None, model: str = "m") -> None:
    store = RunStore.create(home / "runs" / name, {"run": name})
    used = Usage(input_tokens=tokens)
    store.put_call(
        "k", CallRecord(role="coder", purpose="p", model=model, messages=(), text="", usage=used, cost_usd=usd).model_dump_json()
    )
    store.close()


def test_calls_are_bounded_by_evaluations_and_lengths(tmp_path: Path) -> None:
    """A call of each role for each evaluation, each as long as it may be: 20,000 tokens of prompt and 16,384 of reply."""
    expected = forecast(_team(tmp_path), Budget(evaluations=2))
    assert expected.calls == {"coder": 2}
    assert expected.tokens == 2 * (20_000 + 16_384)
    assert expected.usd == pytest.approx(2 * (20_000 * 1 + 16_384 * 10) / 1e6)


def test_a_planner_and_tools_add_calls(tmp_path: Path) -> None:
    """A full team's planner asks too, and a coder with tools asks again after each."""
    team = _team(tmp_path, team="full")
    frame = team.frame.model_copy(update={"tools": 3})
    assert forecast(team.model_copy(update={"frame": frame}), Budget(evaluations=2)).calls == {"planner": 2, "coder": 8}


def test_without_a_model_nothing_is_said(tmp_path: Path) -> None:
    """Built-in agents cost nothing, and no line says so."""
    assert forecast_notes(TeamSettings(), Budget(), tmp_path) == ()


def test_limits_are_named_where_none_is_set(tmp_path: Path) -> None:
    """A user who set no limit learns what they are called; one who did is not told."""
    assert forecast_notes(_team(tmp_path), Budget(evaluations=2), tmp_path)[0].endswith("$0.37. --usd and --tokens limit them.")
    assert forecast_notes(_team(tmp_path), Budget(evaluations=2, money_usd=1), tmp_path)[0].endswith("$0.37.")
    assert "Without --budget" in forecast_notes(_team(tmp_path), Budget(evaluations=0), tmp_path)[0]


def test_earlier_runs_with_the_model_are_a_figure(tmp_path: Path) -> None:
    """The median of what runs with this very model came to stands beside the bound; runs with another model do not count."""
    for name, tokens, usd in (("a", 100, 0.1), ("b", 300, 0.3), ("c", 900, 0.9)):
        _run(tmp_path, name, tokens, usd)
    _run(tmp_path, "other", 10_000, 5.0, model="n")
    assert forecast_notes(_team(tmp_path), Budget(), tmp_path)[1:] == (
        "In 3 earlier runs here with m they came to 300 tokens and $0.300, in the median.",
    )


def test_an_earlier_run_of_unknown_price_has_no_money(tmp_path: Path) -> None:
    """What a run cost is not told where the price of one of its calls is not known."""
    _run(tmp_path, "a", 100, None)
    assert (
        forecast_notes(_team(tmp_path), Budget(), tmp_path)[1] == "In one earlier run here with m they came to 100 tokens, in the median."
    )
