"""Runs that the release before words were renamed left behind; `tests/recorded/README.md` says how they were made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.coder.tuning import TuningSpace, structure_of
from graphs.optimize.execute import execute
from graphs.run.assembly import Shared, assemble
from graphs.run.records import Tuning
from kernelwright.cli.app import app
from knowledge.protocol import NoMemory
from tests.support.loop import TextPool
from tests.support.recorded import RECORDED, restored
from tools.codegen import Schedule
from tools.hardware import load_sheet
from tools.records import Candidate, Evaluation, Plan, Problem
from tools.tracing import RunStore
from tools.tuning import TuningCache

RUNS = ("killed", "tuned")


def opened(name: str, folder: Path) -> RunStore:
    """The store of a recorded run, by its own name below a home folder."""
    return RunStore(restored(f"first_words/{name}", folder / "runs" / name))


@pytest.mark.parametrize("name", RUNS)
def test_records_are_found_under_the_ids_they_were_kept_under(name: str, tmp_path: Path) -> None:
    """Of plans, which are made of actions, and of candidates."""
    store = opened(name, tmp_path)
    plans, candidates = store.all("plan", Plan), store.all("candidate", Candidate)
    assert {plan.id: plan for plan in plans.values()} == plans
    assert {one.id: one for one in candidates.values()} == candidates


def test_schedules_of_a_run_are_read_in_todays_words(tmp_path: Path) -> None:
    """Each of the words that the recorded runs hold."""
    (summed,) = opened("killed", tmp_path).all("candidate", Candidate).values()
    schedule = Schedule.model_validate_json(summed.schedule or "")
    assert (schedule.reduction_pushdown, schedule.prepacked) == (("sum_1",), ("sum_1_sum", "sum_1_sum_2"))
    products = opened("tuned", tmp_path).all("candidate", Candidate).values()
    regions = [region for one in products for region in Schedule.model_validate_json(one.schedule or "").regions]
    assert {region.parameters.get("programs") for region in regions} >= {"operand_stationary"}


@pytest.mark.slow
async def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    """From its checkpoint to its end: nothing planned or judged before is planned or judged again."""
    store = opened("killed", tmp_path)
    before, judged = store.all("plan", Plan), store.all("evaluation", Evaluation)
    log = store.folder / "evaluations.log"
    services = assemble(store, Shared(pool=TextPool(log), memory=NoMemory()))
    await execute(services, lambda event: None)
    again = opened_again(store)
    assert len(before) == len(judged) == 1
    assert len(again.all("plan", Plan)) == len({plan.action.id for plan in again.all("plan", Plan).values()}) == 3
    assert set(before) < set(again.all("plan", Plan))
    assert not set(judged) & set(log.read_text().split())


def opened_again(store: RunStore) -> RunStore:
    """The same run as its next reader finds it."""
    return RunStore(store.folder)


def test_a_run_is_shown(tmp_path: Path) -> None:
    """By `runs` and by `trace`, with the candidates' own ids."""
    folders = [opened(name, tmp_path).folder for name in RUNS]
    listed = CliRunner().invoke(app, ["runs", "--home", str(tmp_path), "--json"])
    assert (listed.exit_code, all(folder.name in listed.stdout for folder in folders)) == (0, True)
    shown = CliRunner().invoke(app, ["trace", "tuned", "--home", str(tmp_path), "--json"])
    assert shown.exit_code == 0, shown.stdout
    assert all(name in shown.stdout for name in RunStore(folders[1]).all("candidate", Candidate))


def test_tunings_are_known_again(tmp_path: Path) -> None:
    """The schedule that was tuned, its trials and what the tuner's cache keeps of them."""
    store = opened("tuned", tmp_path)
    ((name, tuning),) = store.all("tuning", Tuning).items()
    plan, (problem,) = store.get("plan", name, Plan), store.all("problem", Problem).values()
    assert plan is not None
    parent = store.candidate(plan.parent)
    assert parent is not None
    space = TuningSpace(problem, parent, plan.action, load_sheet("h200"))
    with closing(sqlite3.connect(tmp_path / "tuned.db")) as file:
        file.executescript((RECORDED / "first_words" / "tuned.sql").read_text())
    (kept,) = TuningCache(tmp_path).recall(problem.id, "h200", "", space.work, space.sizes)
    assert tuning.structure == structure_of(parent.schedule or "")
    assert {trial.point for trial in tuning.trials} | set(space.known((kept,))) <= set(space.tunable.settings)
    assert kept.parameters[0]["programs"] == "operand_stationary"
