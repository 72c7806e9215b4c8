"""A run as MLflow shows it, by a store of files: settings, the gain of each evaluation, and at the end kernel and report.

MLflow is imported by tests, not here: every worker collects this file, and one of them runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.viewers.settings import ENDPOINTS, TRACKING, open_viewers
from tests.support.interrupted import Interrupted, InterruptedStore
from tests.support.loop import small_services
from tools.errors import MachineError
from tools.records import Budget, Evaluation
from tools.tracing import RunStore

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from kernelwright.viewers.mlflow_runs import MlflowViewer

SETTINGS = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4), start="# key: sk-proj-0123456789abcdefghij")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowClient]:
    """Asks the store that the standard variable names."""
    from mlflow import MlflowClient

    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    # the store that needs no server and no database, which MLflow would rather see moved to one
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv(TRACKING, (tmp_path / "mlflow").as_uri())
    return MlflowClient((tmp_path / "mlflow").as_uri())


def _viewer(store: RunStore) -> MlflowViewer:
    from kernelwright.viewers.mlflow_runs import MlflowViewer

    return MlflowViewer(store)


def _only_run(client: MlflowClient) -> Run:
    (run,) = client.search_runs([client.get_experiment_by_name("kernelwright").experiment_id])
    return run


def test_a_run_is_shown_with_what_was_set_and_what_it_gained(tmp_path: Path, client: MlflowClient) -> None:
    """A session that was cut short and the one that ended it tell one run, each evaluation once; no secret is told."""
    plain = SETTINGS.model_copy(update={"start": ""})
    small_services(tmp_path / "exp-1", plain).store.close()
    store = InterruptedStore(tmp_path / "exp-1")
    store.node = "review"
    with pytest.raises(Interrupted):
        asyncio.run(execute(small_services(tmp_path / "exp-1", plain, store=store), lambda event: None))
    assert _viewer(store).look() == 3
    assert _only_run(client).info.status == "RUNNING"
    services = small_services(tmp_path / "exp-1", plain)
    asyncio.run(execute(services, lambda event: None))
    services.store.set_meta("settings", SETTINGS.model_dump_json())
    _viewer(services.store).look()
    run = _only_run(client)
    judged = list(services.store.all("evaluation", Evaluation).values())
    told = client.get_metric_history(run.info.run_id, "best_speedup")
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "exp-1"
    assert run.data.params["budget.evaluations"] == "4"
    assert run.data.params["problem"] == "exp"
    assert [one.value for one in client.get_metric_history(run.info.run_id, "speedup")] == [one.speedup for one in judged if one.speedup]
    assert max(one.value for one in told) == max(one.speedup or 0.0 for one in judged)
    assert {one.path for one in client.list_artifacts(run.info.run_id)} == {"kernel.py", "report.html"}


def test_what_looks_like_a_key_is_not_told(tmp_path: Path, client: MlflowClient) -> None:
    """Of a setting too."""
    _viewer(small_services(tmp_path / "exp-1", SETTINGS).store).look()
    assert _only_run(client).data.params["start"] == "# key: [secret]"


def test_the_variable_opens_it_and_nothing_else_does(tmp_path: Path, client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without MLFLOW_TRACKING_URI nothing is told, and MLflow's own counting of its uses is off."""
    import os

    store: RunStore = small_services(tmp_path / "exp-1", SETTINGS).store
    assert [one.name for one in open_viewers(store)[0]] == ["MLflow"]
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    monkeypatch.delenv(TRACKING)
    assert open_viewers(store) == ([], ())


def test_a_server_that_cannot_be_told_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line."""
    monkeypatch.setenv(TRACKING, "nosuch://place")
    with pytest.raises(MachineError, match="MLflow was not told"):
        _viewer(small_services(tmp_path / "exp-1", SETTINGS).store).look()
